/** What the journals of one engine share, and what the answers to their writes mean. */

import { OrchestratorError } from '../../engine/errors.ts';
import type { Json } from '../../engine/json.ts';
import type { StepRecord } from '../../engine/model/stored-execution.ts';
import type { Clock } from '../../engine/ports/clock.ts';
import { JournalLostError, type WaitNote } from '../../engine/ports/journal.ts';
import type { CommitResult, Storage } from '../../engine/ports/storage.ts';
import type { CommitWriter } from './commit-writer.ts';
import type { Lease } from './owner.ts';
import type { Patience } from './patience.ts';

/** A run that has to wait for so long is given up meanwhile: it costs no memory, and no place among those at work. */
export const SUSPEND_FROM_MS = 1000;

export interface JournalParts {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly writer: CommitWriter;
  readonly patiently: Patience;
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

/** @throws JournalLostError when the entry was refused */
export function check(result: CommitResult): CommitResult {
  if (result === 'fenced') throw new JournalLostError();
  if (result === 'exists') throw new OrchestratorError('INTERNAL', 'an entry without a start was answered `exists`');
  return result;
}
