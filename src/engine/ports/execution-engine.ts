/** The engine port: gives executions their journal, and decides where and when they run. */

import type { Json } from '../json.ts';
import type { Execution, ExecutionError, FinalStatus } from '../model/execution.ts';
import type { NewExecution } from '../model/stored-execution.ts';
import type { Clock } from './clock.ts';
import type { Journal } from './journal.ts';
import type { Logger } from './logger.ts';
import type { MaybePromise } from './operation.ts';
import type { Storage, StoredDefinition } from './storage.ts';

/** How the interpreter says that a run came out. */
export interface ExecutionOutcome {
  readonly status: FinalStatus;
  readonly output: Json;
  readonly error?: ExecutionError;
}

/** A run at work in this process. */
export interface InterpretedRun {
  readonly outcome: Promise<ExecutionOutcome>;
  /** Stops it: at the next step boundary, with the signal of the step at hand aborted. Does nothing once it has ended. */
  stop(reason: 'cancelled' | 'timed_out'): void;
}

/** What an engine is given to work with. */
export interface EngineHost {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Runs an accepted execution over a journal. Never throws and never rejects: every failure is an outcome. */
  interpret(execution: NewExecution, journal: Journal, signal: AbortSignal | undefined): InterpretedRun;
}

/** An execution that was accepted. */
export interface AcceptedRun {
  /** The finished record. Rejects only when its end could not be stored. */
  readonly finished: Promise<Execution>;
  cancel(): void;
}

export interface BeginOptions {
  /** What the execution runs; stored before it when the storage has not got it yet. */
  readonly definition: StoredDefinition;
  /** `none`: step results are stored together, with the end. */
  readonly durability: 'step' | 'none';
  /** Cancels the run when it aborts; a run whose signal has aborted runs no step. */
  readonly signal: AbortSignal | undefined;
}

export interface RunningEngine {
  /** Stores the execution, then begins it. @throws what the storage throws; nothing runs then */
  begin(execution: NewExecution, options: BeginOptions): MaybePromise<AcceptedRun>;
  /** Runs that this process works on. */
  readonly active: number;
  /** Takes nothing new, waits up to `graceMs` for what runs, then cancels it. */
  close(graceMs: number): Promise<void>;
}

export interface ExecutionEngine {
  /** Called once by `createOrchestrator`; does no I/O and sets no timer. */
  attach(host: EngineHost): RunningEngine;
}
