/** The part of a storage that keeps the signals of executions. */

import type { NewSignal } from '../execution/stored-execution.ts';
import type { MaybePromise } from '../operation/operation.port.ts';

export interface SignalQuery {
  readonly name: string;
  /** How many signals of this name are skipped. */
  readonly after: number;
  readonly limit: number;
}

/**
 * The result of a call that stores a signal.
 *
 * | result | meaning |
 * |---|---|
 * | stored | the signal is stored, now or by an earlier call |
 * | unknown | the execution is unknown: nothing is stored |
 * | ended | the execution has ended: nothing is stored |
 */
export type SignalResult = 'stored' | 'unknown' | 'ended';

/** Reads signals. */
export interface SignalReader {
  /** The signals of one name, in the order in which they arrived. */
  list(executionId: string, query: SignalQuery): MaybePromise<readonly NewSignal[]>;

  /** One signal, by its id. Undefined if there is none. */
  find(executionId: string, id: string): MaybePromise<NewSignal | undefined>;
}

export interface SignalStore extends SignalReader {
  /**
   * Stores a signal after the earlier ones, if the execution has not ended. `poll` reports it to the worker that holds the
   * execution. An execution that waits for the signal is due at once. So is one that is released as waiting before its worker
   * has seen the signal. A repeated call with the same id changes nothing, even after the execution has ended.
   */
  put(signal: NewSignal): MaybePromise<SignalResult>;
}
