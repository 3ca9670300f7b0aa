/** Pauses executions, and ends pauses. */

import { type ExecutionStore, PAUSE_SCOPES, type PauseScope } from '../../../engine/execution/execution-store.port.ts';
import { type MemoryState, park, unpark } from './memory-state.ts';
import type { StoredExecution } from './stored-execution.ts';

/** The methods of the storage port in this file. */
type Pausing = Pick<ExecutionStore, 'pause' | 'resume' | 'pauseAll' | 'resumeAll'>;

export function createPausing(state: MemoryState): Pausing {
  const { executions } = state;
  return {
    pause(id, scope) {
      const stored = executions.get(id);
      if (stored && isPausable(stored)) pauseOne(state, stored, scope);
      return stored && (stored.end?.status ?? stored.status);
    },
    resume(id, scope) {
      const stored = executions.get(id);
      if (stored && isPausedBy(stored, scope)) resumeOne(state, stored, scope);
      return stored && (stored.end?.status ?? stored.status);
    },
    pauseAll(scope, ensemble, limit) {
      const left = [...executions.values()].filter(
        (stored) =>
          isPausable(stored) &&
          !isPausedBy(stored, scope) &&
          (ensemble === undefined || stored.execution.ensemble === ensemble),
      );
      const some = left.slice(0, limit);
      for (const stored of some) pauseOne(state, stored, scope);
      return some.length;
    },
    resumeAll(scope, except, limit) {
      const paused = [...executions.values()].filter(
        (stored) => isPausedBy(stored, scope) && !except.includes(stored.execution.ensemble),
      );
      const some = paused.slice(0, limit);
      for (const stored of some) resumeOne(state, stored, scope);
      return some.length;
    },
  };
}

function isPausable({ end, cancelRequestedAt }: StoredExecution): boolean {
  return !end && cancelRequestedAt === undefined;
}

function pauseOne(state: MemoryState, stored: StoredExecution, scope: PauseScope): void {
  stored.pause ??= { scopes: 0, from: undefined };
  stored.pause.scopes |= PAUSE_SCOPES[scope];
  if (stored.worker === undefined) park(state, stored);
  else state.workers.get(stored.worker)?.pauseRequested.add(stored.execution.id);
}

function isPausedBy({ pause, end }: StoredExecution, scope: PauseScope): boolean {
  return !end && ((pause?.scopes ?? 0) & PAUSE_SCOPES[scope]) > 0;
}

function resumeOne(state: MemoryState, stored: StoredExecution, scope: PauseScope): void {
  if (!stored.pause) return;
  stored.pause.scopes &= ~PAUSE_SCOPES[scope];
  if (stored.pause.scopes === 0) unpark(state, stored, stored.dueAt ?? 0);
}
