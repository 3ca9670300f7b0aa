/** What the journals of one engine share, and what the answers to their writes mean. */

import { messageOf, OrchestratorError } from '../../engine/errors.ts';
import type { Json } from '../../engine/json.ts';
import type { CommitEntry, StepRecord } from '../../engine/model/stored-execution.ts';
import type { Clock } from '../../engine/ports/clock.ts';
import type { RunStorage } from '../../engine/ports/execution-engine.ts';
import { JournalLostError, type WaitNote } from '../../engine/ports/journal.ts';
import type { CommitResult } from '../../engine/ports/storage.ts';
import type { CommitWriter } from './commit-writer.ts';
import type { Lease } from './owner.ts';
import { isUnstorable } from './patience.ts';

/** A run that has to wait for so long is given up meanwhile: it costs no memory, and no place among those at work. */
export const SUSPEND_FROM_MS = 1000;

export interface JournalParts {
  readonly storage: RunStorage;
  readonly clock: Clock;
  readonly writer: CommitWriter;
  /** Undefined where nobody else can take over. */
  readonly lease: Lease | undefined;
}

/** Who is told that nothing of a run is at work, and that it is to go on at an instant. */
export interface Suspendable {
  suspend(dueAt: number): void;
}

/** @param of - of a wait's end: the signal's name; otherwise without a name */
export function toNote(key: string, output: Json, { name, at }: WaitNote): StepRecord {
  return { key, name, status: 'completed', attempts: 1, startedAt: at, duration: 0, output, note: true };
}

/** @throws JournalLostError */
export function lose(cause: unknown): never {
  throw new JournalLostError(cause);
}

/**
 * What a write came to that failed.
 * @throws INVALID_OUTPUT when the storage can't hold what is in the entry, otherwise JournalLostError
 */
export function fail(cause: unknown, { steps, end }: CommitEntry): never {
  if (!isUnstorable(cause)) lose(cause);
  const last = steps.at(-1);
  const what = end || !last ? 'the end of the execution' : `the result at ${last.key}`;
  throw new OrchestratorError('INVALID_OUTPUT', `${what} could not be stored: ${messageOf(cause)}`, { cause });
}

/** @throws JournalLostError when the entry was refused */
export function check(result: CommitResult): CommitResult {
  if (result === 'fenced') throw new JournalLostError();
  if (result === 'exists') throw new OrchestratorError('INTERNAL', 'an entry without a start was answered `exists`');
  return result;
}
