/** Turns a call into a run: checks the input, gives the run to the engine, tells observers how it ended. */

import { createChildren } from './children.ts';
import { acceptInput } from './engine/definition/accept-input.ts';
import { OrchestratorError } from './engine/errors.ts';
import { keepEvents } from './engine/execution/event-stream.ts';
import { executionEvents, type NumberedEvent } from './engine/execution/execution-events.ts';
import type { MaskText } from './engine/execution/mask-secrets.ts';
import type { RunPorts } from './engine/execution/run.ts';
import { runEnsemble } from './engine/execution/run-ensemble.ts';
import { Turns } from './engine/execution/turns.ts';
import { createExecutionWatch } from './engine/execution/watch-executions.ts';
import { cloneJson, type Json } from './engine/json.ts';
import { endEvent } from './engine/model/end-event.ts';
import type { EventData, EventKind, OrchestratorEvent } from './engine/model/event.ts';
import type { Execution, ExecutionTrigger } from './engine/model/execution.ts';
import { toOwnCopy } from './engine/model/execution-record.ts';
import type { IdSource } from './engine/model/id.ts';
import type { NewExecution, StepRecord } from './engine/model/stored-execution.ts';
import type { Emitter } from './engine/notification/emitter.ts';
import type { Clock } from './engine/ports/clock.ts';
import type {
  AcceptedRun,
  BeginOptions,
  ExecutionEngine,
  Runnable,
  RunningEngine,
} from './engine/ports/execution-engine.ts';
import type { Logger } from './engine/ports/logger.ts';
import type { Storage, StoredDefinition } from './engine/ports/storage.ts';
import type { LoadedEnsemble } from './load-definitions.ts';
import { newExecution } from './new-execution.ts';
import { checkExecuteOptions } from './options.ts';

export interface ExecuteOptions {
  /** Cancels the run when it aborts. */
  readonly signal?: AbortSignal;
  /** Milliseconds from the start, waits included; the smaller of this and the ensemble's own `timeout` counts. */
  readonly timeout?: number;
  /** What started it, for its record: `call` (default), or `http` from a host's route. */
  readonly trigger?: 'call' | 'http';
  /** `false`: nothing is kept for `handle.events()`, which gives what is stored. Default true. */
  readonly events?: boolean;
}

/** A run that was accepted. */
export interface ExecutionHandle<Output = unknown> {
  readonly id: string;
  /** The finished record; a run that failed is given back, not thrown. */
  result(): Promise<Execution<Output>>;
  /** As `result`, but gives undefined as soon as the run has nothing to do but wait for longer than `longestWaitMs`. */
  resultUnlessWaiting(longestWaitMs: number): Promise<Execution<Output> | undefined>;
  /** Stops it at the next step boundary, and aborts the signal of the step at hand; wherever it runs by then. */
  cancel(): void;
  /** Its events from the first on; ends with the run. */
  events(): AsyncIterableIterator<OrchestratorEvent>;
}

interface RunnerParts {
  readonly clock: Clock;
  readonly storage: Storage;
  readonly logger: Logger;
  readonly mask: MaskText;
  readonly events: Emitter;
  readonly env: Readonly<Record<string, string>>;
  readonly engine: ExecutionEngine;
  readonly ids: IdSource;
  readonly retentionMs: number;
  /** What an execution of an ensemble began with, made ready to run; a text when this process lacks what it needs. */
  restore(definition: StoredDefinition, ensemble: string): LoadedEnsemble | string;
  /** The ensemble of a name. @throws NOT_FOUND */
  find(name: string): LoadedEnsemble;
}

export interface Runner {
  /** @param find - gives the ensemble, or throws: then the promise rejects */
  execute(find: () => LoadedEnsemble, input: unknown, options?: ExecuteOptions): Promise<Execution<unknown>>;
  /** @param find - as for `execute` */
  start(find: () => LoadedEnsemble, input: unknown, options?: ExecuteOptions): Promise<ExecutionHandle>;
  /** Begins an execution again, with the results of the steps that succeeded. */
  again(ensemble: LoadedEnsemble, failed: NewExecution, steps: readonly StepRecord[]): Promise<ExecutionHandle>;
  /** The events of an execution as it is stored, after the one of this id (0: from the first). */
  storedEvents(id: string, after: number, signal?: AbortSignal): AsyncIterableIterator<NumberedEvent>;
  /** What the engine runs of an ensemble. */
  runnable(ensemble: LoadedEnsemble): Runnable;
  readonly engine: RunningEngine;
}

const CALL: ExecutionTrigger = Object.freeze({ type: 'call' });
const HTTP: ExecutionTrigger = Object.freeze({ type: 'http' });
const NO_OPTIONS: ExecuteOptions = Object.freeze({});

export function createRunner(parts: RunnerParts): Runner {
  const { clock, storage, logger, events, ids } = parts;
  const emit = <K extends EventKind>(event: K, data: EventData[K]) => events.emit(event, data);
  const fromRuns = { engine: () => engine, find: parts.find, toRunnable: (known: LoadedEnsemble) => toRunnable(known) };
  const children = createChildren({ clock, ids, ...fromRuns });
  const runPorts: RunPorts = {
    clock,
    children,
    turns: new Turns(clock),
    logger,
    env: parts.env,
    mask: parts.mask,
    get emit() {
      return events.heard ? emit : undefined;
    },
  };
  const runnables = new WeakMap<LoadedEnsemble, Runnable>();

  const toRunnable = (ensemble: LoadedEnsemble): Runnable => {
    const known = runnables.get(ensemble);
    if (known) return known;
    const { compiled, checkOutput } = ensemble;
    const runnable: Runnable = {
      definition: compiled.stored,
      durability: compiled.durability,
      run: (execution, journal, options) => runEnsemble(compiled, execution, journal, runPorts, options, checkOutput),
    };
    runnables.set(ensemble, runnable);
    return runnable;
  };

  const engine = parts.engine.attach({
    storage,
    clock,
    logger,
    retentionMs: parts.retentionMs,
    newOwner: () => ids.id('own_', clock.now()),
    restore(definition, ensemble) {
      const restored = parts.restore(definition, ensemble);
      return typeof restored === 'string' ? restored : toRunnable(restored);
    },
    ended(record) {
      if (events.heard) events.send(endEvent(record));
    },
  });

  const accept = (ensemble: LoadedEnsemble, input: unknown, options: ExecuteOptions): NewExecution => {
    if (options !== NO_OPTIONS) checkExecuteOptions(options);
    const createdAt = clock.now();
    const beginning = {
      id: ids.id('exec_', createdAt),
      trigger: options.trigger === 'http' ? HTTP : CALL,
      input: acceptInput(ensemble.compiled, input),
      seed: ids.seed(),
      createdAt,
    };
    return newExecution(ensemble.compiled, beginning, { timeoutMs: options.timeout });
  };

  const resultUnlessWaiting = async (
    id: string,
    run: AcceptedRun,
    longestWaitMs: number,
  ): Promise<Execution<unknown> | undefined> => {
    const own = await run.finished;
    if (own) return toOwnCopy(own);
    if (run.dueAt !== undefined && run.dueAt - clock.now() > longestWaitMs) return undefined;
    const record = await engine.whenEnded(id, longestWaitMs);
    return record && (cloneJson(record as unknown as Json) as unknown as Execution);
  };

  const result = async (id: string, run: AcceptedRun): Promise<Execution<unknown>> => {
    const own = await run.finished;
    if (own) return toOwnCopy(own);
    const record = await engine.whenEnded(id);
    if (record) return cloneJson(record as unknown as Json) as unknown as Execution;
    throw new OrchestratorError('NOT_FOUND', `execution ${id} was deleted before it was looked at`);
  };

  const begin = async (
    ensemble: LoadedEnsemble,
    execution: NewExecution,
    options: BeginOptions,
    keeps: boolean,
  ): Promise<ExecutionHandle> => {
    const { id } = execution;
    const kept = keeps ? keepEvents(events, id) : undefined;
    let run: AcceptedRun;
    try {
      run = await engine.begin(execution, toRunnable(ensemble), options);
    } catch (thrown) {
      kept?.drop();
      throw thrown;
    }
    // What was given up goes on in who knows which process: its events are read from what is stored then.
    const givenUp = () => {
      if (!kept || !storage.capabilities.shared || !kept.drop()) return;
      const ended = (record: Execution | undefined) => kept.end(record && endEvent(record));
      engine.whenEnded(id).then(ended, () => kept.end());
    };
    run.finished.then(
      (record) => (record ? kept?.end() : givenUp()),
      () => kept?.end(),
    );
    let given: Promise<Execution<unknown>> | undefined;
    return {
      id,
      result() {
        given ??= result(id, run);
        return given;
      },
      resultUnlessWaiting: (longestWaitMs) => resultUnlessWaiting(id, run, longestWaitMs),
      cancel() {
        engine.cancel(id).catch((error: unknown) => logger.warn({ err: error, executionId: id }, 'a cancel was lost'));
      },
      events: () => kept?.read() ?? allEvents(id),
    };
  };

  const watch = createExecutionWatch({ storage, clock, events });
  const storedEvents: Runner['storedEvents'] = (id, after, signal) =>
    executionEvents({ storage, watch, id, after, signal });
  async function* allEvents(id: string): AsyncIterableIterator<OrchestratorEvent> {
    for await (const { event } of storedEvents(id, 0)) yield event;
  }

  return {
    async execute(find, input, options = NO_OPTIONS) {
      const ensemble = find();
      const execution = accept(ensemble, input, options);
      const begun = engine.begin(execution, toRunnable(ensemble), { mayQueue: false, signal: options.signal });
      return await result(execution.id, begun instanceof Promise ? await begun : begun);
    },
    async start(find, input, options = NO_OPTIONS) {
      const ensemble = find();
      const execution = accept(ensemble, input, options);
      return begin(ensemble, execution, { mayQueue: true, signal: options.signal }, options.events !== false);
    },
    async again(ensemble, failed, steps) {
      const createdAt = clock.now();
      // With its seed, so that what is drawn leads to the same steps.
      const { trigger, input, seed, id: retryOf } = failed;
      const beginning = { id: ids.id('exec_', createdAt), trigger, input, seed, createdAt, retryOf };
      const execution = newExecution(ensemble.compiled, beginning);
      return begin(ensemble, execution, { mayQueue: true, steps }, false);
    },
    storedEvents,
    runnable: toRunnable,
    engine,
  };
}
