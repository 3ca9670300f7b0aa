/** The request counts of the memory storage. */

import type { LimitStore, RateWindow } from '../../../engine/access/limit-store.port.ts';
import {
  isTokenKey,
  logEndsAt,
  logKeyOf,
  newLog,
  type RequestLog,
  takeFromLogs,
  usesOf,
} from '../../../engine/access/request-log.ts';

/** With more keys than this, those that were used least recently are forgotten, but none of a token: anyone can have many addresses. */
const MAX_KEYS = 200_000;
/** How many keys one call looks at, to forget those whose requests have left their windows. */
const SWEPT_PER_CALL = 2;

/** Counts requests in the memory of one process. */
export function memoryRates(): LimitStore {
  /** In the order of their last use. */
  const logs = new Map<string, { readonly log: RequestLog; endsAt: number }>();

  const sweep = (now: number) => {
    let left = SWEPT_PER_CALL;
    for (const [key, known] of logs) {
      const hasEnded = known.endsAt <= now;
      if (left === 0 || (!hasEnded && logs.size <= MAX_KEYS)) return;
      logs.delete(key);
      if (!hasEnded && isTokenKey(key)) logs.set(key, known);
      left -= 1;
    }
  };

  const logsOf = (windows: readonly RateWindow[]) =>
    windows.map((window) => logs.get(logKeyOf(window))?.log ?? newLog());

  return {
    take(windows, now) {
      const found = logsOf(windows);
      const answer = takeFromLogs(windows, found, now);
      for (let i = 0; i < windows.length; i++) {
        const key = logKeyOf(windows[i] as RateWindow);
        const log = found[i] as RequestLog;
        logs.delete(key);
        if (log.total > 0) logs.set(key, { log, endsAt: logEndsAt(log, windows[i] as RateWindow) });
      }
      sweep(now);
      return answer;
    },
    peek: (windows, now) => usesOf(windows, logsOf(windows), now),
  };
}
