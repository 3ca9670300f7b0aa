/** Claims free executions that are due, finds when the next one is due, and counts the queue. */

import type { ClaimedExecution } from '../../../engine/execution/stored-execution.ts';
import type { ExecutionStore } from '../../../engine/storage/storage.port.ts';
import { type MemoryState, setWorker } from './memory-state.ts';
import { countSignals, type StoredExecution } from './stored-execution.ts';

/** The methods of the storage port in this file. */
type Claiming = Pick<ExecutionStore, 'claim' | 'take' | 'poll' | 'countQueued'>;

export function createClaiming(state: MemoryState): Claiming {
  const { executions, workers, due, slots } = state;
  return {
    claim(worker, query) {
      if (!workers.has(worker)) return [];
      return due.take(query, (id) => claimOne(state, executions.get(id) as StoredExecution, worker, query.now));
    },
    take(worker, id, now) {
      const stored = executions.get(id);
      // Only a free execution has an instant at which it is due.
      if (!workers.has(worker) || stored?.dueAt === undefined) return undefined;
      if (stored.slot && !slots.isFree(stored.slot)) return undefined;
      return claimOne(state, stored, worker, now);
    },
    poll(worker, excludeVersions) {
      const nextDueAt = due.next(excludeVersions);
      const known = workers.get(worker);
      const heldOf = (ids: Set<string> | undefined) =>
        takeAll(ids).filter((id) => executions.get(id)?.worker === worker);
      const cancelRequested = heldOf(known?.cancelRequested);
      const signalled = heldOf(known?.signalled).map((executionId) => ({
        executionId,
        signals: countSignals(executions.get(executionId) as StoredExecution),
      }));
      const news = { cancelRequested, signalled, ...(due.waitsForSlot() && { slotsTaken: true }) };
      return nextDueAt === undefined ? news : { nextDueAt, ...news };
    },
    countQueued: (limit) => Math.min(state.queued, limit),
  };
}

function claimOne(state: MemoryState, stored: StoredExecution, worker: string, now: number): ClaimedExecution {
  const begun = stored.startedAt !== undefined;
  if (stored.status === 'queued') state.queued -= 1;
  if (stored.status === 'waiting') stored.blame = 0;
  stored.claimedAt = now;
  stored.status = 'running';
  setWorker(state, stored, worker);
  stored.dueAt = undefined;
  stored.epoch += 1;
  stored.startedAt ??= now;
  stored.signalledAt = undefined;
  stored.resumedAt ??= now;
  const { execution, epoch, startedAt, recoveries, blame, handover, resumedAt } = stored;
  const cancelRequested = stored.cancelRequestedAt !== undefined;
  const signals = countSignals(stored);
  const claimed = { execution, epoch, startedAt, begun, recoveries, blame, cancelRequested, signals, resumedAt };
  return handover ? { ...claimed, handover } : claimed;
}

const NONE: readonly string[] = [];

function takeAll(ids: Set<string> | undefined): readonly string[] {
  if (!ids || ids.size === 0) return NONE;
  const all = [...ids];
  ids.clear();
  return all;
}
