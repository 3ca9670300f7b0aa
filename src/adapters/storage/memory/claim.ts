/** Claims free executions that are due, finds when the next one is due and what holds it up, and counts the queue. */

import {
  type ExecutionStore,
  MAX_POSITION,
  type StepOfExecution,
} from '../../../engine/execution/execution-store.port.ts';
import { type FlowLimit, limitId } from '../../../engine/execution/limits/flow-limit.ts';
import type { ClaimedExecution } from '../../../engine/execution/stored-execution.ts';
import { freeOf } from './limits.ts';
import { expire, freeStepSlot, type MemoryState, setWorker } from './memory-state.ts';
import { countSignals, type StoredExecution } from './stored-execution.ts';

/** The methods of the storage port in this file. */
type Claiming = Pick<
  ExecutionStore,
  'claim' | 'take' | 'poll' | 'countQueued' | 'putLimits' | 'closeLimits' | 'takeSlot' | 'freeSlot' | 'limitWaits'
>;

/** Identifies the slot of a step in its execution. */
const placeOf = (limit: FlowLimit, { key }: StepOfExecution) => `${limitId(limit)} ${key}`;

export function createClaiming(state: MemoryState): Claiming {
  const { executions, workers, due, slots, limits } = state;
  return {
    claim(worker, query) {
      if (!workers.has(worker)) return [];
      expire(state, query.now);
      return due.take(query, (id) => claimOne(state, executions.get(id) as StoredExecution, worker, query.now));
    },
    take(worker, id, now) {
      const stored = executions.get(id);
      // Only a free execution has an instant at which it is due.
      if (!workers.has(worker) || stored?.dueAt === undefined) return undefined;
      if (stored.slot && !slots.isFree(stored.slot)) return undefined;
      if (stored.limits?.waitsIn) return undefined;
      return claimOne(state, stored, worker, now);
    },
    poll(worker, excludeVersions) {
      const [late] = state.expiring;
      const instants = [due.next(excludeVersions), late?.dueAt].filter((at) => at !== undefined);
      const nextDueAt = instants.length > 0 ? Math.min(...instants) : undefined;
      const known = workers.get(worker);
      const heldOf = (ids: Set<string> | undefined) =>
        takeAll(ids).filter((id) => executions.get(id)?.worker === worker);
      const cancelRequested = heldOf(known?.cancelRequested);
      const signalled = heldOf(known?.signalled).map((executionId) => ({
        executionId,
        signals: countSignals(executions.get(executionId) as StoredExecution),
      }));
      const isToPause = (id: string) => {
        const stored = executions.get(id);
        return stored?.worker === worker && stored.pause !== undefined;
      };
      const toPause = known?.pauseRequested ?? new Set<string>();
      for (const id of toPause) if (!isToPause(id)) toPause.delete(id);
      const pauseRequested = [...toPause];
      const asked = pauseRequested.length > 0 ? { pauseRequested } : {};
      const news = { ...asked, cancelRequested, signalled, ...(due.waitsForSlot() && { slotsTaken: true }) };
      return nextDueAt === undefined ? news : { nextDueAt, ...news };
    },
    countQueued: (limit) => Math.min(state.queued, limit),
    putLimits: (given) => due.freed(limits.put(given)),
    closeLimits: limits.close,
    takeSlot(limit, step, now) {
      const stored = executions.get(step.executionId);
      if (stored?.worker === undefined) return false;
      stored.stepSlots ??= new Map();
      const place = placeOf(limit, step);
      const taken = stored.stepSlots.get(place) ?? limits.enter(limit, now);
      if (taken) stored.stepSlots.set(place, taken);
      return taken !== undefined;
    },
    freeSlot(limit, step) {
      const stored = executions.get(step.executionId);
      if (stored) freeStepSlot(state, stored, placeOf(limit, step));
    },
    limitWaits(id, now) {
      const { limits: of, dueAt } = executions.get(id) ?? {};
      const waitsIn = of?.waitsIn;
      if (!waitsIn || dueAt === undefined || dueAt > now) return [];
      const full = waitsIn.all.filter((limit) => freeOf(limit, now) <= 0);
      if (full.length === 0) return [];
      let position = 1;
      for (const [at, other] of executions) {
        if (other.limits?.waitsIn?.queue !== waitsIn.queue || other.dueAt === undefined || position === MAX_POSITION)
          continue;
        if (other.dueAt < dueAt || (other.dueAt === dueAt && at < id)) position += 1;
      }
      return full.map(({ name, key }) => ({ name, key, position, since: dueAt }));
    },
  };
}

function claimOne(state: MemoryState, stored: StoredExecution, worker: string, now: number): ClaimedExecution {
  const begun = stored.startedAt !== undefined;
  if (stored.status === 'queued') state.queued -= 1;
  if (stored.status === 'waiting') stored.blame = 0;
  stored.claimedAt = now;
  stored.status = 'running';
  setWorker(state, stored, worker, now);
  stored.dueAt = undefined;
  stored.epoch += 1;
  stored.startedAt ??= now;
  stored.signalledAt = undefined;
  stored.resumedAt ??= now;
  const { execution, epoch, startedAt, recoveries, blame, handover, resumedAt } = stored;
  const cancelRequested = stored.cancelRequestedAt !== undefined;
  const signals = countSignals(stored);
  const claimed = { execution, epoch, startedAt, begun, recoveries, blame, cancelRequested, signals, resumedAt };
  const known = handover ? { ...claimed, handover } : claimed;
  return stored.pause ? { ...known, pauseRequested: true } : known;
}

const NONE: readonly string[] = [];

function takeAll(ids: Set<string> | undefined): readonly string[] {
  if (!ids || ids.size === 0) return NONE;
  const all = [...ids];
  ids.clear();
  return all;
}
