/** The engine port: decides where and when executions run, and gives each run its journal. */

import type { Charge } from '../access/quota.ts';
import type { Json } from '../base/json/json.ts';
import type { CallerSignal } from '../base/time/caller-signal.ts';
import type { TraceContext } from '../events/trace-context.ts';
import type { Clock } from '../host/clock.port.ts';
import type { Logger } from '../host/logger.port.ts';
import type { MaybePromise } from '../operation/operation.port.ts';
import type {
  ExecutionReader,
  RecordReader,
  SignalReader,
  SignalResult,
  Storage,
  StoredDefinition,
  TransactionStore,
} from '../storage/storage.port.ts';
import type { Execution, ExecutionError, ExecutionStatus, FinalStatus } from './execution.ts';
import type { PauseScope } from './execution-store.port.ts';
import type { Journal } from './journal.port.ts';
import type {
  CommitEntry,
  ExpectedDocument,
  Handover,
  NewExecution,
  NewSignal,
  StepRecord,
} from './stored-execution.ts';

/** The result of a run, from the interpreter. */
export interface ExecutionOutcome {
  /** `lost`: the journal stores nothing of the run any more, and its caller must not store anything either. */
  readonly status: FinalStatus | 'lost';
  readonly output: Json;
  readonly error?: ExecutionError;
  /** Why the run was lost. Absent if the execution belongs to another process. */
  readonly cause?: unknown;
}

/** A run in this process. */
export interface InterpretedRun {
  readonly outcome: Promise<ExecutionOutcome>;
  /**
   * Ends the run at the next step boundary, and aborts the signal of the current step. Does nothing after the run has ended. `paused`: the
   * current steps end, no further one begins, and the run is suspended then.
   * @param atOnce - ends the run now: the result of the current step is dropped, and no `finally` runs
   */
  stop(reason: 'cancelled' | 'timed_out' | 'paused', atOnce?: boolean): void;
  /** Drops the run: aborts what is in flight and clears its timers. The outcome is `lost`, unless the run has ended already. */
  abandon(): void;
  /** For the handover: see `Handover.trace`. */
  readonly trace?: TraceContext | undefined;
}

export interface RunOptions {
  /** The execution began before. Its stored records are replayed, without events. */
  readonly resumed: boolean;
  /** How often the execution was resumed after a worker's death. Default 0. */
  readonly recoveries?: number | undefined;
  /** The execution is to be cancelled: the run begins no step that did not begin before. */
  readonly cancelled: boolean;
  /** It did not begin in the time that its ensemble gives it: it ends as timed out, and begins no step. */
  readonly isLate?: boolean | undefined;
  /** Cancels the execution when it aborts. */
  readonly signal?: CallerSignal | undefined;
  /** An instant (Unix ms) that counts as reached, even if the wall clock is earlier. */
  readonly reached?: number | undefined;
  /** The worker that holds the execution, for the log. */
  readonly worker?: string | undefined;
  /** What the last run left. */
  readonly handover?: Handover | undefined;
  /** Unix ms of the first claim since then. */
  readonly resumedAt?: number | undefined;
}

/**
 * Adds to an entry what the notifications of its ensemble send about it.
 *
 * @param begunAt - Unix ms at which the execution began, for the entry that stores its beginning
 * @returns the entry itself if there is nothing to send
 */
export type Outbox = (entry: CommitEntry, execution: NewExecution, begunAt?: number) => CommitEntry;

/** An ensemble that this process can run. */
export interface LoadedDefinition {
  readonly definition: StoredDefinition;
  /** Absent for an ensemble without notifications. An engine passes every entry of an execution through it before it is stored. */
  readonly outbox?: Outbox | undefined;
  /** `none`: step results are stored together with the end. */
  readonly durability: 'step' | 'none';
  /** How many runs of it a process has at once. Absent: any number. */
  readonly perProcess?: number | undefined;
  /** Whether it has a `while` or a `foreach`: then a run leaves out for the next one what is over of them. Default false. */
  readonly hasLoops?: boolean | undefined;
  /** Runs an execution over a journal. Never throws and never rejects: a failure is an outcome. */
  run(execution: NewExecution, journal: Journal, options: RunOptions): InterpretedRun;
}

/** The parts that `createOrchestrator` passes to an engine. */
export interface EngineHost {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly logger: Logger;
  /** How long ended executions are kept, in ms. */
  readonly retentionMs: number;
  /** A new id for a worker. */
  newWorkerId(): string;
  /** The definition with which an execution began, ready to run. A text says what this process lacks to run it. */
  restore(definition: StoredDefinition, ensemble: string): MaybePromise<LoadedDefinition | string>;
  /**
   * Called once for each execution that ended in this process, after its end is stored.
   * @param worker - the worker that held it
   */
  ended(record: Execution, worker?: string): void;
  /** Called when documents of the storage ask for executions: see `PollResult.hasStarts`. */
  requested?(): void;
  /** Called when a run has left this process before the end of its execution, after what it had to report is stored. */
  left(executionId: string): void;
}

/** The definition of an execution is not the stored one any more: it was changed at run time. Nothing was stored. */
export class StaleDefinitionError extends Error {
  constructor() {
    super('the definition was changed; load it again');
    this.name = 'StaleDefinitionError';
  }
}

/** An execution that was accepted. */
export interface AcceptedRun {
  /**
   * The record of the ended execution, if it ends in the process that accepted it and was never suspended or released. Otherwise
   * undefined: then `whenEnded` of the engine returns the record.
   */
  readonly finished: Promise<Execution | undefined>;
  /** If it was suspended or released: the instant (Unix ms) from which a worker can claim it. */
  readonly dueAt?: number | undefined;
}

export interface BeginOptions {
  /** The execution may be queued if the engine is busy. Otherwise it runs at once. */
  readonly mayQueue: boolean;
  /**
   * The execution is a child of an accepted one: it is not refused because the queue is full, or because the engine is closing and
   * waits for its runs to end.
   */
  readonly isChild?: boolean | undefined;
  /** Who pays for the execution. Charged in the commit that accepts it. */
  readonly charge?: Charge | undefined;
  /** If all slots of the charge are taken, the start is refused with CONCURRENT_LIMIT_EXCEEDED. Default: the execution is queued. */
  readonly refuseWithoutSlot?: boolean | undefined;
  /** The document that holds the definition. If it has changed, nothing is stored, and the call fails with {@link StaleDefinitionError}. */
  readonly expects?: ExpectedDocument | undefined;
  /** Cancels the execution when it aborts. A run whose signal has aborted runs no step. */
  readonly signal?: CallerSignal | undefined;
  /**
   * Several processes may begin this execution, and more than once: it counts once. It is always queued. A call that fails may have
   * stored it all the same: a repeated call finds out.
   */
  readonly repeatable?: boolean | undefined;
  /** The execution is queued, is due at an instant (Unix ms), and has this handover. */
  readonly later?: { readonly dueAt: number; readonly handover: Handover } | undefined;
  /** Results of steps. The steps under these keys do not run. */
  readonly steps?: readonly StepRecord[] | undefined;
  /** The execution is queued within a transaction of the caller. Only for an engine that {@link AttachedEngine.takesTransactions}. */
  readonly within?: TransactionStore | undefined;
}

/**
 * The records that runs read besides their own. The engine repeats a call that fails, as long as it waits for the storage.
 * @throws JournalLostError if the call still fails after that: the run is suspended, and resumed when the storage answers
 */
export interface RunRecords {
  readonly executions: Pick<ExecutionReader, 'get' | 'countDescendants'>;
  readonly signals: Pick<SignalReader, 'list'>;
}

/** An ensemble that is paused, or everything. */
export interface EnginePause {
  /** Absent: everything. */
  readonly ensemble?: string;
  /** Unix ms. */
  readonly since: number;
}

export interface AttachedEngine {
  /** Reads executions, steps and signals, in whatever store the engine keeps them. Default: the storage of the host. */
  readonly records?: RecordReader;
  /** It runs nothing: what it accepts is queued for other processes. Default false. */
  readonly onlyQueues?: boolean;
  /** It can begin an execution within a transaction of the caller, if its storage can. Default false. */
  readonly takesTransactions?: boolean;
  /** For reads of runs that do not go through their journal. */
  readonly runRecords: RunRecords;
  /**
   * The id of a new execution, for an engine that spreads executions over several stores: the id says where the execution is kept.
   * It has the form `exec_` and 26 characters of Crockford's base32, and ids that are created later are greater. Default: an id that
   * names no place.
   * @param now - Unix ms
   */
  newId?(ensemble: string, now: number): string;
  /**
   * Stores the execution, then begins or queues it.
   * @throws OVERLOADED if the engine is closed or its queue is full, and any error of the storage. Then nothing runs
   */
  begin(execution: NewExecution, runnable: LoadedDefinition, options: BeginOptions): MaybePromise<AcceptedRun>;
  /**
   * Begins to work on queued executions, and on executions that other processes left. A second call does nothing.
   * @throws the errors of `workers.register`
   */
  open(): MaybePromise<void>;
  /**
   * Waits for the end of an execution, in whichever process it runs, and returns its record. Undefined if it is unknown.
   * @param maxWaitMs - also returns undefined as soon as this process suspends or releases the execution for longer than this
   */
  whenEnded(id: string, maxWaitMs?: number): Promise<Execution | undefined>;
  /**
   * Requests the cancellation of an execution and of the children that it waits for.
   * @returns its status after that, undefined if it is unknown
   */
  cancel(id: string): Promise<ExecutionStatus | undefined>;
  /**
   * Pauses an execution, or ends its pause, in whichever process it runs. One that runs is `paused` after its current steps.
   * @returns its status after that, undefined if it is unknown. Absent: the engine can't pause
   */
  pause?(id: string, scope: PauseScope): Promise<ExecutionStatus | undefined>;
  resume?(id: string, scope: PauseScope): Promise<ExecutionStatus | undefined>;
  /**
   * Pauses all executions of an ensemble, or everything, also those that are started later; or ends that.
   * @param ensemble - undefined: everything @returns how many executions were changed
   */
  pauseAll?(ensemble: string | undefined): Promise<number>;
  resumeAll?(ensemble: string | undefined): Promise<number>;
  /** What is paused as a whole. */
  pauses?(): Promise<readonly EnginePause[]>;
  /** Stores a signal for an execution, in whichever process it runs, and wakes the execution. */
  signal(signal: NewSignal): Promise<SignalResult>;
  /** Executions may be due that were not: a process that works on executions looks for them soon. Default: it finds them by itself. */
  wake?(): void;
  /** Runs due executions, at most `limit`. @returns the instant (Unix ms) at which the next execution is due */
  runDue(limit: number): Promise<{ readonly nextDueAt?: number }>;
  /** How many runs are active in this process. */
  readonly active: number;
  /**
   * Accepts nothing new, and waits up to `graceMs` for active runs. Then it releases their executions, or cancels those that no
   * process could continue.
   */
  close(graceMs: number): Promise<void>;
}

export interface ExecutionEngine {
  /** Called once by `createOrchestrator`. Does no I/O and sets no timer. */
  attach(host: EngineHost): AttachedEngine;
}
