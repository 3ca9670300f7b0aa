/** Long work in portions, so that no turn of the event loop lasts long, however long a store takes for one entry. */

import type { MaybePromise } from './maybe-promise.ts';
import { turnOf } from './time/next-turn.ts';

/** How long a portion shall take. A store such as SQLite blocks the process for that time. */
const PORTION_MS = 10;
const FIRST = 8;

type Turning = Parameters<typeof turnOf>[0];

export interface Portions {
  /**
   * Does a portion. All portions but the first begin on a turn of the event loop of their own.
   * @param work - gets how many entries to work on: as many as took 10 ms before, at least 1
   */
  next<T>(work: (size: number) => MaybePromise<T>): Promise<T>;
}

/** @param most - the largest portion. A clock that stands still gets it soon */
export function inPortions(clock: Turning & { monotonic(): number }, most: number): Portions {
  let size = Math.min(FIRST, most);
  let isFirst = true;
  return {
    async next(work) {
      if (!isFirst) await turnOf(clock);
      isFirst = false;
      const begun = clock.monotonic();
      const result = await work(size);
      const perEntry = (clock.monotonic() - begun) / size;
      size = Math.max(1, Math.min(most, size * 2, Math.floor(PORTION_MS / perEntry)));
      return result;
    },
  };
}
