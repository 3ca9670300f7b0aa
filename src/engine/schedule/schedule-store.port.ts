/** The part of a storage that keeps the progress of schedules. */

import type { JsonObject } from '../base/json/json.ts';
import type { MaybePromise } from '../operation/operation.port.ts';

/** The progress of a schedule. Only the engine interprets `value`. */
export interface StoredSchedule {
  readonly value: JsonObject;
  /** Counts the changes: 1 after the first. */
  readonly version: number;
  readonly updatedAt: number;
}

export interface ScheduleChange {
  /** The version from which the change was made. 0 if nothing was stored. */
  readonly expectedVersion: number;
  readonly value: JsonObject;
  readonly updatedAt: number;
}

export interface ScheduleStore {
  /** The progress of a schedule. Undefined if none is stored. */
  read(name: string): MaybePromise<StoredSchedule | undefined>;

  /**
   * Stores the progress of a schedule if the stored version is still `expectedVersion`. The version is one higher afterwards.
   * @returns whether it was stored
   */
  advance(name: string, change: ScheduleChange): MaybePromise<boolean>;
}
