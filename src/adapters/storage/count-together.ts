/** Counts requests that arrive together in one step of a store, in the order in which they arrived. */

import type { LimitStore, RateAnswer, RateWindow } from '../../engine/ports/limit-store.ts';

/** One request. */
export interface RateCall {
  readonly windows: readonly RateWindow[];
  readonly now: number;
}

interface WaitingCall extends RateCall {
  resolve(answer: RateAnswer): void;
  reject(thrown: unknown): void;
}

/** How many requests one step counts. */
const MAX_BATCH = 200;

/** @param count - counts the requests in one atomic step. It is not called again before it has ended */
export function countTogether(
  count: (calls: readonly RateCall[]) => Promise<readonly RateAnswer[]>,
): (...call: Parameters<LimitStore['take']>) => Promise<RateAnswer> {
  const waiting: WaitingCall[] = [];
  let isCounting = false;
  const countWaiting = async () => {
    isCounting = true;
    while (waiting.length > 0) {
      const calls = waiting.splice(0, MAX_BATCH);
      try {
        const answers = await count(calls);
        for (const [i, call] of calls.entries()) call.resolve(answers[i] as RateAnswer);
      } catch (error) {
        for (const call of calls) call.reject(error);
      }
    }
    isCounting = false;
  };
  return (windows, now) =>
    new Promise((resolve, reject) => {
      waiting.push({ windows, now, resolve, reject });
      if (!isCounting) void countWaiting();
    });
}

/** The windows of the requests by the names of their logs, each once. @param nameOf - of a log in the store */
export function windowsByName(
  calls: readonly RateCall[],
  nameOf: (window: RateWindow) => string,
): ReadonlyMap<string, RateWindow> {
  return new Map(calls.flatMap(({ windows }) => windows.map((window) => [nameOf(window), window] as const)));
}
