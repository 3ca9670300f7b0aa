/** The signals of executions in the memory storage. */

import { memoryBytes } from '../../../engine/base/json/measure-json.ts';
import { dueWhenSignalled, type FreeExecution } from '../../../engine/execution/due.ts';
import type { NewSignal } from '../../../engine/execution/stored-execution.ts';
import type { SignalResult, SignalStore } from '../../../engine/storage/storage.port.ts';
import { type MemoryState, setDueAt } from './memory-state.ts';

/** The estimated memory of a signal without its payload. */
const SIGNAL_BYTES = 300;

export function memorySignals(state: MemoryState): SignalStore {
  const { executions, capacity } = state;
  return {
    put(signal) {
      if (executions.has(signal.executionId)) capacity.check();
      return storeSignal(state, signal);
    },
    list: (executionId, { name, after, limit }) =>
      (executions.get(executionId)?.signals ?? []).filter((signal) => signal.name === name).slice(after, after + limit),
    find: (executionId, id) => executions.get(executionId)?.signals?.find((signal) => signal.id === id),
  };
}

/**
 * Stores a signal. The worker that holds the execution is notified of it at its next `poll`; a free execution that
 * waits for the signal is due at once.
 */
export function storeSignal(state: MemoryState, signal: NewSignal): SignalResult {
  const { executions, workers, capacity } = state;
  const stored = executions.get(signal.executionId);
  if (!stored) return 'unknown';
  if (stored.signals?.some(({ id }) => id === signal.id)) return 'stored';
  if (stored.end) return 'ended';
  stored.signals ??= [];
  stored.signals.push(signal);
  stored.signalledAt ??= signal.createdAt;
  const bytes = SIGNAL_BYTES + memoryBytes(signal.payload);
  stored.bytes += bytes;
  if (stored.worker !== undefined) workers.get(stored.worker)?.signalled.add(signal.executionId);
  else setDueAt(state, stored, dueWhenSignalled(stored as FreeExecution, signal));
  capacity.grow(bytes);
  return 'stored';
}
