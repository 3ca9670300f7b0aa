/** The journal: the memory of one execution, which an engine gives to the interpreter. */

import type { JsonObject } from '../json.ts';
import type { StepRecord } from '../model/stored-execution.ts';
import type { MaybePromise } from './operation.ts';

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
   * Resolves at `instant` (Unix ms). The instant is stored already, as `retryAt` of the record under `key`.
   * @throws the signal's reason when it aborts first
   */
  sleepUntil(key: string, instant: number, signal: AbortSignal): Promise<void>;

  /** The ensemble's state now; undefined when none was ever set. */
  readState(): MaybePromise<JsonObject | undefined>;
}
