/** Waits for a promise, but not for ever. */

import type { Clock } from '../engine/ports/clock.ts';

/** What the promise gives, or undefined when `ms` pass first; what it does then is nobody's concern here. */
export function within<T>(promise: Promise<T>, ms: number, setTimer: Clock['setTimer']): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const cancel = setTimer(ms, () => resolve(undefined));
    promise.then(
      (value) => {
        cancel();
        resolve(value);
      },
      (thrown: unknown) => {
        cancel();
        reject(thrown);
      },
    );
  });
}
