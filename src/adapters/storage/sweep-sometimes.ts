/** Deletes in passing what has expired: a store has no task of its own in the background. */

import type { MaybePromise } from '../../engine/base/maybe-promise.ts';

const SWEEP_EVERY_MS = 60_000;

/**
 * @param sweep - deletes at most `max` entries @returns a function for other calls of the store, which sweeps at most once a minute, or
 *   again at once if the last sweep deleted the maximum. It never fails: the call that sweeps does something else. @param now - Unix ms
 */
export function sweepSometimes(max: number, sweep: (now: number) => MaybePromise<number>): (now: number) => void {
  let nextSweep = Number.NEGATIVE_INFINITY;
  return (now) => {
    if (now < nextSweep) return;
    nextSweep = now + SWEEP_EVERY_MS;
    const ended = (count: number) => {
      if (count >= max) nextSweep = now;
    };
    try {
      const deleted = sweep(now);
      if (typeof deleted === 'number') ended(deleted);
      else deleted.then(ended, () => undefined);
    } catch {
      // The next sweep deletes them.
    }
  };
}
