/**
 * Limits the memory of the memory storage. Finished executions are dropped, the oldest first, to leave memory for
 * unfinished ones.
 */

import { OrchestratorError } from '../../../engine/base/errors.ts';
import type { StoredExecution } from './stored-execution.ts';

export interface MemoryCapacity {
  /** An unfinished execution takes more memory. */
  grow(bytes: number): void;
  /** An execution has ended. It is kept until its memory is needed. */
  keepFinished(stored: StoredExecution): void;
  /** Deletes a finished execution. */
  remove(stored: StoredExecution): void;
  /** @throws OVERLOADED when unfinished executions take all of the memory */
  check(): void;
}

/**
 * How many used places are removed from the list at a time: removing the first element of an array moves all the
 * others.
 */
const REMOVED_AT_ONCE = 1000;

/**
 * @param remove - deletes an execution
 * @param keep - how many finished executions are kept
 * @param keepBytes - the memory of all executions together
 */
export function memoryCapacity(
  executions: ReadonlyMap<string, StoredExecution>,
  remove: (stored: StoredExecution) => void,
  keep: number,
  keepBytes: number,
): MemoryCapacity {
  /** The ids of finished executions from `oldest` on, the oldest first. Some may be deleted already. */
  let finished: string[] = [];
  let oldest = 0;
  let unfinishedBytes = 0;
  let finishedBytes = 0;

  const dropOldest = () => {
    const id = finished[oldest] as string;
    const stored = executions.get(id);
    // After a deletion, a new execution may have the same id.
    if (stored?.end) {
      remove(stored);
      finishedBytes -= stored.bytes;
    }
    oldest += 1;
    if (oldest < REMOVED_AT_ONCE || oldest < finished.length / 2) return;
    finished = finished.slice(oldest);
    oldest = 0;
  };
  const dropUntilItFits = () => {
    while (
      oldest < finished.length &&
      (finished.length - oldest > keep || unfinishedBytes + finishedBytes > keepBytes)
    ) {
      dropOldest();
    }
  };

  return {
    grow(bytes) {
      unfinishedBytes += bytes;
      if (unfinishedBytes + finishedBytes > keepBytes) dropUntilItFits();
    },
    keepFinished(stored) {
      unfinishedBytes -= stored.bytes;
      finishedBytes += stored.bytes;
      finished.push(stored.execution.id);
      dropUntilItFits();
    },
    remove(stored) {
      remove(stored);
      finishedBytes -= stored.bytes;
    },
    check() {
      if (unfinishedBytes <= keepBytes) return;
      const message = `unfinished executions take all of the ${keepBytes} bytes of the memory storage (\`keepBytes\`); try again later, or use a storage on disk`;
      throw new OrchestratorError('OVERLOADED', message, { details: { limit: keepBytes } });
    },
  };
}
