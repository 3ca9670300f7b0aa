/** An execution that this process holds, and what is known of it: what a run is made of. */

import type { NewExecution, StepRecord } from '../../engine/model/stored-execution.ts';

export interface HeldExecution {
  readonly execution: NewExecution;
  readonly owner: string;
  readonly epoch: number;
  readonly startedAt: number;
  /** What it recalls; undefined when there can be nothing. */
  readonly records: readonly StepRecord[] | undefined;
  readonly cancelled: boolean;
  /** How many signals had come when it was claimed. */
  readonly signals?: number;
  /** It was begun before. */
  readonly resumed: boolean;
  readonly signal?: AbortSignal | undefined;
  /** An instant that was waited for, whatever the wall clock says now. */
  readonly reached?: number | undefined;
  /** Where this process began it: the monotonic instant. */
  readonly began?: number | undefined;
}
