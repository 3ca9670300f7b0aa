/** What a failed write means for its run. */

import { isOrchestratorError, messageOf, OrchestratorError } from '../base/errors.ts';
import { JournalLostError } from '../execution/journal.port.ts';
import type { CommitEntry } from '../execution/stored-execution.ts';
import { RefusedTransactionError } from '../storage/recorded-transaction.port.ts';
import type { CommitResult } from '../storage/storage.port.ts';

/**
 * Turns the failure of a write into what it means for the run.
 * @throws INVALID_OUTPUT when the storage can't hold a value of the entry, RefusedTransactionError as it is, otherwise JournalLostError
 */
export function failWrite(cause: unknown, { steps, end }: CommitEntry): never {
  if (cause instanceof RefusedTransactionError) throw cause;
  if (!isUnstorable(cause)) throw new JournalLostError(cause);
  const last = steps.at(-1);
  const what = end || !last ? 'the end of the execution' : `the result at ${last.key}`;
  throw new OrchestratorError('INVALID_OUTPUT', `${what} could not be stored: ${messageOf(cause)}`, { cause });
}

/** @throws JournalLostError when the entry was refused because another worker holds the execution */
export function checkWritten(result: CommitResult): CommitResult {
  if (result === 'fenced') throw new JournalLostError();
  if (result === 'exists')
    throw new OrchestratorError('INTERNAL', 'the storage answered `exists` to an entry that starts nothing');
  return result;
}

/** Whether the value is the cause, and not the storage: no storage can hold it. */
export function isUnstorable(thrown: unknown): boolean {
  return (
    isCodeError(thrown) || isOrchestratorError(thrown, 'INVALID_OUTPUT') || isOrchestratorError(thrown, 'INVALID_INPUT')
  );
}

/** Whether a failure comes from the code or from a value, such as a text that is too long. */
export function isCodeError(thrown: unknown): boolean {
  return thrown instanceof RangeError || thrown instanceof TypeError;
}
