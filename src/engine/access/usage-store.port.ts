/** The part of a storage that keeps what callers have used. Only a commit charges a caller. */

import type { MaybePromise } from '../operation/operation.port.ts';

export interface UsageStore {
  /**
   * How many executions a caller was charged for in a period. 0 for an unknown caller.
   * @param period - the month in UTC, such as `2026-01`
   */
  charged(account: string, period: string): MaybePromise<number>;
  /** How many executions of a caller are held, of those that take a slot (`Charge.slots`). 0 for an unknown caller. */
  running(account: string): MaybePromise<number>;
}
