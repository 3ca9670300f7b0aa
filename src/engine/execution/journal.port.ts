/** The journal port: stores and replays the records of one execution. An engine passes a journal to the interpreter. */

import type { Json, JsonObject } from '../base/json/json.ts';
import type { UsedComponent } from '../component/component.ts';
import type { MaybePromise, OperationContext } from '../operation/operation.port.ts';
import type { RecordedTransaction } from '../storage/recorded-transaction.port.ts';
import type { PendingWait, StepWaitKind } from './execution.ts';
import type { FoldedBlock, StepRecord } from './stored-execution.ts';

/**
 * Nothing of this run is stored any more: the execution belongs to another process, or the storage does not answer (the `cause`).
 * It is never a failure of the execution: the process that resumes it continues after the last stored result.
 */
export class JournalLostError extends Error {
  constructor(cause?: unknown) {
    super('nothing of this run is stored any more', cause === undefined ? undefined : { cause });
    this.name = 'JournalLostError';
  }
}

/** A change of the ensemble's state by a step. */
export interface StateUpdate {
  /**
   * Computes the change from the newest state. Called again if another execution has changed the state in the meantime.
   * @param current - undefined if the state was never set
   * @returns the record to store, and the new state. The record is a failed one if the change can't be computed
   */
  next(
    current: JsonObject | undefined,
    record: StepRecord,
  ): { readonly record: StepRecord; readonly value?: JsonObject };
  /** Called once, after the new state is stored. */
  stored(value: JsonObject): void;
}

export interface StepOptions {
  /** No step runs after this one: its record may be stored together with the end. */
  readonly last: boolean;
  readonly state?: StateUpdate | undefined;
}

/**
 * Stores the record of an attempt, and returns the stored one. Undefined stands for an attempt that a stopped run dropped.
 * @param within - the transaction in which the step has written. @throws RefusedTransactionError, then nothing is stored
 */
export type StoreRecord = (
  record: StepRecord | undefined,
  within?: RecordedTransaction,
) => MaybePromise<StepRecord | undefined>;

/** A signal that a wait took, as its decision records it. */
export interface TakenSignal {
  /** The id of the signal. */
  readonly signal: string;
  readonly payload: Json;
  /** Unix ms at which it was taken. */
  readonly at: number;
}

/** Describes a decision about the end of a wait, or about a part of an attempt, so that it is found without its payload. */
export interface DecisionFacts {
  /** The name of the signal, the model or the tool. */
  readonly name: string;
  /** Unix ms at which the wait ended, or the part began. */
  readonly at: number;
  /** How long the part took, ms. */
  readonly duration?: number;
}

/** What a branch waits for, and at which step. */
export interface WaitPlace extends Omit<PendingWait, 'since' | 'until'> {
  readonly kind: StepWaitKind;
}

/** What is about to run. */
export interface AttemptedStep {
  readonly operation: { readonly name: string };
  /** The paths of what reads secrets: in its `config` and its `input`, which is the first part of each. */
  readonly secrets: readonly (readonly (string | number)[])[];
}

/**
 * In a resumed run, the journal replays the stored records, in the order in which the flow asks for them. The replay ends at the
 * first record that the flow asks for and that is not stored.
 *
 * A method that calls the storage rejects with {@link JournalLostError} if nothing of the run can be stored any more. A method that
 * stores rejects with INVALID_OUTPUT if the storage can't hold a value: then the run fails with that error.
 */
export interface Journal {
  /**
   * Returns the stored record under `key` if its attempt is at least `attempt`. Otherwise makes the attempt by calling `run`, which
   * passes its record to `store` and returns the result of `store`. (`store` is an argument so that an attempt that ends later costs
   * one turn of the event loop, not two.)
   * @param agent - the name that the record has. A journal that checks a replay compares it
   */
  step(
    key: string,
    attempt: number,
    run: (store: StoreRecord) => MaybePromise<StepRecord | undefined>,
    options: StepOptions,
    agent: string,
  ): MaybePromise<StepRecord | undefined>;

  /**
   * Checks, right before each effect, whether this process still holds the execution.
   * @param key - of the agent whose operation is about to run. Absent for a part of an attempt
   * @param context - what the operation gets
   * @param step - what runs
   * @returns undefined if it does. Otherwise a promise: wait for it, then check again
   */
  waitForLease(key?: string, context?: OperationContext, step?: AttemptedStep): Promise<void> | undefined;

  /** A transaction of the storage for one attempt, which begins with its first statement. Absent: there are none. */
  transact?: (() => RecordedTransaction) | undefined;

  /**
   * Returns the decision under `key`, or stores the result of `compute` as the decision. For values that a replay can't compute again.
   * The decision is stored before anything that follows from it has an effect.
   * @param facts - for a decision about the end of a wait, or about a part of an attempt
   */
  decide(key: string, compute: () => Json, facts?: DecisionFacts): MaybePromise<Json>;

  /**
   * Stores a mark: a note that only reports, which no replay reads. It is stored together with the next record, decision, release or
   * end, so it costs no write of its own.
   * @returns false if it was stored before the execution was resumed, or if the run has ended here: then nothing happens
   */
  mark(mark: StepRecord): boolean;

  /**
   * Whether an attempt that begins now may have begun before, in a process that died: the run is the first one after a crash, it has
   * stored nothing yet, and no wait of it has ended.
   */
  readonly mayRepeat: boolean;

  /** The record or decision under `key`, if it was stored before the execution was resumed. */
  replayed(key: string): StepRecord | undefined;

  /** The indexes of the items of a block (`flow[2].foreach`), or of its branches (`flow[3].parallel`), that have records to replay. */
  replayedParts(blockKey: string): ReadonlySet<number>;

  /**
   * For a `while` (`flow[2].while`) or a `foreach` (`flow[2].foreach`): its place at the end of the last run. The records of its
   * rounds or items that are over are not replayed then. Absent where every run replays all records.
   */
  folded?(blockKey: string): FoldedBlock | undefined;

  /**
   * Says how to describe a block from now on.
   * @param describe - called when the run leaves this process, and whenever the journal forgets the keys of parts that are over.
   *   `steps`: how many the run has counted
   */
  fold?(blockKey: string, describe: () => FoldedBlock & { readonly steps: number }): void;

  /** Calls `callback` once, at the end of the replay, or at once if the replay has ended. */
  onReplayEnd(callback: () => void): void;

  /**
   * Changes the number of active branches of the flow, by a positive or a negative number. A run begins with one active branch. If no
   * branch is active, and each remaining one waits, the engine may suspend the run until the earliest of these waits is over: the run
   * does not continue in this process.
   */
  branches(change: number): void;

  /**
   * A branch stops at a step boundary, because the execution is to be paused. When no other branch is active, the run is suspended.
   * @returns a function to call if the branch continues here after all. Undefined: the run can't be paused
   */
  halt?(): (() => void) | undefined;

  /**
   * Resolves at `instant` (Unix ms), unless the run is suspended before. The instant is stored already, as `retryAt` of the record
   * under `key`.
   * @param place - what the record of a suspended execution shows
   * @throws the signal's reason if the signal aborts first
   */
  sleepUntil(key: string, instant: number, signal: AbortSignal, place: WaitPlace): Promise<void>;

  /**
   * Takes the earliest signal of a name that no other wait has taken, and waits for one if there is none. The decision is stored under
   * `key` before the signal is returned. While it waits, the run may be suspended.
   *
   * @param until - Unix ms, or infinity. A signal that arrived later is left to other waits
   * @param signal - after it has aborted, no signal is taken
   * @param onWait - called once if there is no signal yet
   * @param place - what the record of a suspended execution shows
   * @returns undefined at `until`
   * @throws the signal's reason if the signal aborts first
   */
  waitForSignal(
    key: string,
    name: string,
    until: number,
    signal: AbortSignal,
    onWait: () => void,
    place: WaitPlace,
  ): Promise<TakenSignal | undefined>;

  /** The version of a component to which a reference led before in this execution. */
  pinned(reference: string): UsedComponent | undefined;

  /** Stores to which version a reference led, together with the next record: nothing that follows from it is stored without it. */
  pin(reference: string, component: UsedComponent): void;

  /**
   * Stores the versions that a split chose, before the attempt that uses them: an attempt that ends its process counts against its version, too.
   */
  storeChosen(): MaybePromise<unknown>;

  /** The current state of the ensemble. Undefined if it was never set. */
  readState(): MaybePromise<JsonObject | undefined>;
}
