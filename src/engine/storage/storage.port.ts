/**
 * The storage port: stores executions, step records, signals, state, schedules and definitions, and knows which worker holds
 * which execution.
 *
 * **Terms**
 *
 * | term | meaning |
 * |---|---|
 * | worker | an engine that runs executions: a process that has called `workers.register` |
 * | lease | the time for which a worker counts as alive; the worker renews it |
 * | held | a worker works on the execution; an execution has at most one worker |
 * | free | no worker holds the execution, and it has not ended: it is queued, it waits, or its worker released it |
 * | due | a free execution is due from its `dueAt` (Unix ms) on: then a worker can claim it |
 * | claim | a worker takes a due execution, and holds it from then on |
 * | slot | one of the executions of a caller that may be held at once; while all are taken, no other one of it can be claimed |
 * | epoch | counts the claims of an execution; it never decreases |
 * | fence | the check of a write: its worker holds the execution under its epoch, and the execution has not ended; otherwise it is refused |
 * | release | a worker hands an execution back before its end; the execution is free from then on |
 *
 * **Rules for every method**
 *
 * - A method is atomic: all of its effect is stored, or nothing.
 * - The engine decides what to store. A storage has no clock and creates no ids: every instant is an argument, in Unix ms.
 * - A method that needs no I/O may return its result directly. Every other method returns a promise.
 * - The storage owns the values that it receives: the caller never changes them afterwards. Returned values may be shared with the
 *   storage: the caller never changes them either.
 *
 * **When a free execution is due.** The earliest instant counts.
 *
 * | event | due at |
 * |---|---|
 * | it is released, with `dueAt` | `dueAt` |
 * | it is released, and its cancellation was requested before | at once |
 * | it is released as `waiting`, and more signals are stored than its worker has seen (`Release.signals`) | at once |
 * | it is free, and its cancellation is requested | at once |
 * | it is free and `waiting`, and a signal arrives that it waits for (`Release.waitsFor`) | at once |
 * | its worker is considered dead, or unregistered | at the `now` of that call |
 */

import type { LimitStore } from '../access/limit-store.port.ts';
import type { TokenStore } from '../access/token-store.port.ts';
import type { UsageStore } from '../access/usage-store.port.ts';
import type { DeliveryStore } from '../delivery/delivery-store.port.ts';
import type { DefinitionStore } from '../ensemble/definition-store.port.ts';
import type { TallyStore } from '../events/tallies/tally-store.port.ts';
import type { ExecutionReader, ExecutionStore } from '../execution/execution-store.port.ts';
import type { CommitEntry } from '../execution/stored-execution.ts';
import type { WorkerStore } from '../execution/worker-store.port.ts';
import type { MaybePromise } from '../operation/operation.port.ts';
import type { ScheduleStore } from '../schedule/schedule-store.port.ts';
import type { SignalReader, SignalStore } from '../signal/signal-store.port.ts';
import type { KvStore, ObjectStore } from './data.port.ts';
import type { DocumentStore } from './document-store.port.ts';
import type { RecordedTransaction } from './recorded-transaction.port.ts';
import type { StateStore } from './state-store.port.ts';

export type * from '../access/limit-store.port.ts';
export type * from '../access/usage-store.port.ts';
export type * from '../delivery/delivery-store.port.ts';
export type * from '../ensemble/definition-store.port.ts';
export type * from '../events/tallies/tally-store.port.ts';
export type * from '../execution/execution-store.port.ts';
export type * from '../execution/worker-store.port.ts';
export type * from '../schedule/schedule-store.port.ts';
export type * from '../signal/signal-store.port.ts';
export type * from './document-store.port.ts';
export type * from './state-store.port.ts';

/** The properties of a storage that the engine has to know. */
export interface StorageCapabilities {
  /**
   * Whether requests may wait for the same promise. False on Workers, where a promise belongs to its request. Then a commit has the
   * entry of one request.
   */
  readonly sharedPromises: boolean;
  /** Whether timers fire between requests. False on Workers: then the engine works only in calls, such as `runDue`. */
  readonly timers: boolean;
  /** Whether entries cost less if they are written together. False for a storage in memory. */
  readonly groupedCommits: boolean;
  /** Whether other processes may use the same data. Then the engine renews leases and polls the storage. */
  readonly shared: boolean;
  /** Whether all connections wait while one has written and not committed, as in SQLite. Default false. */
  readonly oneWriter?: boolean;
}

/**
 * The result for one entry of a commit.
 *
 * | result | meaning |
 * |---|---|
 * | stored | the whole entry is stored, now or by an earlier call with the same entry |
 * | exists | another execution has the id or the idempotency key of the entry's `start`: nothing is stored |
 * | fenced | the execution is unknown, has ended, or is not held by this worker under this epoch: nothing is stored |
 * | state-conflict | the state has another version than the expected one: nothing is stored |
 * | stale | the document that the entry expects has another tag, or is deleted: nothing is stored |
 * | quota-exceeded | the caller has used up the quota of the entry's `charge`: nothing is stored |
 * | slots-taken | the worker would hold the execution, and all slots of the entry's `charge`, or of its limits, are taken: nothing is stored |
 * | queue-full | a limit of the execution has no slot for it, and may have no more executions queued: nothing is stored |
 *
 * If several results fit, the first of them counts: stored, exists, fenced, state-conflict, stale, quota-exceeded,
 * queue-full, slots-taken.
 */
export type CommitResult =
  | 'stored'
  | 'exists'
  | 'fenced'
  | 'state-conflict'
  | 'stale'
  | 'quota-exceeded'
  | 'slots-taken'
  | 'queue-full';

/** Reads what runs have stored. Every storage is one. */
export interface RecordReader {
  readonly executions: ExecutionReader;
  readonly signals: SignalReader;
}

/** All parts of a storage. Each part has its own interface, and its own group of tests in the suite of the port. */
export interface StorageParts {
  readonly workers: WorkerStore;
  readonly executions: ExecutionStore;
  readonly signals: SignalStore;
  readonly state: StateStore;
  readonly schedules: ScheduleStore;
  readonly definitions: DefinitionStore;
  readonly documents: DocumentStore;
  readonly deliveries: DeliveryStore;
  readonly usage: UsageStore;
  readonly rates: LimitStore;
  readonly tokens: TokenStore;
  readonly tallies: TallyStore;
  /** The default bindings of the `storage` operation: `kv` and `objects`. */
  readonly kv: KvStore;
  readonly objects: ObjectStore;
}

/** The part of a storage that writes in a transaction of the caller. Workers are notified of what is due after the commit. */
export interface TransactionStore {
  readonly executions: Pick<ExecutionReader, 'getAccepted' | 'getStatus' | 'get' | 'findByKey'>;
  readonly signals: Pick<SignalStore, 'put'>;
  readonly commit: Storage['commit'];
  /** Where the definition of a start is stored, if the storage can't write while the transaction does. Absent: in the storage. */
  readonly definitions?: DefinitionStore | undefined;
}

export interface Storage extends StorageParts {
  readonly capabilities: StorageCapabilities;

  /**
   * Stores a batch. Each entry is stored as a whole or not at all, and is durable when the call returns. The same entry again is
   * answered `stored` and changes nothing: a caller that does not know whether a write arrived repeats it.
   *
   * @param worker - the writer. If it is not registered, its entries are refused, except for starts of queued executions
   * @returns one result for each entry, in the order of the batch
   */
  commit(worker: string, batch: readonly CommitEntry[]): MaybePromise<readonly CommitResult[]>;

  /**
   * Calls `listener` soon after another process may have made an execution due. Calls without a reason are allowed. Absent if the
   * storage sends no such notifications.
   * @returns a function that stops the calls
   */
  watch?(listener: () => void): MaybePromise<() => MaybePromise<void>>;

  /**
   * Reads and writes in a transaction that the caller has begun, on the caller's connection: what it stores is there if and only if the caller
   * commits. Absent: the storage can't.
   * @param transaction - what the client of the caller gives for a transaction
   * @throws INVALID_REQUEST for something else, and for a transaction that has ended or was not begun
   */
  within?(transaction: unknown): MaybePromise<TransactionStore>;

  /** A transaction for a step, on the database of the storage. Absent: the storage has none. */
  transact?(worker: string): RecordedTransaction;

  /**
   * Makes the host call `runDue` of the orchestrator at an instant (Unix ms) or soon after, even if this process ends before. A host
   * with alarms has this, such as a Durable Object. An earlier request stays valid. With it, the engine sets no timer for an
   * instant at which an execution or a schedule is due.
   */
  wakeAt?(instant: number): MaybePromise<void>;

  /**
   * Whether this storage keeps the execution with this id, for a storage that keeps a part of all executions. Absent: it keeps all.
   */
  accepts?(id: string): boolean;

  /** Closes connections and files. A second call does nothing. */
  close(): MaybePromise<void>;
}
