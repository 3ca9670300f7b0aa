/** The `sleep` of a clock, made from its timer. */

import type { Clock } from '../../engine/host/clock.port.ts';

/** @param setTimer - of the same clock */
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
