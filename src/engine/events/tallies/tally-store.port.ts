/** The part of a storage that counts ends. A commit that ends an execution also stores a line for it (`CommitEntry.counted`). */

import type { MaybePromise } from '../../base/maybe-promise.ts';
import type { EndGroup } from './end-line.ts';
import type { StoredTally } from './tally.ts';

export interface TallyQuery {
  /** Unix ms. */
  readonly since: number;
  readonly until: number;
  readonly ensemble?: string | undefined;
}

export interface TallyStore {
  /**
   * Adds ends to the tallies of their minutes, those of minutes older than `MINUTES_FOR` to hours, and those of hours older than
   * `HOURS_FOR` to days. Each is counted once, whatever fails. Does a portion.
   * @returns whether more is left
   */
  fold(now: number): MaybePromise<boolean>;
  /**
   * All ends of a span: the tallies of periods that begin in it, and the ends in it that are in no tally yet. Nothing is in both. Ends of
   * dry runs are not counted, and those of executions that were deleted still are.
   */
  read(
    query: TallyQuery,
  ): MaybePromise<{ readonly tallies: readonly StoredTally[]; readonly ends: readonly EndGroup[] }>;
}
