/** Writes commits to the memory storage: each entry under its fence, wholly or not at all. */

import type { Charge } from '../../../engine/access/quota.ts';
import type { Json } from '../../../engine/base/json/json.ts';
import { memoryBytes } from '../../../engine/base/json/measure-json.ts';
import { type FlowLimit, queueOf } from '../../../engine/execution/limits/flow-limit.ts';
import type {
  CommitEntry,
  ExpectedDocument,
  NewExecution,
  StateChange,
} from '../../../engine/execution/stored-execution.ts';
import type { CommitResult, Storage, StoredDocument } from '../../../engine/storage/storage.port.ts';
import { cancelLater, finish, type MemoryState, release, setWorker, toChargeKey } from './memory-state.ts';
import { storeSignal } from './signals.ts';
import { isHeldBy, isRepeated, newStoredExecution, putStep, type StoredExecution } from './stored-execution.ts';

export function createCommit(state: MemoryState): Storage['commit'] {
  const { executions, capacity } = state;
  return (worker, batch) => {
    for (const { start: execution } of batch) {
      // A child execution is never refused: its parent was accepted, and can't end without it.
      if (execution && execution.trigger.parentId === undefined && !executions.has(execution.id)) capacity.check();
    }
    const commitOne = (entry: CommitEntry): CommitResult => {
      const result = commitEntry(state, worker, entry);
      if (entry.deliveries && result === 'stored')
        for (const delivery of entry.deliveries) state.deliveries.put(delivery);
      return result;
    };
    return batch.length === 1 ? [commitOne(batch[0] as CommitEntry)] : batch.map(commitOne);
  };
}

function commitEntry(state: MemoryState, worker: string, entry: CommitEntry): CommitResult {
  const { executions, capacity } = state;
  if (entry.start) return startExecution(state, worker, entry, entry.start);
  const stored = executions.get(entry.executionId);
  if (!stored) return 'fenced';
  if (!isHeldBy(stored, worker, entry.epoch)) return isRepeated(stored, entry) ? 'stored' : 'fenced';
  if (entry.state && !changeState(state, entry.state)) return isRepeated(stored, entry) ? 'stored' : 'state-conflict';
  const { bytes } = stored;
  for (const step of entry.steps) putStep(stored, step);
  if (entry.end) stored.bytes += memoryBytes(entry.end.output);
  if (entry.end?.error) stored.bytes += memoryBytes(entry.end.error as unknown as Json);
  capacity.grow(stored.bytes - bytes);
  if (entry.end) finish(state, stored, entry.end, entry.counted);
  else if (entry.release) release(state, stored, entry.release);
  if (entry.signals) for (const signal of entry.signals) storeSignal(state, signal);
  return 'stored';
}

/** With a release, the execution is free from the start, and the worker need not be registered. */
function startExecution(state: MemoryState, worker: string, entry: CommitEntry, execution: NewExecution): CommitResult {
  const { executions, keys, workers, capacity } = state;
  const { id, idempotencyKey: key } = execution;
  const known = executions.get(id);
  // An execution's seed is random, so an equal seed means the same start.
  if (known) return known.execution.seed === execution.seed ? 'stored' : 'exists';
  if (key !== undefined && keys.has(key)) return 'exists';
  if (!entry.release && !workers.has(worker)) return 'fenced';
  const { charge, expects } = entry;
  if (entry.state && !isOfVersion(state, entry.state)) return 'state-conflict';
  if (expects && !isAsExpected(state, expects, execution.createdAt)) return 'stale';
  if (charge && !isWithinQuota(state, charge)) return 'quota-exceeded';
  const slot = charge?.slots === undefined ? undefined : { account: charge.account, slots: charge.slots };
  if (slot && !entry.release && !state.slots.isFree(slot)) return 'slots-taken';
  const { limits, createdAt } = execution;
  if (limits && (entry.release || !mayTakeSlots(state, execution, limits))) {
    if (state.limits.isFull(limits, createdAt)) return 'queue-full';
    if (!entry.release) return 'slots-taken';
  }
  if (charge) pay(state, charge);
  if (entry.state) changeState(state, entry.state);
  const stored = newStoredExecution(execution, entry.epoch, slot, limits && state.limits.join(id, limits, createdAt));
  executions.set(id, stored);
  if (key !== undefined) keys.set(key, id);
  for (const step of entry.steps) putStep(stored, step);
  capacity.grow(stored.bytes);
  if (entry.signals) for (const signal of entry.signals) storeSignal(state, signal);
  if (entry.release) release(state, stored, entry.release);
  else {
    setWorker(state, stored, worker, createdAt);
    stored.startedAt = createdAt;
    if (entry.end) finish(state, stored, entry.end, entry.counted);
  }
  if (limits)
    for (const old of state.limits.tooMany(limits, createdAt))
      cancelLater(state, executions.get(old) as StoredExecution, createdAt);
  return 'stored';
}

/** Whether each limit has a free slot that nobody waits for. */
function mayTakeSlots({ limits, due }: MemoryState, { createdAt }: NewExecution, given: readonly FlowLimit[]): boolean {
  return limits.mayJoin(given, createdAt) && !due.isWaitedFor(queueOf(given), createdAt);
}

function isOfVersion({ states }: MemoryState, { ensemble, expectedVersion }: StateChange): boolean {
  return (states.get(ensemble)?.version ?? 0) === expectedVersion;
}

/** @returns false if the state has another version than the expected one */
function changeState(state: MemoryState, change: StateChange): boolean {
  if (!isOfVersion(state, change)) return false;
  const { ensemble, expectedVersion, value, updatedAt } = change;
  state.states.set(ensemble, { value, version: expectedVersion + 1, updatedAt });
  return true;
}

function isAsExpected({ documents }: MemoryState, { kind, name, tag }: ExpectedDocument, now: number): boolean {
  return (documents.read(kind, name, now) as StoredDocument | undefined)?.tag === tag;
}

function isWithinQuota({ charges }: MemoryState, { account, period, limit }: Charge): boolean {
  return limit === undefined || (charges.get(toChargeKey(account, period)) ?? 0) < limit;
}

function pay({ charges }: MemoryState, { account, period }: Charge): void {
  const key = toChargeKey(account, period);
  charges.set(key, (charges.get(key) ?? 0) + 1);
}
