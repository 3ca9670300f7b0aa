/** The journal: the memory of one execution, which an engine gives to the interpreter. */

import type { Json, JsonObject } from '../json.ts';
import type { StepRecord } from '../model/stored-execution.ts';
import type { MaybePromise } from './operation.ts';

/**
 * Nothing of this run is stored any more: it belongs to another process now, or its storage does not answer (the `cause`). It is
 * never a failure of the run: whoever resumes the run continues after its last stored result.
 */
export class JournalLostError extends Error {
  constructor(cause?: unknown) {
    super('nothing of this run is stored any more', cause === undefined ? undefined : { cause });
    this.name = 'JournalLostError';
  }
}

/** A change of the ensemble's state that belongs to a step. */
export interface StateUpdate {
  /**
   * Called over the newest state, again when another execution changed it meanwhile.
   * @param current - undefined when none was ever set
   * @returns the record to store (a failed one when the change can't be computed) and the new state
   */
  next(
    current: JsonObject | undefined,
    record: StepRecord,
  ): { readonly record: StepRecord; readonly value?: JsonObject };
  /** Called once, when the new state is stored. */
  stored(value: JsonObject): void;
}

export interface StepOptions {
  /** Nothing runs behind the step: its record may be stored together with the end. */
  readonly last: boolean;
  readonly state?: StateUpdate | undefined;
}

/** Stores the record of an attempt and gives back what is stored; nothing for an attempt that a stopped run gave up. */
export type StoreRecord = (record: StepRecord | undefined) => MaybePromise<StepRecord | undefined>;

/** A signal that a wait took: what its note says. */
export interface TakenSignal {
  /** Its id. */
  readonly signal: string;
  readonly payload: Json;
  /** Unix ms at which it was taken. */
  readonly at: number;
}

/** Of a note that says how a wait ended: what it was for, so that it is found without its payload. */
export interface WaitNote {
  /** The signal's name. */
  readonly name: string;
  /** Unix ms at which the wait ended. */
  readonly at: number;
}

/**
 * What was stored before is given back in a run that was taken up again, in the order in which the flow asks for it. The first
 * thing that is asked for and is not there is where the run becomes live.
 *
 * Every method that asks the storage rejects with {@link JournalLostError} when nothing of the run can be stored any more, and one
 * that stores with INVALID_OUTPUT when the storage can't hold what it was handed: then the run fails with that error.
 */
export interface Journal {
  /**
   * Gives the stored record under `key` if its attempt is at least `attempt`; otherwise makes the attempt by `run`, which hands
   * its record to `store` and gives back what that gives. (Handed in, so that an attempt that ends later costs one turn, not two.)
   */
  step(
    key: string,
    attempt: number,
    run: (store: StoreRecord) => MaybePromise<StepRecord | undefined>,
    options: StepOptions,
  ): MaybePromise<StepRecord | undefined>;

  /**
   * Asked right before each effect: whether the run is still this process's own.
   * @returns undefined when it is; otherwise what is to be waited for before it is asked again
   */
  confirm(): Promise<void> | undefined;

  /**
   * Gives the note under `key`, or stores what `decide` gives: for what can't be worked out again, and has to be known before
   * anything that follows from it has an effect.
   * @param wait - of the note of a wait's end
   */
  note(key: string, decide: () => Json, wait?: WaitNote): MaybePromise<Json>;

  /** The record or note under `key`, if it was stored before the run was taken up. */
  recalled(key: string): StepRecord | undefined;

  /** Whether anything is recalled of a block (`flow[2].foreach`) or of a part of one (`flow[2].foreach[7]`, `flow[3].parallel[0]`). */
  recalls(prefix: string): boolean;

  /** Calls back once, when the run becomes live; at once when it is. */
  onLive(callback: () => void): void;

  /**
   * Tells how many branches of the flow begin to work (or end, below 0). A run begins with one. When none is at work any more,
   * and all that is left waits for an instant, the engine may give the run up until then: it goes no further in this process.
   */
  branches(change: number): void;

  /**
   * Resolves at `instant` (Unix ms), if the run is not given up meanwhile. The instant is stored already, as `retryAt` of the
   * record under `key`.
   * @throws the signal's reason when it aborts first
   */
  sleepUntil(key: string, instant: number, signal: AbortSignal): Promise<void>;

  /**
   * Takes the first signal of a name, in the order in which they came, that no wait has taken, and waits until one has come. It is noted
   * under `key` before it is given; while it waits, the run may be given up.
   *
   * @param until - Unix ms, or infinity: what came later is left to others
   * @param signal - once it has aborted, nothing is taken
   * @param onWait - called once when none has come yet
   * @returns undefined at `until`
   * @throws the signal's reason when it aborts first
   */
  waitForSignal(
    key: string,
    name: string,
    until: number,
    signal: AbortSignal,
    onWait: () => void,
  ): Promise<TakenSignal | undefined>;

  /** The ensemble's state now; undefined when none was ever set. */
  readState(): MaybePromise<JsonObject | undefined>;
}
