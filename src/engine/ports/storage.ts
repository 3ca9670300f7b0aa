/**
 * The storage port: where executions, their step results, definitions and ensemble state live, and who works on what.
 *
 * Each verb is one atomic intent, and does what it is told: what to store is decided by the engine. `now` never comes from
 * the store. A verb that needs no I/O may answer at once instead of with a promise. Values handed in belong to the store
 * from then on; values handed out may be shared with it and are never changed by the caller.
 *
 * **Owners.** An owner is one engine at work: a process that joined. It holds executions, each under an epoch that counts the
 * claims of that execution and never goes back. What an owner writes carries both, and is refused once they are no longer so.
 *
 * | an execution is ... | owner | due |
 * |---|---|---|
 * | held: an owner works on it | set | - |
 * | free: queued, waiting, or given up by its owner | none | from `dueAt` on it can be claimed |
 * | ended | none | - |
 */

import type { Execution, ExecutionStatus, ExecutionSummary } from '../model/execution.ts';
import type {
  ClaimedExecution,
  CommitEntry,
  DamagedExecution,
  ExecutionEnd,
  NewExecution,
  NewSignal,
  StepRecord,
  StoredDelivery,
} from '../model/stored-execution.ts';
import type { KvStore, ObjectStore } from './data.ts';
import type { MaybePromise } from './operation.ts';
import type {
  ClaimQuery,
  CommitResult,
  EndedWait,
  ExecutionQuery,
  PurgeQuery,
  RecordQuery,
  Recovered,
  ScheduleChange,
  SignalQuery,
  SignalResult,
  SkippedRuns,
  StepQuery,
  StoredDefinition,
  StoredSchedule,
  StoredState,
  Survey,
} from './storage-answers.ts';
import type { TokenStore } from './token-store.ts';

export type * from './storage-answers.ts';

/** What a store can promise. */
export interface StorageCapabilities {
  /** Whether one write may carry entries of several requests (false on Workers, where a promise belongs to its request). */
  readonly sharedCommits: boolean;
  /** Whether entries cost less when they are written together; false for a store in memory. */
  readonly groupedCommits: boolean;
  /** Whether other processes may work on the same store: then leases are renewed, and the store is asked what is new. */
  readonly shared: boolean;
}

export interface Storage {
  readonly capabilities: StorageCapabilities;
  readonly tokens: TokenStore;
  /** What the `storage` operation uses where no other binding is named: `kv` and `objects`. */
  readonly kv: KvStore;
  readonly objects: ObjectStore;

  /**
   * Makes `owner` known, until `leaseUntil` (Unix ms); for one that is, the lease alone changes. A store that a single process
   * works on frees what owners of processes before it held, with one more recovery each, and blames it as `recover` does.
   * @throws CONFLICT when the store takes one owner alone and another process is it
   */
  join(
    owner: string,
    lease: { readonly now: number; readonly leaseUntil: number; readonly blameFrom?: number },
  ): MaybePromise<void>;
  /** @returns false when the owner is known no more: it was taken for dead, or has left */
  renew(owner: string, leaseUntil: number): MaybePromise<boolean>;
  /** Forgets an owner. What it still holds is free, due at `now`. Does nothing for one that is not known. */
  leave(owner: string, now: number): MaybePromise<void>;
  /**
   * Takes other owners for dead whose lease has ended, or of which the store knows that their process has: they are forgotten,
   * and what they held is free, due at `now`, with one more recovery each. Their late writes are refused from then on, and
   * what they wrote before is seen by whoever claims. One that can't be taken for dead at the moment holds the others up for
   * no longer than moments; it is looked at again by the next call.
   *
   * Of what a dead owner held, those bear the blame for its death that it had claimed (or started) at `blameFrom` or later, and of
   * which no record is stored that began behind that. One that bore none so far bears 1. To what one bore before, its share is added: 1,000,
   * divided by how many bear the blame for this death, and by how many owners have joined since it was last blamed (by 1 at least;
   * rounded down): for processes that die without it, it is not to blame. The blame of all others is 0 from then on, as is that of one
   * that is claimed after it waited, and of what an owner leaves behind that is alive.
   * @param blameFrom - Unix ms; without it nothing bears blame
   */
  recover(owner: string, now: number, blameFrom?: number): MaybePromise<Recovered>;

  /**
   * Stores a batch; one answer an entry, in order. An entry is stored wholly or not at all, and durable when it returns.
   * The same entry again is answered `stored` and changes nothing: who doesn't know whether a write arrived repeats it.
   *
   * @param owner - who writes; its entries are refused when it is not known, but for those that start without an owner
   */
  commit(owner: string, batch: readonly CommitEntry[]): MaybePromise<readonly CommitResult[]>;

  /**
   * Gives an owner executions that are free and due, each to one owner only, with their epochs one higher. Ensembles take
   * turns, from claim to claim; of each, the longest due comes first. They run from now on. One that can't be read is claimed too, so that it can be ended.
   * @returns nothing for an owner that is not known
   */
  claim(owner: string, query: ClaimQuery): MaybePromise<readonly (ClaimedExecution | DamagedExecution)[]>;

  /** All that an owner holds: for one that does not know whether a claim of its own arrived. */
  listHeld(owner: string): MaybePromise<readonly { readonly executionId: string; readonly epoch: number }[]>;

  /** @param except - versions of definitions that the owner can't run */
  survey(owner: string, except: readonly string[]): MaybePromise<Survey>;

  /** How many executions are queued; counts no further than `limit`. */
  countQueued(limit: number): MaybePromise<number>;

  /** How many executions have this one as the `rootId` of their trigger; counts no further than `limit`. */
  countDescendants(rootId: string, limit: number): MaybePromise<number>;

  /**
   * Asks that an execution be stopped. One that is held: its owner hears of it by `survey`. One that waits, or is given up
   * before its owner has heard: it is due at once.
   * One that has not begun ends with `end`, unless it has a parent, which is told by whoever ends it: then it is due at once. Asking
   * again changes nothing.
   * @returns the execution's status behind that, or undefined when it is unknown; a final one when there is nothing to stop
   */
  requestCancel(id: string, now: number, end: ExecutionEnd): MaybePromise<ExecutionStatus | undefined>;

  /**
   * Stores a signal behind those that came before, of an execution that has not ended. Its owner hears of it by `survey`; one
   * that waits, or is given up as waiting before its owner has heard, is due at once. The same id again changes nothing, also once the
   * execution has ended.
   */
  putSignal(signal: NewSignal): MaybePromise<SignalResult>;

  /** The signals of one name, in the order in which they came. */
  listSignals(executionId: string, query: SignalQuery): MaybePromise<readonly NewSignal[]>;

  /** One signal, by its id; undefined when there is none. */
  findSignal(executionId: string, id: string): MaybePromise<NewSignal | undefined>;

  /** Those of the given executions that have ended, or are not there any more. */
  findEnded(ids: readonly string[]): MaybePromise<readonly string[]>;

  /**
   * Deletes old executions, if this owner is the one that does it: the one that joined first.
   * @returns how many were deleted, and where to go on (nothing when it came to the end); undefined when another owner does it
   */
  purge(query: PurgeQuery): MaybePromise<{ readonly deleted: number; readonly next?: string } | undefined>;

  /**
   * Calls `listener` when another process may have made work: soon, and perhaps needlessly. Absent where nothing tells.
   * @returns stops it
   */
  watch?(listener: () => void): MaybePromise<() => MaybePromise<void>>;

  /** An execution as it was accepted; undefined when unknown. */
  getAccepted(id: string): MaybePromise<NewExecution | undefined>;

  /** Where an execution stands; undefined when unknown. Reads no values and no steps, however large they are. */
  getStatus(id: string): MaybePromise<ExecutionSummary | undefined>;

  /**
   * The record, with the first 1,000 agent runs, and of these the outputs up to 4 MiB in total; undefined when unknown. Reads no
   * more than it gives.
   */
  getExecution(id: string, query?: RecordQuery): MaybePromise<Execution | undefined>;

  /** Newest first, by id; without their agent runs, and without an input or output of more than 4 KiB, which it does not read. */
  listExecutions(query: ExecutionQuery): MaybePromise<readonly Execution[]>;

  /**
   * Step records of an execution in the order in which they were first stored: at most `limit`, and no more than `bytes` of outputs,
   * but for a single one. None when there are no more. It reads what it gives, wherever in the history that is.
   */
  listSteps(executionId: string, query: StepQuery): MaybePromise<readonly StepRecord[]>;

  /** One step record, by its key; undefined when there is none. */
  getStep(executionId: string, key: string): MaybePromise<StepRecord | undefined>;

  /** Skips so many agents' runs, in the order in which they were first stored, or all of them when there are no more. Reads no outputs. */
  skipRuns(executionId: string, count: number): MaybePromise<SkippedRuns>;

  /** The waits for a signal of this name that have ended after an instant (Unix ms): from the notes of waits alone, without payloads. */
  listEndedWaits(executionId: string, signal: string, after: number): MaybePromise<readonly EndedWait[]>;

  /** The deliveries of an execution, in the order in which they were stored. */
  listDeliveries(executionId: string): MaybePromise<readonly StoredDelivery[]>;

  /** An ensemble's state; undefined when none was ever set. */
  readState(ensemble: string): MaybePromise<StoredState | undefined>;

  /** What is stored of a schedule; undefined when nothing is. */
  readSchedule(name: string): MaybePromise<StoredSchedule | undefined>;

  /**
   * Stores how far a schedule has come, if nobody else did since: its version is the expected one, and one higher from then on.
   * @returns whether it was stored
   */
  advanceSchedule(name: string, change: ScheduleChange): MaybePromise<boolean>;

  /** Stores a definition under its hash; does nothing when it is there. */
  putDefinition(definition: StoredDefinition): MaybePromise<void>;

  getDefinition(version: string): MaybePromise<StoredDefinition | undefined>;

  /** Gives up connections and files. Calling it again does nothing. */
  close(): MaybePromise<void>;
}
