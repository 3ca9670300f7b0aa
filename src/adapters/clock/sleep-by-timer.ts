/** A sleep made of a timer: what every clock's `sleep` is. */

import type { Clock } from '../../engine/ports/clock.ts';

/** @param setTimer - the clock's own */
export function sleepByTimer(setTimer: Clock['setTimer']): Clock['sleep'] {
  return (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      const onAbort = () => {
        cancel();
        reject(signal?.reason);
      };
      const cancel = setTimer(ms, () => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      });
      signal?.addEventListener('abort', onAbort, { once: true });
    });
}
