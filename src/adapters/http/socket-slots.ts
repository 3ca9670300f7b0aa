/** Limits the concurrent exchanges with one host. Others wait in order, and an aborted one leaves the queue. */

import pLimit, { type LimitFunction } from 'p-limit';
import { checkedLater, optional } from '../../engine/base/read-options.ts';

export interface SocketSlots {
  /**
   * Runs `task` when a slot of `host` is free. An exchange never needs a second slot, so there is no deadlock.
   * @param signal - undefined: nothing aborts it
   * @throws the signal's reason if the signal aborts first. Then `task` is not called
   */
  run<T>(host: string, signal: AbortSignal | undefined, task: () => Promise<T>): Promise<T>;
  /** The number of hosts with exchanges that run or wait. A host is removed with its last exchange. */
  readonly hosts: number;
}

/** The checks of the options that all HTTP clients have. */
export const SOCKET_CHECKS = {
  allow: checkedLater,
  maxSocketsPerHost: optional<number>(
    'a whole number from 1, or Infinity',
    (count) => count === Number.POSITIVE_INFINITY || (Number.isInteger(count) && count > 0),
  ),
};

/** @param perHost - the largest number of concurrent exchanges, 1 or more, or `Infinity` */
export function socketSlots(perHost: number): SocketSlots {
  const limits = new Map<string, LimitFunction>();
  return {
    get hosts() {
      return limits.size;
    },
    run<T>(host: string, signal: AbortSignal | undefined, task: () => Promise<T>): Promise<T> {
      if (perHost === Number.POSITIVE_INFINITY) return task();
      const limit = limits.get(host) ?? pLimit(perHost);
      limits.set(host, limit);
      return new Promise<T>((resolve, reject) => {
        // Only this small record waits: the task of an aborted request, with its body, is released at once.
        const waiting: { task?: () => Promise<T> } = { task };
        const leave = () => {
          waiting.task = undefined;
          reject(signal?.reason);
        };
        if (signal?.aborted) leave();
        else signal?.addEventListener('abort', leave, { once: true });
        void limit(async () => {
          signal?.removeEventListener('abort', leave);
          const run = waiting.task;
          if (run !== undefined) await run().then(resolve, reject);
        }).then(() => {
          if (limit.activeCount === 0 && limit.pendingCount === 0) limits.delete(host);
        });
      });
    },
  };
}
