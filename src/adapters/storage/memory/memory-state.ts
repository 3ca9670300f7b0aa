/** Everything that the memory storage holds about executions, and how an execution becomes free or ends. */

import { dueWhenReleased } from '../../../engine/execution/due.ts';
import type { ExecutionEnd, Release } from '../../../engine/execution/stored-execution.ts';
import type { DocumentStore, StoredState } from '../../../engine/storage/storage.port.ts';
import { type MemoryCapacity, memoryCapacity } from './capacity.ts';
import { type MemoryDeliveries, memoryDeliveries } from './deliveries.ts';
import { createDueQueue, type DueQueue } from './due-queue.ts';
import { memorySlots, type Slots } from './slots.ts';
import { dueFactsOf, type StoredExecution } from './stored-execution.ts';

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
  /** The free executions. */
  readonly due: DueQueue;
  readonly capacity: MemoryCapacity;
}

export interface RegisteredWorker {
  /** Unix ms. */
  leaseUntil: number;
  /** Executions with a cancellation request since the worker's last `poll`. */
  readonly cancelRequested: Set<string>;
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
    due: createDueQueue((id, dueAt) => executions.get(id)?.dueAt === dueAt, slots.isFree),
    capacity: memoryCapacity(executions, remove, keep, keepBytes),
  };
}

/** A worker holds an execution from now on, or with `undefined` none. The slot follows. */
export function setWorker({ slots }: MemoryState, stored: StoredExecution, worker: string | undefined): void {
  const { slot } = stored;
  if (slot && stored.worker !== undefined) slots.give(slot);
  if (slot && worker !== undefined) slots.take(slot);
  stored.worker = worker;
}

/** Frees an execution: no worker holds it any more, and from its due time on it can be claimed. */
export function release(state: MemoryState, stored: StoredExecution, given: Release): void {
  const { status } = given;
  if (status === 'queued') {
    if (stored.status !== 'queued') state.queued += 1;
    stored.startedAt = undefined;
  }
  stored.status = status;
  setWorker(state, stored, undefined);
  stored.waitsFor = given.waitsFor;
  if (given.handover) {
    stored.handover = given.handover;
    stored.resumedAt = undefined;
  }
  setDueAt(state, stored, dueWhenReleased(given, dueFactsOf(stored)));
}

/** @param dueAt - undefined when the execution is not free any more */
export function setDueAt({ due }: MemoryState, stored: StoredExecution, dueAt: number | undefined): void {
  if (stored.dueAt === dueAt) return;
  stored.dueAt = dueAt;
  if (dueAt !== undefined) due.add(stored.execution, dueAt, stored.slot);
}

export function finish(state: MemoryState, stored: StoredExecution, end: ExecutionEnd): void {
  if (stored.status === 'queued') state.queued -= 1;
  stored.status = 'running';
  setWorker(state, stored, undefined);
  stored.handover = undefined;
  setDueAt(state, stored, undefined);
  stored.end = end;
  // An array that grew has unused places, which the copy does not have.
  stored.steps = stored.steps.slice();
  stored.indexByKey = undefined;
  state.capacity.keepFinished(stored);
}
