/** What a database does for queues of executions that run under limits. */

import type { MaybePromise } from '../../../../engine/base/maybe-promise.ts';
import type { StepOfExecution } from '../../../../engine/execution/execution-store.port.ts';
import { FAIR_QUEUES, type FlowLimit, type ListedExecution } from '../../../../engine/execution/limits/flow-limit.ts';
import type { RateUse } from '../../../../engine/execution/limits/rate-window.ts';
import type { LimitState } from './limit-state.ts';

/** Whether a row of queues is of a group, in SQL; word for word as in the partial indexes. */
export const HAS_GROUP = `id > '${FAIR_QUEUES}'`;
export const HAS_NO_GROUP = `id < '${FAIR_QUEUES}'`;

/** Whether a limit blocks any queue, in SQL. Queues of groups have an index of their own. @param which - the rows, such as `blocked_by = $2` */
export function isAnyBlocked(queues: string, which: string): string {
  const rows = (kind: string) => `EXISTS (SELECT 1 FROM ${queues} WHERE ${which} AND ${kind})`;
  return `(${rows(HAS_NO_GROUP)} OR ${rows(HAS_GROUP)})`;
}

/** How much the clocks of two processes may differ, in ms. */
export const CLOCKS_MS = 60_000;

/** Which queue is to be looked at. */
export interface Arrival {
  readonly queue: string;
  readonly limits: readonly FlowLimit[];
  /** An execution of the queue gave its slots back, or more may begin under a rate. Otherwise one of the queue is due. */
  readonly freed: boolean;
  /** The id of an execution that should have begun by now. */
  readonly late?: string | undefined;
}

/** The next executions of a queue. */
export interface QueueTurn {
  readonly id: string;
  /** How many of them are asked for. */
  readonly most: number;
}

/** How many queues that a limit blocks are made ready. */
export interface Wake {
  readonly limit: string;
  readonly count: number;
}

export interface Woken {
  /** Any became ready. */
  readonly isAny: boolean;
  /** The limits that block queues of groups. */
  readonly limits: readonly string[];
}

/** A limit of a queue. */
export interface QueueLimit {
  readonly queue: string;
  readonly limit: string;
  /** Whether other queues may have the limit. */
  readonly isShared: boolean;
}

export interface TakenSlot {
  readonly limit: string;
  readonly execution: string;
  /** 0: the execution is queued, and only listed. */
  readonly epoch: number;
  /** It keeps the slot while it waits. */
  readonly held?: boolean | undefined;
  /** See `isListed`. */
  readonly listed?: boolean | undefined;
}

/** An execution that a claim takes, with the slots that it gets. */
export interface TakenHead<Row> {
  readonly row: Row;
  readonly slots: readonly Pick<TakenSlot, 'limit' | 'held'>[];
}

/** A queue that a claim has looked at, and the limit that has no free slot for it. */
export interface SettledQueue {
  readonly id: string;
  readonly blockedBy: string | null;
}

/** What the database does. Ids are as they are, not as columns hold them. @param Row - of an execution */
export interface QueueTables<Row> {
  /** Removes up to 1,000 arrivals that are due. */
  takeArrivals(now: number): MaybePromise<readonly Arrival[]>;
  /** Makes queues ready that no limit blocks, and creates them. In the order of their ids. */
  putQueues(ids: readonly string[]): MaybePromise<unknown>;
  /** Stores numbers of limits, or of their names, unless a newer one is stored. In the order of their ids. @returns the ids of those that changed */
  putLimits(limits: readonly FlowLimit[], areNamed?: boolean): MaybePromise<readonly string[]>;
  /** Locks limits in the order of their ids. A claim that is under way has ended then, and what it has blocked can be seen. */
  lock(limits: readonly string[]): MaybePromise<unknown>;
  /** Makes queues ready that a limit blocks and that have no group, those first that are blocked longest. */
  wake(wakes: readonly Wake[]): MaybePromise<Woken>;
  /** Makes queues ready. */
  makeReady(ids: readonly string[]): MaybePromise<unknown>;
  /**
   * Locks ready queues without a group that nobody else has locked, after one, in the order of their ids. After them, `FAIR_QUEUES` if any
   * queue of a group is ready.
   */
  lockReady(after: string, most: number): MaybePromise<readonly string[]>;
  /** The first queue of each group that is ready, or that a limit blocks, after an id. @param blockedBy - undefined: ready */
  groups(blockedBy: string | undefined, after: string, most: number): MaybePromise<readonly string[]>;
  /** Locks such queues of groups that nobody else has locked: in each up to `most` after one, or from its first one on. */
  lockOfGroups(
    blockedBy: string | undefined,
    groups: readonly { readonly group: string; readonly after: string }[],
    most: number,
  ): MaybePromise<readonly string[]>;
  /** Makes queues ready that limits of these names block. */
  wakeNamed(names: readonly string[]): MaybePromise<unknown>;
  /**
   * Locks limits in the order of their ids, removes slots that are taken no more, and counts the others. The number of the name counts
   * if it is newer.
   */
  readLimits(limits: readonly string[]): MaybePromise<Map<string, LimitState>>;
  /** The ids of limits, after one, in order, whose numbers are older than an instant (Unix ms); also those for all keys. */
  limitsAfter(id: string, since: number, most: number): MaybePromise<readonly string[]>;
  /** Deletes those of these limits that have no slots and block no queue. @returns their ids */
  deleteLimits(limits: readonly string[]): MaybePromise<readonly string[]>;
  /** The limits of the first execution of each queue. */
  limitsIn(queues: readonly string[]): MaybePromise<readonly FlowLimit[]>;
  /** Stores what was used of rates. */
  putUses(uses: ReadonlyMap<string, RateUse>): MaybePromise<unknown>;
  /** Stores that what waits for rates is not looked at again by itself: a process with a slower clock may find them still used up. */
  forgetWakes(limits: readonly string[]): MaybePromise<unknown>;
  /** What waits for rates is looked at again at an instant (Unix ms). */
  wakeLater(wakes: readonly { readonly limit: FlowLimit; readonly at: number }[]): MaybePromise<unknown>;
  /** The executions under limits that list them, which have not ended and are not cancelled, in the order of their acceptance. */
  list(limits: readonly string[]): MaybePromise<ReadonlyMap<string, readonly ListedExecution[]>>;
  /** Requests the cancellation of executions. Those that nobody holds leave their queues, and are due at once. */
  cancel(executions: readonly string[], now: number): MaybePromise<unknown>;
  /** Those of these executions that have not begun leave their queues, and are due at once. */
  expire(executions: readonly string[], now: number): MaybePromise<unknown>;
  /** The next executions that are due, without those of versions that the worker can't run. */
  heads(
    turns: readonly QueueTurn[],
    now: number,
  ): MaybePromise<readonly { readonly queue: string; readonly row: Row }[]>;
  /** Those queues in which something is due, or whose limit blocks a queue; of those that share a limit also if any queue is ready. */
  waitedFor(asked: readonly QueueLimit[], now: number): MaybePromise<ReadonlySet<string>>;
  /** Whether the caller of an execution has a free slot, which it takes then. */
  hasCallerSlot(row: Row): boolean;
  /** Of one of {@link heads}: the limits whose slots it keeps until its end, as `keptUntilEnd`. */
  keptOf(row: Row): string | undefined;
  /**
   * Claims executions, stores their slots, and does {@link settle}: all of it, or nothing if the worker is not registered.
   * @returns the executions as a claim returns them
   */
  claim(heads: readonly TakenHead<Row>[], settled: readonly SettledQueue[], now: number): MaybePromise<readonly Row[]>;
  putSlots(slots: readonly TakenSlot[]): MaybePromise<unknown>;
  /** Stores the slot of a step under the present epoch of its execution. @returns false if nobody holds that, or if it is full and the step had none */
  putStepSlot(limit: string, step: StepOfExecution, isFull: boolean): MaybePromise<boolean>;
  /** Removes it, and looks at queues that the limit blocks. */
  freeStepSlot(limit: string, step: StepOfExecution): MaybePromise<unknown>;
  /**
   * Queues that are blocked are not ready any more. Those in which nothing is due any more are deleted. Their first execution that is due
   * within {@link CLOCKS_MS} arrives again: a process with a faster clock may have read its arrival.
   */
  settle(queues: readonly SettledQueue[], now: number): MaybePromise<unknown>;
}
