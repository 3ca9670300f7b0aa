/** The workers of the memory storage: registration, leases, and what happens to the executions of dead workers. */

import type { WorkerStore } from '../../../engine/storage/storage.port.ts';
import { type MemoryState, release } from './memory-state.ts';
import { bearsBlame, type StoredExecution } from './stored-execution.ts';

/** The blame for one death, in thousandths. */
const BLAME = 1000;

export function memoryWorkers(state: MemoryState): WorkerStore {
  const { executions, workers } = state;

  const heldBy = (worker: string) => {
    const held: StoredExecution[] = [];
    for (const stored of executions.values()) if (stored.worker === worker) held.push(stored);
    return held;
  };

  /** @param count - how many executions share the blame for this death */
  const blame = (stored: StoredExecution, count: number) => {
    const share = BLAME / (count * Math.max(1, state.registered - stored.blamedAt));
    stored.blame = stored.blame > 0 ? stored.blame + Math.floor(share) : 1;
    stored.blamedAt = state.registered;
  };

  /** Removes a worker and frees its executions. @returns how many it freed */
  const remove = (worker: string, now: number, recoveries: number, blameFrom = Number.POSITIVE_INFINITY): number => {
    workers.delete(worker);
    const held = heldBy(worker);
    const blamed = new Set(held.filter((stored) => bearsBlame(stored, blameFrom)));
    for (const stored of held) {
      stored.recoveries += recoveries;
      if (blamed.has(stored)) blame(stored, blamed.size);
      else stored.blame = 0;
      release(state, stored, { status: 'running', dueAt: now });
    }
    return held.length;
  };

  return {
    register(worker, { leaseUntil }) {
      const known = workers.get(worker);
      if (known) known.leaseUntil = leaseUntil;
      else {
        state.registered += 1;
        workers.set(worker, {
          leaseUntil,
          cancelRequested: new Set(),
          pauseRequested: new Set(),
          signalled: new Set(),
        });
      }
    },
    renew(worker, leaseUntil) {
      const known = workers.get(worker);
      if (known) known.leaseUntil = leaseUntil;
      return known !== undefined;
    },
    unregister(worker, now) {
      if (workers.has(worker)) remove(worker, now, 0);
    },
    reclaimFromDead(worker, now, blameFrom) {
      let freed = 0;
      for (const [other, { leaseUntil }] of [...workers]) {
        if (other !== worker && leaseUntil <= now) freed += remove(other, now, 1, blameFrom);
      }
      return { freed };
    },
    listHeld: (worker) => heldBy(worker).map(({ execution, epoch }) => ({ executionId: execution.id, epoch })),
  };
}
