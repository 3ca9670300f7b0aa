/** An execution that a process holds, as its run receives it. */

import type { CallerSignal } from '../base/time/caller-signal.ts';
import {
  changesOf,
  type Fold,
  type Handover,
  type NewExecution,
  type StepRecord,
} from '../execution/stored-execution.ts';

/** An execution that this process holds. */
export interface HeldExecution {
  readonly execution: NewExecution;
  readonly epoch: number;
  readonly startedAt: number;
  /** The records to replay; undefined when there can be none. */
  readonly records: readonly StepRecord[] | undefined;
  /** If the records are only those that this fold names, and those after it. */
  readonly fold?: Fold | undefined;
  readonly cancelled: boolean;
  readonly isLate?: boolean | undefined;
  /** How many signals were stored for it when it was claimed. */
  readonly signals?: number;
  /** Whether it began before, here or in another process. */
  readonly resumed: boolean;
  readonly signal?: CallerSignal | undefined;
  /** Unix ms up to which waits are over, whatever the wall clock says now. */
  readonly reached?: number | undefined;
  /** The monotonic instant at which this process began it. */
  readonly began?: number | undefined;
  /** See `ClaimedExecution`. */
  readonly recoveries?: number;
  readonly handover?: Handover | undefined;
  readonly resumedAt?: number | undefined;
  /** Its beginning may not be stored: it was queued, or its process died. */
  readonly begins?: boolean;
}

/** Whether the last run ended with its process. */
export function isAfterCrash({
  recoveries = 0,
  handover,
}: {
  readonly recoveries?: number;
  readonly handover?: Handover | undefined;
}): boolean {
  return recoveries > (handover?.recoveries ?? 0);
}

/** What a run leaves to the next one, where a part of it is undefined if there is nothing to leave. */
export function nextHandover(
  { recoveries = 0, handover: before }: Pick<HeldExecution, 'recoveries' | 'handover'>,
  left: Pick<Handover, 'waitingFor' | 'waited'> & { readonly omitted: number } & {
    readonly [K in 'usage' | 'components' | 'fold' | 'suspendedAt']: Handover[K] | undefined;
  },
): Handover {
  const { waitingFor, waited, omitted, usage, components, fold, suspendedAt } = left;
  return {
    ...{ waitingFor, waited, recoveries },
    ...(usage && { usage }),
    ...(components && { components }),
    ...changesOf(before),
    ...(omitted > 0 && { omitted }),
    ...(suspendedAt !== undefined && { suspendedAt }),
    ...(fold && { fold }),
  };
}
