/** The engine port: gives executions their journal, and decides where and when they run. */

import type { Json } from '../json.ts';
import type { Execution, ExecutionError, ExecutionStatus, FinalStatus } from '../model/execution.ts';
import type { NewExecution, NewSignal, StepRecord } from '../model/stored-execution.ts';
import type { Clock } from './clock.ts';
import type { Journal } from './journal.ts';
import type { Logger } from './logger.ts';
import type { MaybePromise } from './operation.ts';
import type { SignalResult, Storage, StoredDefinition } from './storage.ts';

/** How the interpreter says that a run came out. */
export interface ExecutionOutcome {
  /** `lost`: its journal stores nothing of it any more, and neither must anybody else. */
  readonly status: FinalStatus | 'lost';
  readonly output: Json;
  readonly error?: ExecutionError;
  /** Why it was lost; nothing when it belongs to another process. */
  readonly cause?: unknown;
}

/** A run at work in this process. */
export interface InterpretedRun {
  readonly outcome: Promise<ExecutionOutcome>;
  /** Stops it: at the next step boundary, with the signal of the step at hand aborted. Does nothing once it has ended. */
  stop(reason: 'cancelled' | 'timed_out'): void;
  /** Gives it up as it is: signals what is in flight, ends its timers. Its outcome is `lost`, unless it has come already. */
  abandon(): void;
}

export interface RunOptions {
  /** It was begun before: what is stored of it is recalled, and told to nobody again. */
  readonly resumed: boolean;
  /** It is to be cancelled: it runs no step that it did not run before. */
  readonly cancelled: boolean;
  /** Cancels it when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** An instant (Unix ms) that has been reached, whatever the wall clock says. */
  readonly reached?: number | undefined;
}

/** An ensemble that this process can run. */
export interface Runnable {
  readonly definition: StoredDefinition;
  /** `none`: step results are stored together, with the end. */
  readonly durability: 'step' | 'none';
  /** Runs an execution over a journal. Never throws and never rejects: every failure is an outcome. */
  run(execution: NewExecution, journal: Journal, options: RunOptions): InterpretedRun;
}

/** What an engine is given to work with. */
export interface EngineHost {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly logger: Logger;
  /** ms for which ended executions are kept. */
  readonly retentionMs: number;
  /** A new id of an owner. */
  newOwner(): string;
  /** The definition that an execution began with, ready to run; a text when this process lacks what it needs. */
  restore(definition: StoredDefinition, ensemble: string): Runnable | string;
  /** Called once for each execution that ended in this process, when its end is stored. */
  ended(record: Execution): void;
}

/** An execution that was accepted. */
export interface AcceptedRun {
  /**
   * The finished record, when it ends in the process that accepted it, without having been given up; otherwise undefined, and
   * `whenEnded` of the engine gives the record.
   */
  readonly finished: Promise<Execution | undefined>;
  /** Where it was given up: the instant (Unix ms) from which somebody is to go on. */
  readonly dueAt?: number | undefined;
}

export interface BeginOptions {
  /** It may be queued when the engine is busy. Otherwise it runs at once. */
  readonly mayQueue: boolean;
  /** It belongs to a run that was accepted: it is not refused for a full queue, nor while the engine waits for its runs to end. */
  readonly isChild?: boolean;
  /** It is cancelled when this aborts; a run whose signal has aborted runs no step. */
  readonly signal?: AbortSignal | undefined;
  /**
   * The same start may be made more than once, by any process, and counts once: it is always queued. Where it fails, it may
   * be stored all the same, and whoever makes it again comes to know.
   */
  readonly repeatable?: boolean;
  /** Results that it is handed: the steps under these keys are not run. */
  readonly steps?: readonly StepRecord[];
}

/**
 * What a run asks of the storage. A call is made again while the storage fails, for as long as the engine waits for it.
 * @throws JournalLostError when it still fails then: the run is suspended, and resumed once the storage answers
 */
export type RunStorage = Pick<Storage, 'readState' | 'listSignals' | 'getExecution' | 'countDescendants'>;

export interface RunningEngine {
  /** For what a run asks of the storage beside its journal. */
  readonly storage: RunStorage;
  /**
   * Stores the execution, then begins it, or queues it.
   * @throws OVERLOADED when the engine is closed or its queue is full, what the storage throws; nothing runs then
   */
  begin(execution: NewExecution, runnable: Runnable, options: BeginOptions): MaybePromise<AcceptedRun>;
  /** Begins to work: with what is queued, and what was left behind. Does nothing more when it does. @throws what `join` throws */
  open(): MaybePromise<void>;
  /**
   * The record of an execution once it has ended, wherever it runs; undefined when there is none.
   * @param longestWaitMs - undefined is given too as soon as this process gives it up for longer
   */
  whenEnded(id: string, longestWaitMs?: number): Promise<Execution | undefined>;
  /** Asks that an execution be stopped, and the children that it waits for. @returns its status behind that; undefined when it is unknown */
  cancel(id: string): Promise<ExecutionStatus | undefined>;
  /** Stores a signal for an execution, wherever it runs, and wakes it. */
  signal(signal: NewSignal): Promise<SignalResult>;
  /** Does what is due, at most `limit` executions, and gives the instant at which something is due next. */
  runDue(limit: number): Promise<{ readonly nextDueAt?: number }>;
  /** Runs that this process works on. */
  readonly active: number;
  /** Takes nothing new, waits up to `graceMs` for what runs, then gives it back, or cancels it where nobody could go on. */
  close(graceMs: number): Promise<void>;
}

export interface ExecutionEngine {
  /** Called once by `createOrchestrator`; does no I/O and sets no timer. */
  attach(host: EngineHost): RunningEngine;
}
