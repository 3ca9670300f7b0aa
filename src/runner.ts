/** Turns a call into a run: checks the input, gives the run to the engine, tells observers how it ended. */

import { OrchestratorError } from './engine/errors.ts';
import { createEventStream, type EventStream } from './engine/execution/event-stream.ts';
import type { MaskText } from './engine/execution/mask-secrets.ts';
import type { RunPorts } from './engine/execution/run.ts';
import { runEnsemble } from './engine/execution/run-ensemble.ts';
import { cloneJson, copyJson, type Json, JsonError } from './engine/json.ts';
import { endEvent } from './engine/model/end-event.ts';
import type { EventData, EventKind, OrchestratorEvent } from './engine/model/event.ts';
import type { Execution, ExecutionError, ExecutionTrigger } from './engine/model/execution.ts';
import type { IdSource } from './engine/model/id.ts';
import type { NewExecution } from './engine/model/stored-execution.ts';
import type { Emitter } from './engine/notification/emitter.ts';
import type { Clock } from './engine/ports/clock.ts';
import type { AcceptedRun, ExecutionEngine } from './engine/ports/execution-engine.ts';
import type { Logger } from './engine/ports/logger.ts';
import type { MaybePromise } from './engine/ports/operation.ts';
import type { Storage } from './engine/ports/storage.ts';
import type { LoadedEnsemble } from './load-definitions.ts';
import { refuseUnknownKeys } from './options.ts';

export interface ExecuteOptions {
  /** Cancels the run when it aborts. */
  readonly signal?: AbortSignal;
  /** Milliseconds from the start, waits included; the smaller of this and the ensemble's own `timeout` counts. */
  readonly timeout?: number;
  /** What started it, for its record: `call` (default), or `http` from a host's route. */
  readonly trigger?: 'call' | 'http';
  /** `false`: `handle.events()` begins when it is called, and nothing is kept for it before. Default true. */
  readonly events?: boolean;
}

/** A run that was accepted. */
export interface ExecutionHandle<Output = unknown> {
  readonly id: string;
  /** The finished record; a run that failed is given back, not thrown. */
  result(): Promise<Execution<Output>>;
  /** Stops it at the next step boundary, and aborts the signal of the step at hand. */
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
}

export interface Runner {
  /** @param find - gives the ensemble, or throws: then the promise rejects */
  execute(find: () => LoadedEnsemble, input: unknown, options?: ExecuteOptions): Promise<Execution<unknown>>;
  /** @param find - as for `execute` */
  start(find: () => LoadedEnsemble, input: unknown, options?: ExecuteOptions): Promise<ExecutionHandle>;
  close(graceMs: number): Promise<void>;
}

const CALL: ExecutionTrigger = Object.freeze({ type: 'call' });
const HTTP: ExecutionTrigger = Object.freeze({ type: 'http' });
const NO_OPTIONS: ExecuteOptions = Object.freeze({});
const OPTION_KEYS: readonly (keyof ExecuteOptions)[] = ['signal', 'timeout', 'trigger', 'events'];

export function createRunner(parts: RunnerParts): Runner {
  const { clock, storage, logger, events } = parts;
  const { ids } = parts;
  // What the engine runs next: filled just before `begin`, taken when the engine asks for the run.
  const loading = new Map<string, LoadedEnsemble>();
  const emit = <K extends EventKind>(event: K, data: EventData[K]) => events.emit(event, data);
  const runPorts: RunPorts = {
    clock,
    logger,
    env: parts.env,
    mask: parts.mask,
    get emit() {
      return events.heard ? emit : undefined;
    },
  };
  const engine = parts.engine.attach({
    storage,
    clock,
    logger,
    interpret(execution, journal, signal) {
      const ensemble = loading.get(execution.id);
      if (!ensemble) throw new OrchestratorError('INTERNAL', `execution ${execution.id} is not known to this process`);
      loading.delete(execution.id);
      return runEnsemble(ensemble.compiled, execution, journal, runPorts, signal, ensemble.checkOutput);
    },
  });

  const begin = (
    ensemble: LoadedEnsemble,
    execution: NewExecution,
    signal: AbortSignal | undefined,
  ): MaybePromise<AcceptedRun> => {
    const { stored: definition, durability } = ensemble.compiled;
    loading.set(execution.id, ensemble);
    try {
      return engine.begin(execution, { definition, durability, signal });
    } catch (thrown) {
      loading.delete(execution.id);
      throw thrown;
    }
  };

  const accept = (ensemble: LoadedEnsemble, input: unknown, options: ExecuteOptions): NewExecution => {
    if (options !== NO_OPTIONS) refuseUnknownKeys(options, OPTION_KEYS, 'execute');
    const createdAt = clock.now();
    const timeoutMs = shorter(ensemble.compiled.timeoutMs, checkTimeout(options.timeout));
    const execution = {
      id: ids.id('exec_', createdAt),
      ensemble: ensemble.compiled.name,
      version: ensemble.compiled.stored.version,
      trigger: options.trigger === 'http' ? HTTP : CALL,
      input: checkInput(ensemble, input),
      seed: ids.seed(),
      createdAt,
      epoch: 1,
    };
    return timeoutMs === undefined ? execution : { ...execution, deadlineAt: createdAt + timeoutMs };
  };

  const finish = async (run: AcceptedRun): Promise<Execution<unknown>> => {
    const record = await run.finished;
    if (events.heard) events.send(endEvent(record));
    return ownCopy(record);
  };

  return {
    async execute(find, input, options = NO_OPTIONS) {
      const ensemble = find();
      const execution = accept(ensemble, input, options);
      const begun = begin(ensemble, execution, options.signal);
      return await finish(begun instanceof Promise ? await begun : begun);
    },
    async start(find, input, options = NO_OPTIONS) {
      const ensemble = find();
      const execution = accept(ensemble, input, options);
      const listen = (): EventStream => {
        const stream = createEventStream();
        const forget = events.onExecution(execution.id, (event) => stream.push(event));
        stops.push(() => {
          forget();
          stream.end();
        });
        return stream;
      };
      const stops: (() => void)[] = [];
      const done = () => {
        for (const stop of stops) stop();
      };
      const kept = options.events === false ? undefined : listen();
      let run: AcceptedRun;
      try {
        run = await begin(ensemble, execution, options.signal);
      } catch (thrown) {
        done();
        throw thrown;
      }
      let ended = false;
      const result = finish(run);
      const end = () => {
        ended = true;
        done();
      };
      result.then(end, end);
      return {
        id: execution.id,
        result: () => result,
        cancel: () => run.cancel(),
        events: () => {
          const stream = kept ?? listen();
          if (ended) stream.end();
          return stream.read();
        },
      };
    },
    close: (graceMs) => engine.close(graceMs),
  };
}

function checkInput({ compiled }: LoadedEnsemble, given: unknown): Json {
  let input: Json;
  try {
    input = copyJson(given === undefined ? {} : given);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw invalidInput(compiled.name, [error.problem]);
  }
  const checked = compiled.checkInput(input);
  if ('problems' in checked) throw invalidInput(compiled.name, checked.problems);
  return checked.value;
}

function invalidInput(
  name: string,
  issues: readonly { readonly path: string; readonly message: string }[],
): OrchestratorError {
  const text = issues.map(({ path, message }) => `${path || 'the input'} ${message}`).join('; ');
  return new OrchestratorError('INVALID_INPUT', `the input of \`${name}\` does not fit: ${text}`, {
    details: { issues },
  });
}

function checkTimeout(timeout: number | undefined): number | undefined {
  if (timeout === undefined || (Number.isFinite(timeout) && timeout > 0)) return timeout;
  throw new TypeError(`execute: \`timeout\` must be a positive number of milliseconds, not ${timeout}`);
}

function shorter(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined ? b : b === undefined ? a : Math.min(a, b);
}

// The caller's to change: the storage keeps values of its own. The record itself and its runs were made for the caller alone.
function ownCopy(record: Execution): Execution {
  const own = record as { input: Json; output: Json; error?: ExecutionError };
  own.input = cloneJson(record.input);
  own.output = cloneJson(record.output);
  if (own.error) own.error = { ...own.error };
  for (const run of record.agents as unknown as { output: Json; error?: ExecutionError }[]) {
    run.output = cloneJson(run.output);
    if (run.error) run.error = { ...run.error };
  }
  return record;
}
