/** The transaction of a step: a storage that has one writes the rows of the app and the record of the step together. */

import type { CommitEntry } from '../execution/stored-execution.ts';
import type { StepTransaction } from '../operation/operation.port.ts';

/** A transaction in which a step writes, and its record is stored. */
export interface RecordedTransaction extends StepTransaction {
  /** Whether a statement has run. Otherwise there is nothing to commit. */
  readonly hasBegun: boolean;
  /**
   * Stores an entry and commits.
   * @returns `fenced` if the entry was refused: then all is rolled back
   * @throws {@link RefusedTransactionError} if the database has refused what the step wrote: then all is rolled back. Any other failure means
   *   that nobody knows whether it was committed
   */
  commit(entry: CommitEntry): Promise<'stored' | 'fenced'>;
  /** Never fails. */
  rollBack(): Promise<void>;
}

/** The database has refused what a step wrote: the `cause`. */
export class RefusedTransactionError extends Error {
  constructor(cause: unknown) {
    super('the database refused the transaction of a step', { cause });
    this.name = 'RefusedTransactionError';
  }
}
