/** The part of a storage that keeps the states of ensembles. Only a commit changes them. */

import type { JsonObject } from '../base/json.ts';
import type { MaybePromise } from './operation.ts';

export interface StoredState {
  readonly value: JsonObject;
  /** Counts the changes: 1 after the first. */
  readonly version: number;
  readonly updatedAt: number;
}

export interface StateStore {
  /** The state of an ensemble. Undefined if it was never set. */
  read(ensemble: string): MaybePromise<StoredState | undefined>;
}
