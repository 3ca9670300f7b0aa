/**
 * The part of a storage that keeps executions with their step records. It decides which executions are due, and which worker holds
 * which execution.
 */

import type { MaybePromise } from '../operation/operation.port.ts';
import type { Execution, ExecutionStatus, ExecutionSummary, OpenCounts } from './execution.ts';
import type { FlowLimit } from './limits/flow-limit.ts';
import type {
  ClaimedExecution,
  DamagedExecution,
  ExecutionEnd,
  Handover,
  NewExecution,
  StepRecord,
} from './stored-execution.ts';

/** The place of an execution in a listing. */
export interface ExecutionPosition {
  /** Unix ms. */
  readonly createdAt: number;
  readonly id: string;
}

/** By `createdAt`, then by id: descending, or ascending. */
export type ListOrder = 'newest' | 'oldest';

export interface ExecutionQuery {
  readonly ensemble?: string;
  readonly status?: ExecutionStatus;
  /** The execution whose steps started the listed executions. */
  readonly parentId?: string;
  /** Only executions with this tag. */
  readonly tag?: string;
  /** Unix ms. Only executions that were accepted at this instant or later. */
  readonly since?: number;
  /** Unix ms. Only executions that were accepted before this instant. */
  readonly until?: number;
  /** Only executions whose id, or one of whose tags, begins with this text. */
  readonly search?: string;
  /** Only executions that ended with an error of this code. */
  readonly errorCode?: string;
  /** `true`: only executions that failed or timed out, and that no other execution retries. */
  readonly unresolved?: boolean;
  /** Which execution comes first. Default `newest`. */
  readonly order?: ListOrder;
  /** 1 to 250. */
  readonly limit: number;
  /** Only executions that come after this position in the listing, which need not be that of a stored execution. */
  readonly before?: ExecutionPosition;
}

export interface RecordQuery {
  /** `false`: without agent runs. */
  readonly agents?: boolean;
}

export interface StepQuery {
  /** Only records after the record of this key. Default: from the first record. */
  readonly after?: string | undefined;
  readonly limit: number;
  /** Bytes of outputs, as JSON text. Default 8 MiB. */
  readonly bytes?: number;
  /** Also lists decisions and marks. Default: only agent runs. */
  readonly notes?: boolean;
}

export interface SkippedSteps {
  readonly skipped: number;
  /** The key of the last skipped record. Absent if none was skipped. */
  readonly key?: string;
}

/** A wait that a signal or its timeout has ended. */
export interface EndedWait {
  /** The key of the decision about its end. */
  readonly key: string;
  /** Unix ms. */
  readonly at: number;
}

/** Who paused an execution: itself alone, its ensemble, or all. Each is ended by itself. */
export const PAUSE_SCOPES = { execution: 1, ensemble: 2, all: 4 } as const;
export type PauseScope = keyof typeof PAUSE_SCOPES;

/** A limit that holds an execution up. */
export interface LimitWait {
  readonly name: string;
  readonly key: string;
  /** From 1: how many executions of its queue are due before it, and itself. Counts to {@link MAX_POSITION} at most. */
  readonly position: number;
  /** Unix ms at which the execution was due. */
  readonly since: number;
}

export const MAX_POSITION = 10_001;

/** A step that takes a slot of a limit. */
export interface StepOfExecution {
  readonly executionId: string;
  /** Its key. */
  readonly key: string;
}

export interface ClaimQuery {
  readonly now: number;
  /** The largest number of executions to claim. */
  readonly limit: number;
  /** Versions of definitions that the worker can't run. */
  readonly excludeVersions: readonly string[];
}

/** What is new for a worker. */
export interface PollResult {
  /** The earliest `dueAt` of a free execution whose version is not excluded, and whose caller has a free slot. Absent if there is none. */
  readonly nextDueAt?: number;
  /** Executions that this worker holds, and whose cancellation is requested. Ids may be reported again. */
  readonly cancelRequested: readonly string[];
  /** Executions that this worker holds, and that are to be paused. Ids are reported again. */
  readonly pauseRequested?: readonly string[];
  /** Executions that this worker holds, with signals that arrived since the claim. Entries may be reported again. */
  readonly signalled: readonly {
    readonly executionId: string;
    /** How many signals are stored for the execution in total. */
    readonly signals: number;
  }[];
  /** All slots of a caller or of a limit are taken: when one of its executions is freed, others may be due. Absent: none. */
  readonly slotsTaken?: boolean;
  /** Documents of the kind `start` ask for executions. Absent: none. */
  readonly hasStarts?: boolean;
}

export interface PurgeQuery {
  readonly worker: string;
  /** Unix ms. Executions that ended before this instant are deleted, with all their stored data. */
  readonly before: number;
  /** The largest number of executions to delete. */
  readonly limit: number;
  /** `next` of the previous batch. */
  readonly after?: string;
}

/** Which definition an execution has, and whether that can be changed. */
export interface PinnedExecution {
  /** The hash of the definition. */
  readonly version: string;
  /** No worker holds it, and it has not ended. */
  readonly isFree: boolean;
  /** A worker has held it. */
  readonly begun: boolean;
  /** Counts its claims. */
  readonly epoch: number;
  /** What its last run left. */
  readonly handover?: Handover | undefined;
}

/** The change of the definition of an execution. */
export interface Repin {
  /** What was read of it. If it was claimed since, nothing changes. */
  readonly epoch: number;
  readonly from: string;
  /** The hash of the new definition, which is stored. */
  readonly to: string;
  /** In place of the stored one. */
  readonly handover: Handover;
  /** Unix ms: it is due then, if it was to be due later. Absent: that stays as it is. */
  readonly dueAt?: number | undefined;
  /** Is stored with the change, as a commit stores it. */
  readonly step?: StepRecord | undefined;
  /** Replaces what a start gave that has not begun. Unix ms: when it is due, also if that is later. */
  readonly start?: (Pick<NewExecution, 'input' | 'deadlineAt'> & { readonly dueAt: number }) | undefined;
}

/** Reads executions. */
export interface ExecutionReader {
  /**
   * How many executions have each status before the end, and how many are unresolved. Counts to `limit` at most for each, the oldest
   * first. An index answers it.
   */
  countOpen(limit: number): MaybePromise<OpenCounts>;

  /** How many executions were accepted at this instant (Unix ms) or later. Counts to `limit` at most. An index answers it. */
  countAccepted(since: number, limit: number): MaybePromise<number>;

  /** An execution as it was accepted. Undefined if it is unknown. */
  getAccepted(id: string): MaybePromise<NewExecution | undefined>;

  /** The status of an execution. Undefined if it is unknown. Reads no values and no steps, so their size does not matter. */
  getStatus(id: string): MaybePromise<ExecutionSummary | undefined>;

  /**
   * The record of an execution, with the first 1,000 agent runs and at most 4 MiB of their outputs. Undefined if it is unknown.
   * Reads no more than it returns.
   */
  get(id: string, query?: RecordQuery): MaybePromise<Execution | undefined>;

  /** The id of the execution that was accepted with this idempotency key. Undefined if there is none. */
  findByKey(key: string): MaybePromise<string | undefined>;

  /**
   * Records of executions that match all filters, by `createdAt`, then by id, the newest first unless `order` says otherwise. They have
   * no agent runs. An input or output of more than 4 KiB is left out, and is not read. Each filter is answered by an index: what other
   * executions are stored does not matter.
   * @throws INVALID_REQUEST if more than 10,000 (`MAX_MATCHES`) ids or tags begin with `search`
   */
  list(query: ExecutionQuery): MaybePromise<readonly Execution[]>;

  /**
   * Step records of an execution, in the order in which they were first stored: at most `limit` of them, with at most `bytes` of
   * outputs. A single record may have more. An empty list means that there are no more. Reads only what it returns, at any position
   * in the history.
   */
  listSteps(executionId: string, query: StepQuery): MaybePromise<readonly StepRecord[]>;

  /** One step record, by its key. Undefined if there is none. */
  getStep(executionId: string, key: string): MaybePromise<StepRecord | undefined>;

  /** The step records under these different keys, at most 1,000 of them, in the order in which they were first stored. */
  getSteps(executionId: string, keys: readonly string[]): MaybePromise<readonly StepRecord[]>;

  /**
   * Skips `count` step records, decisions and marks included, in the order in which they were first stored, or all records if there are
   * fewer. Reads no outputs.
   */
  skipSteps(executionId: string, count: number): MaybePromise<SkippedSteps>;

  /**
   * The waits for a signal of this name that ended after an instant (Unix ms). Reads only the decisions of waits, without payloads.
   */
  listEndedWaits(executionId: string, signal: string, after: number): MaybePromise<readonly EndedWait[]>;

  /**
   * The limits that hold an execution up at an instant (Unix ms): those of its queue that have no free slot. Empty if nobody has to wait
   * for it to be claimed, or if it is not in a queue.
   */
  limitWaits(id: string, now: number): MaybePromise<readonly LimitWait[]>;

  /** Those of the given executions that have ended or are not stored any more. */
  findEnded(ids: readonly string[]): MaybePromise<readonly string[]>;

  /** How many executions have this one as the `rootId` of their trigger. Counts to `limit` at most. */
  countDescendants(rootId: string, limit: number): MaybePromise<number>;
}

export interface ExecutionStore extends ExecutionReader {
  /**
   * Claims executions that are free and due. Each is claimed by one worker only, has an epoch one higher, and is `running` from then
   * on. Its first claim since the release that stored its handover sets `resumedAt`; later claims keep it. Ensembles take turns, also
   * from one claim to the next. Of each ensemble, the execution that has been due for the longest time comes first; those of a
   * caller without a free slot are passed over, and no caller ever has more slots than `Charge.slots`. An execution that can't be read is
   * claimed too, so that the engine can end it. An execution that runs under limits needs a free slot of each of them: a limit never has
   * more executions held than its `max`, in the newest version that is known of it. Executions with the same limits and keys are claimed
   * in the order in which they are due, and those with different ones take turns.
   * @returns no executions if the worker is not registered
   */
  claim(worker: string, query: ClaimQuery): MaybePromise<readonly (ClaimedExecution | DamagedExecution)[]>;

  /**
   * Claims one execution that is free, whether it is due or not, with the effects of `claim`. For an engine that decides elsewhere which
   * worker runs an execution. One that runs under limits is claimed by `claim` alone.
   * @returns undefined if nothing was claimed: the execution is unknown, has ended, is held or is being claimed, runs under limits, all
   *   slots of its caller are taken, or the worker is not registered
   */
  take(worker: string, id: string, now: number): MaybePromise<ClaimedExecution | DamagedExecution | undefined>;

  /**
   * What is new for a worker: when an execution is due next, and which of the executions that it holds have a request for
   * cancellation or new signals.
   * @param excludeVersions - versions of definitions that the worker can't run
   */
  poll(worker: string, excludeVersions: readonly string[]): MaybePromise<PollResult>;

  /** How many executions are queued. Counts to `limit` at most. */
  countQueued(limit: number): MaybePromise<number>;

  /**
   * Stores numbers of limits for all keys: they count at once, unless the number of a key is newer. Their own keys are not read.
   */
  putLimits(limits: readonly FlowLimit[]): MaybePromise<unknown>;

  /**
   * Takes a slot of a limit for a step, besides those of the executions under the limit. It counts as long as the execution is held under
   * its present epoch.
   * @returns false if no slot is free, or if nobody holds the execution
   */
  takeSlot(limit: FlowLimit, step: StepOfExecution, now: number): MaybePromise<boolean>;

  /** Gives a slot of a step back. What waits for one may be due at once. */
  freeSlot(limit: FlowLimit, step: StepOfExecution): MaybePromise<unknown>;

  /** Closes rates: under them, with their keys, nothing begins before an instant (Unix ms). An earlier instant than the known one changes nothing. */
  closeLimits(limits: readonly FlowLimit[], until: number): MaybePromise<unknown>;

  /**
   * Requests the cancellation of an execution. A repeated request changes nothing.
   *
   * | the execution | effect |
   * |---|---|
   * | has ended | none |
   * | is held | `poll` reports the request to its worker. If the worker releases it before that, it is due at once |
   * | has not begun, and has no parent | it ends with `end` |
   * | has not begun, and has a parent | it is due at once, because the worker that ends it also signals the parent |
   * | is free for any other reason | it is due at once |
   *
   * @returns the status of the execution after the call, undefined if it is unknown. A final status means that there is nothing to
   *   cancel
   */
  requestCancel(id: string, now: number, end: ExecutionEnd): MaybePromise<ExecutionStatus | undefined>;

  /**
   * Pauses an execution. No claim returns it until {@link resume} with each scope that has paused it, or a request for its cancellation.
   * Its due time stays, and a signal is stored, and makes it due when it is resumed.
   *
   * | the execution | effect |
   * |---|---|
   * | has ended, or its cancellation is requested | none |
   * | is held | `poll` reports it to its worker, until that releases it: then it is `paused` |
   * | is free | it is `paused` |
   *
   * @returns the status of the execution after the call, undefined if it is unknown
   */
  pause(id: string, scope: PauseScope): MaybePromise<ExecutionStatus | undefined>;

  /** Ends a pause. The execution has the status that it had before, and may be due at once. @returns as {@link pause} */
  resume(id: string, scope: PauseScope): MaybePromise<ExecutionStatus | undefined>;

  /**
   * Pauses up to `limit` executions that have not ended and that this scope has not paused: those of an ensemble, or all.
   * @returns how many were changed: fewer than `limit` if none is left
   */
  pauseAll(scope: PauseScope, ensemble: string | undefined, limit: number): MaybePromise<number>;

  /** Ends a pause for up to `limit` executions whose ensemble is not one of `except`. @returns as {@link pauseAll} */
  resumeAll(scope: PauseScope, except: readonly string[], limit: number): MaybePromise<number>;

  /** The definition of an execution. Undefined if it is unknown. */
  getPinned(id: string): MaybePromise<PinnedExecution | undefined>;

  /**
   * Gives an execution another definition, the result of a step, or another start. The signals that it waits for stay as they are. With a
   * step or a start, the epoch counts one more, so that a second change of the same read is refused.
   * @returns false if it is held, has ended, was claimed or got a step since it was read, or has another definition: then nothing changes
   */
  repin(id: string, change: Repin): MaybePromise<boolean>;

  /**
   * Deletes executions that ended long ago. Only the worker that registered first does this.
   * @returns how many were deleted, and `next`, from which the next call continues (absent after the last batch). Undefined if
   *   another worker deletes
   */
  purge(query: PurgeQuery): MaybePromise<{ readonly deleted: number; readonly next?: string } | undefined>;

  /** Deletes those of the given executions that have ended, with all their stored data. @returns how many were deleted */
  delete(ids: readonly string[]): MaybePromise<number>;
}
