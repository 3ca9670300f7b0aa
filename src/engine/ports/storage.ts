/**
 * The storage port: where executions, their step results, definitions and ensemble state live.
 *
 * Each verb is one atomic intent, and does what it is told: what to store is decided by the engine. `now` never comes from
 * the store. A verb that needs no I/O may answer at once instead of with a promise. Values handed in belong to the store
 * from then on; values handed out may be shared with it and are never changed by the caller.
 */

import type { JsonObject } from '../json.ts';
import type { Execution, ExecutionStatus } from '../model/execution.ts';
import type { CommitEntry, NewExecution, StepRecord } from '../model/stored-execution.ts';
import type { KvStore, ObjectStore } from './data.ts';
import type { MaybePromise } from './operation.ts';
import type { TokenStore } from './token-store.ts';

/**
 * | answer | means |
 * |---|---|
 * | stored | all of the entry is stored |
 * | fenced | the execution is unknown, has ended, or has another epoch: nothing is stored |
 * | state-conflict | the state's version is another one: nothing is stored |
 */
export type CommitResult = 'stored' | 'fenced' | 'state-conflict';

export interface StoredState {
  readonly value: JsonObject;
  /** Counts the changes; 1 after the first. */
  readonly version: number;
  readonly updatedAt: number;
}

export interface StoredDefinition {
  /** Hash of the definition. */
  readonly version: string;
  readonly definition: JsonObject;
  /** What a process must have to run it, such as `script:score` and `operation:api`. */
  readonly needs: readonly string[];
}

export interface ExecutionQuery {
  readonly ensemble?: string;
  readonly status?: ExecutionStatus;
  /** 1 to 250. */
  readonly limit: number;
  /** Only executions older than this id. */
  readonly before?: string;
}

/** What a store can promise. */
export interface StorageCapabilities {
  /** Whether one write may carry entries of several requests (false on Workers, where a promise belongs to its request). */
  readonly sharedCommits: boolean;
}

export interface Storage {
  readonly capabilities: StorageCapabilities;
  readonly tokens: TokenStore;
  /** What the `storage` operation uses where no other binding is named: `kv` and `objects`. */
  readonly kv: KvStore;
  readonly objects: ObjectStore;

  /**
   * Stores an execution as `running`. Stored when it returns.
   * @throws CONFLICT when the id is there already; nothing is changed then
   */
  accept(execution: NewExecution): MaybePromise<void>;

  /** Stores a batch; one answer an entry, in order. An entry is stored wholly or not at all, and durable when it returns. */
  commit(batch: readonly CommitEntry[]): MaybePromise<readonly CommitResult[]>;

  /** The record, with the first 1,000 agent runs; undefined when unknown. */
  getExecution(id: string): MaybePromise<Execution | undefined>;

  /** Newest first, by id; without their agent runs. */
  listExecutions(query: ExecutionQuery): MaybePromise<readonly Execution[]>;

  /** The step records of an execution in the order in which they were first stored. @param page - skips `after` records, gives at most `limit` */
  listSteps(
    executionId: string,
    page: { readonly after: number; readonly limit: number },
  ): MaybePromise<readonly StepRecord[]>;

  /** An ensemble's state; undefined when none was ever set. */
  readState(ensemble: string): MaybePromise<StoredState | undefined>;

  /** Stores a definition under its hash; does nothing when it is there. */
  putDefinition(definition: StoredDefinition): MaybePromise<void>;

  getDefinition(version: string): MaybePromise<StoredDefinition | undefined>;

  /** Gives up connections and files. Calling it again does nothing. */
  close(): MaybePromise<void>;
}
