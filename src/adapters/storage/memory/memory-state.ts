/** Everything that the memory storage holds about executions, and how an execution becomes free or ends. */

import { dueWhenCancelled, dueWhenReleased } from '../../../engine/execution/due.ts';
import type { ExecutionEnd, Release } from '../../../engine/execution/stored-execution.ts';
import type { DocumentStore, StoredState } from '../../../engine/storage/storage.port.ts';
import { type MemoryCapacity, memoryCapacity } from './capacity.ts';
import { type MemoryDeliveries, memoryDeliveries } from './deliveries.ts';
import { createDueQueue, type DueQueue } from './due/due-queue.ts';
import { type Due, insert, removeFirst } from './due/heap.ts';
import { type MemoryLimits, memoryLimits, takeSlots } from './limits.ts';
import { memorySlots, type Slots } from './slots.ts';
import { dueFactsOf, type StoredExecution } from './stored-execution.ts';
import { type MemoryTallies, memoryTallies } from './tallies.ts';

export interface MemoryState {
  readonly executions: Map<string, StoredExecution>;
  /** The id of the execution with each idempotency key. */
  readonly keys: Map<string, string>;
  /** The state of each ensemble. */
  readonly states: Map<string, StoredState>;
  /** How many executions each caller was charged for in each period, by {@link toChargeKey}. */
  readonly charges: Map<string, number>;
  readonly documents: DocumentStore;
  readonly deliveries: MemoryDeliveries;
  /** In the order in which they registered. */
  readonly workers: Map<string, RegisteredWorker>;
  /** How many workers have registered so far. */
  registered: number;
  /** How many executions are queued. */
  queued: number;
  /** The slots that held executions take. */
  readonly slots: Slots;
  /** The limits that executions run under. */
  readonly limits: MemoryLimits;
  /** When queued executions should have begun. The first is the earliest. */
  readonly expiring: Due[];
  /** The free executions. */
  readonly due: DueQueue;
  readonly capacity: MemoryCapacity;
  /** Counts of ends. */
  readonly tallies: MemoryTallies;
}

export interface RegisteredWorker {
  /** Unix ms. */
  leaseUntil: number;
  /** Executions with a cancellation request since the worker's last `poll`. */
  readonly cancelRequested: Set<string>;
  /** Executions that are to be paused. */
  readonly pauseRequested: Set<string>;
  /** Executions with a signal since the worker's last `poll`. */
  readonly signalled: Set<string>;
}

/** @param period - without spaces */
export function toChargeKey(account: string, period: string): string {
  return `${period} ${account}`;
}

export function createMemoryState(keep: number, keepBytes: number, documents: DocumentStore): MemoryState {
  const executions = new Map<string, StoredExecution>();
  const keys = new Map<string, string>();
  const slots = memorySlots();
  const limits = memoryLimits((id) => {
    const { status, cancelRequestedAt, end, limits } = executions.get(id) ?? {};
    const isQueued = status === 'queued';
    return end || cancelRequestedAt !== undefined || (isQueued && !limits?.waitsIn) ? undefined : { id, isQueued };
  });
  const remove = ({ execution: { id, idempotencyKey } }: StoredExecution) => {
    executions.delete(id);
    if (idempotencyKey !== undefined) keys.delete(idempotencyKey);
  };
  return {
    executions,
    keys,
    states: new Map(),
    charges: new Map(),
    documents,
    deliveries: memoryDeliveries(keep, keepBytes),
    workers: new Map(),
    registered: 0,
    queued: 0,
    slots,
    limits,
    expiring: [],
    due: createDueQueue((id, dueAt, queue) => {
      const stored = executions.get(id);
      return stored?.dueAt === dueAt && stored.limits?.waitsIn?.queue === queue && stored.status !== 'paused';
    }, slots.isFree),
    capacity: memoryCapacity(executions, remove, keep, keepBytes),
    tallies: memoryTallies(),
  };
}

/** A worker holds an execution from now on, or with `undefined` none. The slots follow. @param now - Unix ms, with a worker */
export function setWorker(state: MemoryState, stored: StoredExecution, worker: string | undefined, now = 0): void {
  const { slots, due } = state;
  const { slot, limits } = stored;
  if (limits?.waitsIn) {
    const { waitsIn, joined } = limits;
    const change = Number(worker !== undefined) - Number(stored.worker !== undefined);
    takeSlots(waitsIn.all, change, now);
    if (change < 0) due.freed(waitsIn.all);
    if (change > 0 && waitsIn === joined.first) {
      limits.waitsIn = joined.later;
      limits.keeps = joined.kept;
    }
  }
  if (worker === undefined && stored.stepSlots)
    for (const key of stored.stepSlots.keys()) freeStepSlot(state, stored, key);
  if (slot && stored.worker !== undefined) slots.give(slot);
  if (slot && worker !== undefined) slots.take(slot);
  stored.worker = worker;
}

/** @param key - of the limit and the step */
export function freeStepSlot({ limits, due }: MemoryState, stored: StoredExecution, key: string): void {
  const limit = stored.stepSlots?.get(key);
  if (!limit) return;
  stored.stepSlots?.delete(key);
  limits.exit(limit);
  due.freed([limit]);
}

/** Frees an execution: no worker holds it any more, and from its due time on it can be claimed. */
export function release(state: MemoryState, stored: StoredExecution, given: Release): void {
  const { status } = given;
  if (status === 'queued') {
    if (stored.status !== 'queued') state.queued += 1;
    stored.startedAt = undefined;
    const { id, startBy } = stored.execution;
    if (startBy !== undefined && stored.limits?.waitsIn)
      insert(state.expiring, { id, dueAt: startBy, nr: state.registered });
  }
  stored.status = status;
  setWorker(state, stored, undefined);
  stored.waitsFor = given.waitsFor;
  if (given.handover) {
    stored.handover = given.handover;
    stored.resumedAt = undefined;
  }
  park(state, stored);
  setDueAt(state, stored, dueWhenReleased(given, dueFactsOf(stored)));
}

/** @param dueAt - undefined when the execution is not free any more */
export function setDueAt({ due }: MemoryState, stored: StoredExecution, dueAt: number | undefined): void {
  if (stored.dueAt === dueAt) return;
  stored.dueAt = dueAt;
  if (dueAt !== undefined && stored.status !== 'paused')
    due.add(stored.execution, dueAt, stored.slot, stored.limits?.waitsIn);
}

/** A free execution that is to be paused is not due any more. */
export function park(state: MemoryState, stored: StoredExecution): void {
  const { pause, status } = stored;
  if (!pause || status === 'paused') return;
  if (status === 'queued') state.queued -= 1;
  pause.from = status;
  stored.status = 'paused';
}

/** An execution is not paused any more. If it was free, it is due as before. @param dueAt - Unix ms */
export function unpark(state: MemoryState, stored: StoredExecution, dueAt: number): void {
  const { from } = stored.pause ?? {};
  stored.pause = undefined;
  if (from === undefined) return;
  stored.status = from;
  if (from === 'queued') state.queued += 1;
  stored.dueAt = undefined;
  setDueAt(state, stored, dueAt);
}

/** A free execution leaves its queue, and needs no slots of limits any more. */
export function leaveQueue(state: MemoryState, stored: StoredExecution, dueAt: number): void {
  unpark(state, stored, dueAt);
  if (stored.limits?.waitsIn) {
    stored.limits.waitsIn = undefined;
    stored.dueAt = undefined;
  }
  setDueAt(state, stored, dueAt);
}

/** Requests the cancellation of an execution that has not ended. @param now - Unix ms */
export function cancelLater(state: MemoryState, stored: StoredExecution, now: number): void {
  if (stored.cancelRequestedAt !== undefined) return;
  stored.cancelRequestedAt = now;
  if (stored.worker !== undefined) state.workers.get(stored.worker)?.cancelRequested.add(stored.execution.id);
  else leaveQueue(state, stored, dueWhenCancelled(stored.dueAt as number, now));
}

/** Executions that should have begun by now leave their queues. */
export function expire(state: MemoryState, now: number): void {
  const { expiring, executions } = state;
  for (let first = expiring[0]; first && first.dueAt <= now; first = expiring[0]) {
    removeFirst(expiring);
    const stored = executions.get(first.id);
    if (stored?.status === 'queued' && stored.limits?.waitsIn && stored.worker === undefined)
      leaveQueue(state, stored, Math.min(stored.dueAt ?? now, now));
  }
}

/** @param counted - see `CommitEntry` */
export function finish(state: MemoryState, stored: StoredExecution, end: ExecutionEnd, counted?: string): void {
  if (stored.status === 'queued') state.queued -= 1;
  stored.status = 'running';
  setWorker(state, stored, undefined);
  stored.handover = undefined;
  const { limits } = stored;
  if (limits) {
    if (limits.keeps) {
      takeSlots(limits.keeps, -1, 0);
      state.due.freed(limits.keeps);
    }
    for (const lane of state.limits.leave(stored.execution.id, limits.joined)) state.due.forget(lane);
  }
  setDueAt(state, stored, undefined);
  stored.end = end;
  if (counted !== undefined) state.tallies.add(counted);
  // An array that grew has unused places, which the copy does not have.
  stored.steps = stored.steps.slice();
  stored.indexByKey = undefined;
  state.capacity.keepFinished(stored);
}
