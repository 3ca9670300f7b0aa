/** The part of a storage that keeps the states of ensembles. A commit of a run changes them, too. */

import type { JsonObject } from '../base/json/json.ts';
import type { MaybePromise } from '../operation/operation.port.ts';

export interface StoredState {
  readonly value: JsonObject;
  /** Counts the changes: 1 after the first. */
  readonly version: number;
  readonly updatedAt: number;
}

export interface StateStore {
  /** The state of an ensemble. Undefined if it was never set. */
  read(ensemble: string): MaybePromise<StoredState | undefined>;
  /**
   * Replaces a state, if it has the expected version. A run that changed it meanwhile, or changes it next, notices by the version.
   * @returns false if the version is another one: then nothing changes
   */
  write(
    ensemble: string,
    change: { readonly expectedVersion: number; readonly value: JsonObject; readonly updatedAt: number },
  ): MaybePromise<boolean>;
}
