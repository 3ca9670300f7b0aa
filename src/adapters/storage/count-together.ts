/** Counts requests that arrive together in one step of a store, in the order in which they arrived. */

import type { LimitStore, RateAnswer, RateWindow } from '../../engine/access/limit-store.port.ts';
import { logEndsAt, type RequestLog, readLogText, takeFromLogs, toLogText } from '../../engine/access/request-log.ts';

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

/** The names of the logs of some requests, each once. @param nameOf - of a log in the store */
export function logNames(calls: readonly RateCall[], nameOf: (window: RateWindow) => string): readonly string[] {
  return [...windowsByName(calls, nameOf).keys()];
}

function windowsByName(
  calls: readonly RateCall[],
  nameOf: (window: RateWindow) => string,
): ReadonlyMap<string, RateWindow> {
  return new Map(calls.flatMap(({ windows }) => windows.map((window) => [nameOf(window), window] as const)));
}

/** A log as it is to be stored. */
export interface CountedLog {
  readonly name: string;
  readonly text: string;
  /** Unix ms from which on it counts nothing. */
  readonly endsAt: number;
}

/**
 * Counts requests in the logs that a store has read.
 * @param textOf - the text of a log by its name; empty or undefined if it is not there
 */
export function countInLogs(
  calls: readonly RateCall[],
  nameOf: (window: RateWindow) => string,
  textOf: (name: string) => string | undefined,
): { readonly answers: readonly RateAnswer[]; readonly logs: readonly CountedLog[] } {
  const windows = windowsByName(calls, nameOf);
  const logs = new Map([...windows.keys()].map((name) => [name, readLogText(textOf(name) ?? '')]));
  const logOf = (window: RateWindow) => logs.get(nameOf(window)) as RequestLog;
  const answers = calls.map((call) => takeFromLogs(call.windows, call.windows.map(logOf), call.now));
  const counted = [...windows].map(([name, window]) => {
    const log = logOf(window);
    return { name, text: toLogText(log), endsAt: logEndsAt(log, window) };
  });
  return { answers, logs: counted };
}
