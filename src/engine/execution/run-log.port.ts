/** The run log port: the ordered, durable log of one run. An engine gives each run its log; the journal is built on it. */

import type { MaybePromise } from '../operation/operation.port.ts';
import type { RecordedTransaction } from '../storage/recorded-transaction.port.ts';
import type { CommitResult, SignalQuery, StoredState } from '../storage/storage.port.ts';
import type { ExecutionReader } from './execution-store.port.ts';
import type { CommitEntry, NewSignal } from './stored-execution.ts';

export interface RunLog {
  /**
   * Stores an entry as a whole or not at all. It is durable when the call returns. Entries of one run are stored in the order of the
   * calls. The engine repeats a write that fails, as long as that can help.
   * @throws TypeError, RangeError, INVALID_OUTPUT or INVALID_INPUT if a value can't be stored. Any other failure means that nothing of
   *   this run is stored any more
   */
  write(entry: CommitEntry): MaybePromise<CommitResult>;
  /** The state of an ensemble. Undefined if it was never set. @throws JournalLostError */
  readState(ensemble: string): MaybePromise<StoredState | undefined>;
  /** The signals of one name for an execution, in the order in which they arrived. @throws JournalLostError */
  listSignals(executionId: string, query: SignalQuery): MaybePromise<readonly NewSignal[]>;
  /** For a run that begins with a fold: it has not read all records. @throws JournalLostError */
  readonly executions?: Pick<ExecutionReader, 'get'>;
  /** See `Journal.transact`. Absent: the storage has no transactions for steps. */
  transact?(): RecordedTransaction;
  /** See `Journal.waitForLease`. Absent where no other process can run the execution. */
  waitForLease?(): Promise<void> | undefined;
}
