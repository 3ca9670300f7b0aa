/** How much a memory storage holds: what has ended makes room for what is at work, the oldest first. */

import { OrchestratorError } from '../../engine/errors.ts';
import type { Held } from './memory-execution.ts';

export interface MemoryRoom {
  /** Something at work takes so many bytes more. */
  grow(bytes: number): void;
  /** One that was at work has ended, and is kept for as long as there is room. */
  keep(held: Held): void;
  /** One that had ended was deleted. */
  deleted(held: Held): void;
  /** @throws OVERLOADED when what is at work takes all of the room */
  check(): void;
}

/** Places that were used are given back by so many at once: taking the first out of a list moves all the others. */
const GIVEN_BACK = 1000;

/**
 * @param keep - how many that have ended are kept
 * @param keepBytes - what all together may take
 */
export function memoryRoom(executions: Map<string, Held>, keep: number, keepBytes: number): MemoryRoom {
  /** Those that have ended, the oldest first; some may be deleted. */
  let ended: string[] = [];
  let oldest = 0;
  let bytesAtWork = 0;
  let bytesEnded = 0;

  const forgetOldest = () => {
    const id = ended[oldest] as string;
    const held = executions.get(id);
    // An id that was deleted may be in use again.
    if (held?.end) {
      executions.delete(id);
      bytesEnded -= held.bytes;
    }
    oldest += 1;
    if (oldest < GIVEN_BACK || oldest < ended.length / 2) return;
    ended = ended.slice(oldest);
    oldest = 0;
  };
  const makeRoom = () => {
    while (oldest < ended.length && (ended.length - oldest > keep || bytesAtWork + bytesEnded > keepBytes)) {
      forgetOldest();
    }
  };

  return {
    grow(bytes) {
      bytesAtWork += bytes;
      if (bytesAtWork + bytesEnded > keepBytes) makeRoom();
    },
    keep(held) {
      bytesAtWork -= held.bytes;
      bytesEnded += held.bytes;
      ended.push(held.execution.id);
      makeRoom();
    },
    deleted(held) {
      bytesEnded -= held.bytes;
    },
    check() {
      if (bytesAtWork <= keepBytes) return;
      const message = `what is at work and waiting takes all of the ${keepBytes} bytes that the memory storage holds (\`keepBytes\`); try again later, or use a storage on disk`;
      throw new OrchestratorError('OVERLOADED', message, { details: { limit: keepBytes } });
    },
  };
}
