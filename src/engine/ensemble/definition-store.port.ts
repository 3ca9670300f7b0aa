/** The part of a storage that keeps the definitions with which executions began. */

import type { JsonObject } from '../base/json/json.ts';
import type { MaybePromise } from '../operation/operation.port.ts';

export interface StoredDefinition {
  /** The hash of the definition. */
  readonly version: string;
  readonly definition: JsonObject;
  /** What a process needs to run it, such as `script:score` and `operation:api`. */
  readonly needs: readonly string[];
}

export interface DefinitionStore {
  /** Stores a definition under its hash. Does nothing if it is stored already. */
  put(definition: StoredDefinition): MaybePromise<void>;

  get(version: string): MaybePromise<StoredDefinition | undefined>;
}
