/** Limits how many exchanges run against one host at a time; the others wait in order, and one that is aborted leaves the queue. */

import pLimit, { type LimitFunction } from 'p-limit';

export interface SocketSlots {
  /**
   * Runs `task` when a slot of `host` is free. An exchange never asks for a second slot, so the queue can't lock itself.
   * @throws the signal's reason when it aborts first; `task` is not called then
   */
  run<T>(host: string, signal: AbortSignal, task: () => Promise<T>): Promise<T>;
  /** Hosts with an exchange running or waiting; a host is forgotten with its last exchange. */
  readonly hosts: number;
}

/**
 * @param perHost - exchanges at a time, 1 or more; `Infinity` for no limit
 * @throws TypeError for another number
 */
export function socketSlots(perHost: number): SocketSlots {
  if (!(perHost === Number.POSITIVE_INFINITY || (Number.isInteger(perHost) && perHost > 0))) {
    throw new TypeError(`maxSocketsPerHost is ${perHost}; expected a whole number from 1, or Infinity`);
  }
  const limits = new Map<string, LimitFunction>();
  return {
    get hosts() {
      return limits.size;
    },
    run<T>(host: string, signal: AbortSignal, task: () => Promise<T>): Promise<T> {
      if (perHost === Number.POSITIVE_INFINITY) return task();
      const limit = limits.get(host) ?? pLimit(perHost);
      limits.set(host, limit);
      return new Promise<T>((resolve, reject) => {
        // What waits is this small record: an aborted request's task, body included, is let go at once.
        const waiting: { task?: () => Promise<T> } = { task };
        const leave = () => {
          waiting.task = undefined;
          reject(signal.reason);
        };
        if (signal.aborted) leave();
        else signal.addEventListener('abort', leave, { once: true });
        void limit(async () => {
          signal.removeEventListener('abort', leave);
          const run = waiting.task;
          if (run !== undefined) await run().then(resolve, reject);
        }).then(() => {
          if (limit.activeCount === 0 && limit.pendingCount === 0) limits.delete(host);
        });
      });
    },
  };
}
