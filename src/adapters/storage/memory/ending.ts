/** Cancellation requests, the check for ended executions, and the deletion of old ones. */

import { memoryBytes } from '../../../engine/base/json/measure-json.ts';
import { lineOfEnd } from '../../../engine/events/tallies/end-line.ts';
import { changesOf } from '../../../engine/execution/stored-execution.ts';
import type { ExecutionStore } from '../../../engine/storage/storage.port.ts';
import { cancelLater, finish, type MemoryState, setDueAt } from './memory-state.ts';
import { putStep, type StoredExecution } from './stored-execution.ts';

/** The methods of the storage port in this file. */
type Ending = Pick<ExecutionStore, 'requestCancel' | 'findEnded' | 'getPinned' | 'repin' | 'purge' | 'delete'>;

export function createEnding(state: MemoryState): Ending {
  const { executions, workers, capacity } = state;
  return {
    requestCancel(id, now, end) {
      const stored = executions.get(id);
      if (!stored) return undefined;
      if (stored.end) return stored.end.status;
      // A child execution is claimed and ended by a worker, which then resumes the parent.
      if (
        stored.worker === undefined &&
        stored.status === 'queued' &&
        stored.execution.trigger.parentId === undefined
      ) {
        const changes = changesOf(stored.handover);
        finish(state, stored, changes ? { ...end, ...changes } : end, lineOfEnd(stored.execution, undefined, end));
        return end.status;
      }
      cancelLater(state, stored, now);
      return stored.status;
    },
    getPinned(id) {
      const stored = executions.get(id);
      if (!stored) return undefined;
      const { execution, epoch, worker, end, handover, startedAt } = stored;
      const isFree = worker === undefined && end === undefined;
      return { version: execution.version, epoch, handover, isFree, begun: startedAt !== undefined };
    },
    repin(id, { epoch, from, to, handover, dueAt, step, start }) {
      const stored = executions.get(id);
      if (!stored || stored.worker !== undefined || stored.end || stored.epoch !== epoch) return false;
      if (stored.execution.version !== from) return false;
      stored.execution = { ...stored.execution, version: to };
      stored.handover = handover;
      const { bytes } = stored;
      if (step || start) stored.epoch += 1;
      if (step) putStep(stored, step);
      if (start) {
        const { input, deadlineAt } = start;
        stored.bytes += memoryBytes(input) - memoryBytes(stored.execution.input);
        stored.execution = { ...stored.execution, input, ...(deadlineAt !== undefined && { deadlineAt }) };
        setDueAt(state, stored, start.dueAt);
      }
      capacity.grow(stored.bytes - bytes);
      if (dueAt !== undefined && dueAt < (stored.dueAt ?? dueAt)) setDueAt(state, stored, dueAt);
      return true;
    },
    findEnded: (ids) => ids.filter((id) => executions.get(id)?.end !== undefined || !executions.has(id)),
    purge({ worker, before, limit, after = '' }) {
      // The worker that registered first deletes for all.
      if (workers.keys().next().value !== worker) return undefined;
      const old = [...executions.keys()]
        .filter((id) => id > after && (executions.get(id)?.end?.finishedAt ?? before) < before)
        .sort();
      const batch = old.slice(0, limit);
      for (const id of batch) capacity.remove(executions.get(id) as StoredExecution);
      const last = batch.at(-1);
      return old.length > limit && last ? { deleted: batch.length, next: last } : { deleted: batch.length };
    },
    delete(ids) {
      const ended = [...new Set(ids)].filter((id) => executions.get(id)?.end);
      for (const id of ended) capacity.remove(executions.get(id) as StoredExecution);
      return ended.length;
    },
  };
}
