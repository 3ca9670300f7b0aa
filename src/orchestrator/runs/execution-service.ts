/** Starts executions: checks the input, passes the execution to the engine, and sends the event of its end. */

import type { Plans } from '../../engine/access/plans.ts';
import { createChildren } from './children.ts';
import { type CallerSignal, createCallerSignals } from '../../engine/base/caller-signal.ts';
import { toMs } from '../../engine/base/duration.ts';
import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import { keepEvents } from '../../engine/events/event-stream.ts';
import { executionEvents, type StoredEvent } from '../../engine/events/execution-events.ts';
import type { MaskText } from '../../engine/interpreter/mask-secrets.ts';
import type { RunPorts } from '../../engine/interpreter/run.ts';
import { runEnsemble } from '../../engine/interpreter/run-ensemble.ts';
import { Turns } from '../../engine/interpreter/turns.ts';
import { createExecutionWatch } from '../../engine/events/watch-executions.ts';
import { cloneJson, type Json } from '../../engine/base/json.ts';
import { andThen, isPromise, type MaybePromise } from '../../engine/base/maybe-promise.ts';
import { endEvent } from '../../engine/model/end-event.ts';
import type { EventData, EventKind, OrchestratorEvent } from '../../engine/model/event.ts';
import type { Execution } from '../../engine/model/execution.ts';
import { toOwnCopy } from '../../engine/model/execution-record.ts';
import type { IdSource } from '../../engine/model/id.ts';
import { type Charge, monthOf } from '../../engine/model/quota.ts';
import { withKeySeed } from '../../engine/model/seed.ts';
import { retryKeyOf, toStoredKey, toTags } from '../../engine/model/start-once.ts';
import type { ExpectedDocument, NewExecution, StepRecord } from '../../engine/model/stored-execution.ts';
import type { Principal } from '../../engine/model/token.ts';
import type { Emitter } from '../../engine/events/emitter.ts';
import type { ResolveComponent } from '../../engine/ports/component-source.ts';
import type { Clock } from '../../engine/ports/clock.ts';
import type {
  AcceptedRun,
  AttachedEngine,
  BeginOptions,
  ExecutionEngine,
  LoadedDefinition,
} from '../../engine/ports/execution-engine.ts';
import { type Logger, SILENT } from '../../engine/ports/logger.ts';
import type { Masking } from '../../engine/ports/masking.ts';
import type { RecordReader, Storage, StoredDefinition } from '../../engine/ports/storage.ts';
import { createOutbox } from '../deliveries/outbox.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';
import { checkPlace, createExecutionIds } from './execution-ids.ts';
import { type ExecuteOptions, type Origin, type RetryOptions, toTrigger } from './execute-options.ts';
import { findFirst, newestOf } from './find-first.ts';
import { logEnd } from './log-end.ts';
import { newExecution } from './new-execution.ts';
import { readInput } from './read-input.ts';
import { type Find, withCurrentDefinition } from './with-current-definition.ts';
import { checkExecuteOptions } from '../options.ts';

/** An execution that was accepted. */
export interface ExecutionHandle<Output = unknown> {
  readonly id: string;
  /** Waits for the end, and returns the record. A failed execution is a result: it is not thrown. */
  result(): Promise<Execution<Output>>;
  /** Like `result`, but returns undefined as soon as the execution only waits, for longer than `maxWaitMs`. */
  resultUnlessWaiting(maxWaitMs: number): Promise<Execution<Output> | undefined>;
  /** Cancels the execution in whichever process it runs: it ends at the next step boundary, and the signal of the current step aborts. */
  cancel(): void;
  /** The events from the first one to the end of the execution. */
  events(): AsyncIterableIterator<OrchestratorEvent>;
}

interface ExecutionServiceParts {
  readonly clock: Clock;
  readonly storage: Storage;
  readonly logger: Logger;
  readonly mask: MaskText;
  readonly json: Masking['json'];
  /** See `errors.stack` of the options. */
  readonly keepsStacks: boolean;
  readonly resolveComponent: ResolveComponent;
  /** An execution has ended in this process. */
  ended(record: Execution): void;
  readonly events: Emitter;
  readonly env: Readonly<Record<string, string>>;
  readonly engine: ExecutionEngine;
  readonly ids: IdSource;
  readonly retentionMs: number;
  readonly plans: Plans;
  /** Loads the definition with which an execution began. A text says what this process lacks. */
  restore(definition: StoredDefinition, ensemble: string): MaybePromise<LoadedEnsemble | string>;
  /** The ensemble with a name. @throws NOT_FOUND, NOT_ACTIVE */
  find(name: string): MaybePromise<LoadedEnsemble>;
  /** Forgets a stored definition that has changed: the next search loads it again. */
  forget(document: ExpectedDocument): void;
}

export interface ExecutionService {
  /** @param find - returns the ensemble, or throws: then the promise rejects */
  execute(find: Find, input: unknown, options?: ExecuteOptions): Promise<Execution<unknown>>;
  /** @param find - as for `execute` @param origin - for a start by something else than a call */
  start(find: Find, input: unknown, options?: ExecuteOptions, origin?: Origin): Promise<ExecutionHandle>;
  /** Starts a new execution for a failed one, with the records of its successful steps, unless another call has done so. */
  retry(
    ensemble: LoadedEnsemble,
    failed: NewExecution,
    steps: readonly StepRecord[],
    options: RetryOptions,
  ): Promise<ExecutionHandle>;
  /** The handle of a stored execution, in whatever process it runs. */
  handleOf(id: string): ExecutionHandle;
  /** The events of a stored execution, after the event with this id. 0: from the first. */
  storedEvents(id: string, after: number, signal?: AbortSignal): AsyncIterableIterator<StoredEvent>;
  /** The form in which the engine runs an ensemble. */
  toLoadedDefinition(ensemble: LoadedEnsemble): LoadedDefinition;
  readonly engine: AttachedEngine;
  /** Where executions, steps and signals are read. */
  readonly records: RecordReader;
  readonly turns: Turns;
}

const NO_OPTIONS: ExecuteOptions = Object.freeze({});
/** A run of an execution that an earlier start began. */
const EARLIER: AcceptedRun = { finished: Promise.resolve(undefined) };

export function createExecutionService(parts: ExecutionServiceParts): ExecutionService {
  const { clock, storage, logger, events, ids } = parts;
  const emit = <K extends EventKind>(event: K, data: EventData[K]) => events.emit(event, data);
  const fromRuns = {
    engine: () => engine,
    find: parts.find,
    forget: parts.forget,
    toLoadedDefinition: (known: LoadedEnsemble) => toLoadedDefinition(known),
  };
  const newId = createExecutionIds(ids, storage, () => engine);
  const children = createChildren({ clock, ids, newId, ...fromRuns });
  const turns = new Turns(clock);
  const runPorts: RunPorts = {
    clock,
    children,
    turns,
    logger: logger === SILENT ? undefined : logger,
    env: parts.env,
    mask: parts.mask,
    keepsStacks: parts.keepsStacks,
    resolveComponent: parts.resolveComponent,
    get emit() {
      return events.hasListeners ? emit : undefined;
    },
  };
  const loaded = new WeakMap<LoadedEnsemble, LoadedDefinition>();
  const toCallerSignal = createCallerSignals();

  const toLoadedDefinition = (ensemble: LoadedEnsemble): LoadedDefinition => {
    const known = loaded.get(ensemble);
    if (known) return known;
    const { compiled, checkOutput } = ensemble;
    const definition: LoadedDefinition = {
      definition: compiled.stored,
      durability: compiled.durability,
      outbox: createOutbox(compiled, parts.json),
      run: (execution, journal, options) => runEnsemble(compiled, execution, journal, runPorts, options, checkOutput),
    };
    loaded.set(ensemble, definition);
    return definition;
  };

  const engine = parts.engine.attach({
    storage,
    clock,
    logger,
    retentionMs: parts.retentionMs,
    newWorkerId: () => ids.id('own_', clock.now()),
    restore(definition, ensemble) {
      return andThen(parts.restore(definition, ensemble), (restored) =>
        typeof restored === 'string' ? restored : toLoadedDefinition(restored),
      );
    },
    ended(record, worker) {
      logEnd(logger, record, worker);
      parts.ended(record);
      if (events.hasListeners) events.send(endEvent(record));
    },
    left: (id) => events.wake(id),
  });

  const accept = (ensemble: LoadedEnsemble, input: Json, options: ExecuteOptions, origin?: Origin): NewExecution => {
    if (options !== NO_OPTIONS) checkExecuteOptions(options);
    const createdAt = clock.now();
    if (options.id !== undefined) checkPlace(options.id, storage, engine);
    const beginning = {
      id: options.id ?? newId(ensemble.compiled.name, createdAt),
      trigger: toTrigger(options, origin),
      input,
      seed: ids.seed(),
      createdAt,
      idempotencyKey: toStoredKey(options),
      tags: toTags(options.tags),
    };
    return newExecution(ensemble.compiled, beginning, {
      timeoutMs: options.timeout === undefined ? undefined : toMs(options.timeout),
    });
  };

  let month = monthOf(0);
  const chargeOf = (principal: Principal | undefined, createdAt: number): Charge | undefined => {
    if (!principal) return undefined;
    const { executions: limit, concurrent: slots } = parts.plans.limitsOf(principal.plan);
    if (createdAt < month.start || createdAt >= month.end) month = monthOf(createdAt);
    return { account: principal.tokenId, period: month.name, limit, slots };
  };

  const beginOptions = (
    { expects }: LoadedEnsemble,
    { createdAt }: NewExecution,
    { signal, principal, overLimit = 'queue' }: ExecuteOptions,
    mayQueue: boolean,
  ): BeginOptions => ({
    mayQueue,
    signal: signal && toCallerSignal(signal),
    expects,
    charge: chargeOf(principal, createdAt),
    refuseWithoutSlot: overLimit === 'refuse',
  });

  const resultUnlessWaiting = async (
    id: string,
    run: AcceptedRun,
    maxWaitMs: number,
  ): Promise<Execution<unknown> | undefined> => {
    const own = await run.finished;
    if (own) return toOwnCopy(own);
    if (run.dueAt !== undefined && run.dueAt - clock.now() > maxWaitMs) return undefined;
    const record = await engine.whenEnded(id, maxWaitMs);
    return record && cloneJson(record);
  };

  const result = async (id: string, run: AcceptedRun): Promise<Execution<unknown>> => {
    const own = await run.finished;
    if (own) return toOwnCopy(own);
    const record = await engine.whenEnded(id);
    if (record) return cloneJson(record);
    throw new OrchestratorError('NOT_FOUND', `execution ${id} was deleted before its result was read`);
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
      run = await engine.begin(execution, toLoadedDefinition(ensemble), options);
    } catch (thrown) {
      kept?.drop();
      throw thrown;
    }
    // A suspended or released execution may continue in any process: then its events are read from the storage.
    const stopKeeping = () => {
      if (!kept || !storage.capabilities.shared || !kept.drop()) return;
      const ended = (record: Execution | undefined) => kept.end(record && endEvent(record));
      engine.whenEnded(id).then(ended, () => kept.end());
    };
    run.finished.then(
      (record) => (record ? kept?.end() : stopKeeping()),
      () => kept?.end(),
    );
    return toHandle(id, run, () => kept?.read());
  };

  const toHandle = (
    id: string,
    run: AcceptedRun,
    keptEvents: () => AsyncIterableIterator<OrchestratorEvent> | undefined,
  ): ExecutionHandle => {
    let given: Promise<Execution<unknown>> | undefined;
    return {
      id,
      result() {
        given ??= result(id, run);
        return given;
      },
      resultUnlessWaiting: (maxWaitMs) => resultUnlessWaiting(id, run, maxWaitMs),
      cancel() {
        engine
          .cancel(id)
          .catch((error: unknown) =>
            logger.warn({ err: error, executionId: id }, 'a cancellation could not be requested'),
          );
      },
      events: () => keptEvents() ?? allEvents(id),
    };
  };

  /** The handle of the execution that an earlier start began, in whatever process it runs. */
  const toEarlier = (id: string, signal: CallerSignal | undefined): ExecutionHandle => {
    const handle = toHandle(id, EARLIER, () => undefined);
    if (signal?.aborted) handle.cancel();
    else signal?.onAbort(handle.cancel);
    return {
      ...handle,
      // The instant at which it is due is not known here.
      async resultUnlessWaiting(maxWaitMs) {
        const found = await records.executions.getStatus(id);
        return found?.status === 'waiting' ? undefined : handle.resultUnlessWaiting(maxWaitMs);
      },
    };
  };

  /** Begins an execution unless an earlier start under its id or its key did. The read saves a commit; the commit is exact. */
  const beginOnce = async (
    ensemble: LoadedEnsemble,
    execution: NewExecution,
    options: BeginOptions,
    keeps: boolean,
  ): Promise<ExecutionHandle> => {
    const first = await findFirst(records, execution);
    if (first !== undefined) return toEarlier(await newestOf(records, first), options.signal);
    try {
      return await begin(ensemble, execution, options, keeps);
    } catch (thrown) {
      const other = isOrchestratorError(thrown, 'CONFLICT') ? await findFirst(records, execution) : undefined;
      if (other === undefined) throw thrown;
      return toEarlier(await newestOf(records, other), options.signal);
    }
  };

  const records = engine.records ?? storage;
  const watch = createExecutionWatch({ records, isShared: storage.capabilities.shared, clock, events });
  const storedEvents: ExecutionService['storedEvents'] = (id, after, signal) =>
    executionEvents({ records, watch, events, turns, id, after, signal });
  async function* allEvents(id: string): AsyncIterableIterator<OrchestratorEvent> {
    for await (const { event } of storedEvents(id, 0)) yield event;
  }

  const executeNow = async (
    ensemble: LoadedEnsemble,
    given: unknown,
    options: ExecuteOptions,
  ): Promise<Execution<unknown>> => {
    const input = readInput(ensemble, given);
    const execution = accept(ensemble, isPromise(input) ? await input : input, options);
    const how = beginOptions(ensemble, execution, { overLimit: 'refuse', ...options }, false);
    if (isOnce(options)) return (await beginOnce(ensemble, execution, how, false)).result();
    const begun = engine.begin(execution, toLoadedDefinition(ensemble), how);
    return await andThen(begun, (run) => result(execution.id, run));
  };

  const startNow = async (
    ensemble: LoadedEnsemble,
    given: unknown,
    options: ExecuteOptions,
    origin: Origin | undefined,
  ): Promise<ExecutionHandle> => {
    const input = readInput(ensemble, given);
    const execution = accept(ensemble, isPromise(input) ? await input : input, options, origin);
    const begins = beginOptions(ensemble, execution, options, true);
    const how = origin ? { ...begins, steps: origin.steps } : begins;
    return (isOnce(options) ? beginOnce : begin)(ensemble, execution, how, options.events !== false);
  };

  return {
    execute: (find, given, options = NO_OPTIONS) =>
      withCurrentDefinition(find, parts.forget, (ensemble) => executeNow(ensemble, given, options)),
    start: (find, given, options = NO_OPTIONS, origin) =>
      withCurrentDefinition(find, parts.forget, (ensemble) => startNow(ensemble, given, options, origin)),
    async retry(ensemble, failed, steps, { principal, newKeys = false, input: given }) {
      const createdAt = clock.now();
      const { trigger, tags, id: retryOf } = failed;
      const input = given === undefined ? failed.input : await readInput(ensemble, given);
      // With the same seed, so that random values lead to the same steps, and the calls have the same keys.
      const seed = newKeys ? withKeySeed(failed.seed, ids.seed()) : failed.seed;
      const id = newId(ensemble.compiled.name, createdAt);
      const idempotencyKey = retryKeyOf(retryOf);
      const execution = newExecution(ensemble.compiled, {
        ...{ id, trigger, input, seed, createdAt, retryOf, idempotencyKey, tags },
      });
      const how = { mayQueue: true, steps, charge: chargeOf(principal, createdAt) };
      try {
        return await begin(ensemble, execution, how, false);
      } catch (thrown) {
        // Another call came first.
        const other = isOrchestratorError(thrown, 'CONFLICT')
          ? await records.executions.findByKey(idempotencyKey)
          : undefined;
        if (other === undefined) throw thrown;
        return toEarlier(other, undefined);
      }
    },
    handleOf: (id) => toEarlier(id, undefined),
    storedEvents,
    toLoadedDefinition,
    engine,
    records,
    turns,
  };
}

/** Whether the start has an id or a key of its caller. Any other start reads nothing. */
function isOnce({ id, idempotencyKey }: ExecuteOptions): boolean {
  return id !== undefined || idempotencyKey !== undefined;
}
