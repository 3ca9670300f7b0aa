/** What an engine brings to the engine suite: its data, its clock, and processes that can die whenever it does something outside of them. */

import type { ManualClock } from '../../../adapters/clock/manual-clock.ts';
import type { ExecutionEngine } from '../../../engine/execution/execution-engine.port.ts';
import type { MaybePromise } from '../../../engine/operation/operation.port.ts';
import type { ExecutionReader, SignalStore, StateStore, Storage } from '../../../engine/storage/storage.port.ts';
import type { SimulatedProcess } from '../../../testing-kit/processes/process-control.ts';

/** Reads what an engine has stored, and stores signals, outside of every process. A `Storage` is one. */
export interface WorldReader {
  readonly executions: ExecutionReader;
  readonly signals: SignalStore;
  readonly state: StateStore;
}

/** How an engine runs in one process. */
export interface EngineProcessOptions {
  /** How many executions the process runs at once. With 0, it only queues executions. Default: at least 100. */
  readonly concurrency?: number | undefined;
  /** How many executions may be queued; further starts are refused with OVERLOADED. Default: at least 1,000. */
  readonly queueLimit?: number | undefined;
  /** Days pass in the test: the engine may take hours to notice that a process has died. */
  readonly longIntervals?: boolean | undefined;
}

/** The engine of one process. */
export interface EngineProcess {
  /** The options `engine` and `storage` of the orchestrator of the process. */
  readonly engine: ExecutionEngine;
  readonly storage: Storage;
  /** Closes what the process had open. The suite calls it when the process has died, and none of its calls is in flight. */
  end?(): MaybePromise<void>;
}

/** The world of one test. Its data are empty at first. */
export interface EngineWorld<
  O extends EngineProcessOptions = EngineProcessOptions,
  R extends WorldReader = WorldReader,
> {
  /** The time of all processes. */
  readonly clock: ManualClock;
  readonly reader: R;
  /** How long after the death of a process another process resumes its executions at the latest, ms. */
  readonly takeoverMs: number;
  /** Whether the engine is at work outside of the processes. The suite advances time only when nothing is at work. Default: never. */
  isBusy?(): boolean;
  /** Starts the engine in a new process. */
  open(process: SimulatedProcess, options: O): MaybePromise<EngineProcess>;
  /** Called after the test, when all processes have ended. */
  close(): MaybePromise<void>;
}
