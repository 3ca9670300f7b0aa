/** Starts executions: checks the input, passes the execution to the engine, and sends the event of its end. */

import type { Plans } from '../../engine/access/rules/plans.ts';
import { isOrchestratorError } from '../../engine/base/errors.ts';
import { andThen, isPromise, type MaybePromise } from '../../engine/base/maybe-promise.ts';
import type { Gather } from '../../engine/compiled/compiled-ensemble.ts';
import type { ResolveComponent } from '../../engine/component/component-source.port.ts';
import type { EventData, EventKind } from '../../engine/events/event.ts';
import { METRICS } from '../../engine/events/measurement.ts';
import type { Emitter } from '../../engine/events/rules/emitter.ts';
import { keepEvents } from '../../engine/events/rules/event-stream.ts';
import { executionEvents, type StoredEvent } from '../../engine/events/rules/execution-events.ts';
import { createExecutionWatch } from '../../engine/events/rules/watch-executions.ts';
import { traceOf } from '../../engine/events/trace-context.ts';
import { endEvent } from '../../engine/execution/end-event.ts';
import type { DryRunOptions, Execution, ExecutionRetry, ExecutionTrigger } from '../../engine/execution/execution.ts';
import type {
  AttachedEngine,
  BeginOptions,
  ExecutionEngine,
  LoadedDefinition,
} from '../../engine/execution/execution-engine.port.ts';
import type { IdSource } from '../../engine/execution/id.ts';
import { withKeySeed } from '../../engine/execution/seed.ts';
import { retryKeyOf } from '../../engine/execution/start-once.ts';
import type { ExpectedDocument, NewExecution, StepRecord } from '../../engine/execution/stored-execution.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import { type Logger, SILENT } from '../../engine/host/logger.port.ts';
import type { Masking } from '../../engine/host/masking.port.ts';
import type { Tracing } from '../../engine/host/telemetry.port.ts';
import type { MaskText } from '../../engine/interpreter/attempt/mask-secrets.ts';
import type { RunPorts } from '../../engine/interpreter/run.ts';
import { runEnsemble } from '../../engine/interpreter/run-ensemble.ts';
import { Turns } from '../../engine/interpreter/turns.ts';
import { never } from '../../engine/running/recorded-journal.ts';
import type { StandingJournal } from '../../engine/running/standing-journal.ts';
import type { RecordReader, Storage, StoredDefinition } from '../../engine/storage/storage.port.ts';
import { createDryRuns, type DryRuns } from '../change/dry-run.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';
import { createOutbox } from '../deliveries/outbox.ts';
import { checkExecuteOptions } from '../options/options.ts';
import { traceStart } from '../telemetry.ts';
import { createChildren } from './children.ts';
import { createLearning } from './flow-limits.ts';
import { createHandles, type ExecutionHandle } from './handles.ts';
import { logEnd } from './log-end.ts';
import {
  createAcceptance,
  createOpenTransaction,
  NO_OPTIONS,
  type OpenTransaction,
  refuseWithin,
} from './starts/accept.ts';
import { dryRunOf, type ExecuteOptions, type Origin, type RetryOptions } from './starts/execute-options.ts';
import { createExecutionIds } from './starts/execution-ids.ts';
import { findFirst, newestOf } from './starts/find-first.ts';
import { createGatherStart } from './starts/gather-starts.ts';
import { newExecution } from './starts/new-execution.ts';
import { readInput, readRecordedInput } from './starts/read-input.ts';
import { createStartRequests, type StartRequests } from './starts/start-requests.ts';
import { type Find, withCurrentDefinition } from './starts/with-current-definition.ts';
import { createStepSlots } from './step-slots.ts';

interface ExecutionServiceDependencies {
  readonly clock: Clock;
  readonly storage: Storage;
  /** The same for the engine, which waits for it in its own way. */
  readonly engineStorage: Storage;
  readonly logger: Logger;
  readonly mask: MaskText;
  readonly json: Masking['json'];
  /** See `errors.stack` of the options. */
  readonly keepsStacks: boolean;
  readonly resolveComponent: ResolveComponent;
  /** Called when an execution has ended in this process. */
  readonly ended: readonly ((record: Execution) => void)[];
  readonly events: Emitter;
  readonly env: Readonly<Record<string, string>>;
  readonly tracing: Tracing | undefined;
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
    lineage: ExecutionRetry | undefined,
  ): Promise<ExecutionHandle>;
  /** The handle of a stored execution, in whatever process it runs. */
  handleOf(id: string): ExecutionHandle;
  /** The events of a stored execution, after the event with this id. 0: from the first. */
  storedEvents(id: string, after: number, signal?: AbortSignal): AsyncIterableIterator<StoredEvent>;
  /** The form in which the engine runs an ensemble. */
  toLoadedDefinition(ensemble: LoadedEnsemble): LoadedDefinition;
  /**
   * Runs an execution over a journal that lets no operation run: nothing is started, reported, logged or out of time. The run never ends,
   * and holds nothing outside of itself.
   * @param at - the present instant of the run, Unix ms. Default: now
   */
  follow(ensemble: LoadedEnsemble, execution: NewExecution, journal: StandingJournal, at?: number): void;
  /** Undefined without a transaction. @throws NOT_CONFIGURED, INVALID_REQUEST */
  readonly openTransaction: OpenTransaction;
  readonly requests: StartRequests;
  readonly runShadow: DryRuns['shadow'];
  readonly tracing: Tracing | undefined;
  readonly engine: AttachedEngine;
  /** Where executions, steps and signals are read. */
  readonly records: RecordReader;
  readonly turns: Turns;
}

export function createExecutionService(dependencies: ExecutionServiceDependencies): ExecutionService {
  const { clock, storage, logger, events, ids, tracing } = dependencies;
  const turns = new Turns(clock);
  // The engine runs definitions, and a definition may start children through the engine.
  const newId = createExecutionIds(ids, storage, () => engine);
  const children = createChildren({
    ...{ clock, ids, newId, engine: () => engine, find: dependencies.find, forget: dependencies.forget },
    toLoadedDefinition: (ensemble) => toLoadedDefinition(ensemble),
    tracing,
  });
  const ports = createRunPorts(dependencies, children, turns);
  const { json, find } = dependencies;
  const dryRuns = createDryRuns({
    ...{ ports, clock, ids, json, turns, find, states: storage.state },
    records: () => records,
  });
  const toLoadedDefinition = createToLoadedDefinition(ports, json, dryRuns);
  const requests = createStartRequests({
    ...{ documents: storage.documents, clock, logger, ids, toLoadedDefinition, find, forget: dependencies.forget },
    engine: () => engine,
    records: () => records,
  });
  const engine = attachEngine(dependencies, toLoadedDefinition, requests.requested);
  const records = engine.records ?? storage;
  const isShared = storage.capabilities.shared;
  const watch = createExecutionWatch({ records, isShared, clock, events });
  const storedEvents: ExecutionService['storedEvents'] = (id, after, signal) =>
    executionEvents({ records, watch, events, turns, id, after, signal });
  const { accept, choose, beginOptions, chargeOf } = createAcceptance({ ...dependencies, newId, engine, records });
  const { result, toHandle, toEarlier } = createHandles({ clock, logger, engine, records, isShared, storedEvents });

  const begin: Begin = async ({ ensemble, execution, how, keeps }) => {
    const kept = keeps ? keepEvents(events, execution.id) : undefined;
    try {
      const run = await engine.begin(execution, toLoadedDefinition(ensemble), how);
      return toHandle(execution.id, run, kept);
    } catch (thrown) {
      kept?.drop();
      throw thrown;
    }
  };
  const openTransaction = createOpenTransaction(storage, () => engine);
  /** Begins an execution unless an earlier start under its id or its key did. The read saves a commit; the commit is exact. */
  const beginOnce = async (start: Start): Promise<ExecutionHandle> => {
    const { execution, how } = start;
    const from = how.within ?? records;
    const first = await findFirst(from, execution);
    if (first !== undefined) return toEarlier(await newestOf(from, first), how.signal);
    try {
      return await begin(start);
    } catch (thrown) {
      const other = isOrchestratorError(thrown, 'CONFLICT') ? await findFirst(from, execution) : undefined;
      if (other === undefined) throw thrown;
      return toEarlier(await newestOf(from, other), how.signal);
    }
  };
  const gatherStart = createGatherStart({ ...dependencies, records, engine, begin });
  const share = async (gather: Gather, start: Omit<Start, 'keeps'>, options: ExecuteOptions) =>
    toEarlier(await gatherStart(gather, start, options), undefined);
  /** A dry run ends within the call. What it does is stored with its end. */
  const startDry = async (current: LoadedEnsemble, given: unknown, options: ExecuteOptions, dry: DryRunOptions) => {
    checkExecuteOptions(options);
    const from = await dryRuns.inputOf(dry, current.compiled.name, given);
    const chosen = current.traffic && (await choose(current, current.traffic, from, options));
    const ensemble = chosen?.ensemble ?? current;
    const execution = accept(ensemble, await readInput(ensemble, from), options, true, undefined, chosen?.id);
    // What runs is charged.
    const { principal, ...rest } = options;
    const how = beginOptions(ensemble, execution, dry.runScripts ? { ...rest, principal } : rest, false);
    const run = await engine.begin(execution, { ...toLoadedDefinition(ensemble), durability: 'none' }, how);
    return toHandle(execution.id, run, undefined);
  };
  const executeNow = async (current: LoadedEnsemble, given: unknown, options: ExecuteOptions) => {
    // Not checked yet: it may be null.
    if (options?.transaction !== undefined) refuseWithin(options, true);
    const dry = dryRunOf(options);
    if (dry) return (await startDry(current, given, options, dry)).result();
    const chosen = current.traffic && (await choose(current, current.traffic, given, options));
    const ensemble = chosen?.ensemble ?? current;
    const input = readInput(ensemble, given);
    const execution = accept(ensemble, isPromise(input) ? await input : input, options, true, undefined, chosen?.id);
    const how = beginOptions(ensemble, execution, { overLimit: 'refuse', ...options }, false);
    const { gather } = ensemble.compiled;
    if (gather) return (await share(gather, { ensemble, execution, how }, options)).result();
    if (isOnce(options)) return (await beginOnce({ ensemble, execution, how, keeps: false })).result();
    const begun = engine.begin(execution, toLoadedDefinition(ensemble), how);
    return await andThen(begun, (run) => result(execution.id, run));
  };
  const startNow = async (current: LoadedEnsemble, given: unknown, options: ExecuteOptions, origin?: Origin) => {
    if (options?.transaction !== undefined) refuseWithin(options, false);
    const within = options?.transaction === undefined ? undefined : await openTransaction(options.transaction);
    const dry = dryRunOf(options);
    if (dry) return startDry(current, given, options, dry);
    const chosen = current.traffic && (await choose(current, current.traffic, given, options));
    const ensemble = chosen?.ensemble ?? current;
    const input = readInput(ensemble, given);
    // A request that waits for the end refuses to wait for a slot.
    const isAwaited = origin === undefined && (options.trigger !== 'http' || options.overLimit === 'refuse');
    const execution = accept(ensemble, isPromise(input) ? await input : input, options, isAwaited, origin, chosen?.id);
    const begins = beginOptions(ensemble, execution, options, true);
    const { gather } = ensemble.compiled;
    if (gather) return share(gather, { ensemble, execution, how: { ...begins, steps: origin?.steps } }, options);
    const how = origin || within ? { ...begins, within, ...(origin && { steps: origin.steps }) } : begins;
    const start = { ensemble, execution, how, keeps: options.events !== false && !within };
    return isOnce(options) ? beginOnce(start) : begin(start);
  };

  return {
    execute: (find, given, options = NO_OPTIONS) =>
      withCurrentDefinition(find, dependencies.forget, (ensemble) => executeNow(ensemble, given, options)),
    start: (find, given, options = NO_OPTIONS, origin) =>
      withCurrentDefinition(find, dependencies.forget, (ensemble) => startNow(ensemble, given, options, origin)),
    async retry(ensemble, failed, steps, { principal, newKeys = false, input: given }, lineage) {
      const createdAt = clock.now();
      const { tags, id: retryOf } = failed;
      const isSame = given === undefined && ensemble.compiled.stored.version === failed.version;
      const input = isSame
        ? failed.input
        : await readRecordedInput(ensemble, given === undefined ? failed.input : given);
      // With the same seed, so that random values lead to the same steps, and the calls have the same keys.
      const seed = newKeys ? withKeySeed(failed.seed, ids.seed()) : failed.seed;
      const id = newId(ensemble.compiled.name, createdAt);
      const idempotencyKey = retryKeyOf(retryOf);
      const trigger = traceStart(tracing, {
        ...{
          executionId: id,
          ensemble: ensemble.compiled.name,
          trigger: triggerOfRetry(failed.trigger, lineage),
        },
        ...{ caller: traceOf(failed.trigger), isDetached: true },
      });
      const beginning = { id, trigger, input, isRecorded: true, seed, createdAt, idempotencyKey, tags };
      const execution = { ...newExecution(ensemble.compiled, beginning), retryOf };
      const how = { mayQueue: true, steps, charge: chargeOf(principal, createdAt) };
      try {
        return await begin({ ensemble, execution, how, keeps: false });
      } catch (thrown) {
        // Another call came first.
        const isSecond = isOrchestratorError(thrown, 'CONFLICT') && lineage?.completed === undefined;
        const other = isSecond ? await records.executions.findByKey(idempotencyKey) : undefined;
        if (other === undefined) throw thrown;
        return toEarlier(other, undefined);
      }
    },
    handleOf: (id) => toEarlier(id, undefined),
    follow: createFollow(ports),
    ...{ storedEvents, toLoadedDefinition, runShadow: dryRuns.shadow, tracing, engine, records, turns },
    ...{ openTransaction, requests },
  };
}

type Begin = (start: Start) => Promise<ExecutionHandle>;

/** An execution that is about to begin. */
interface Start {
  readonly ensemble: LoadedEnsemble;
  readonly execution: NewExecution;
  readonly how: BeginOptions;
  /** Whether its events are kept for the caller. */
  readonly keeps: boolean;
}

type ToLoadedDefinition = ExecutionService['toLoadedDefinition'];

function createRunPorts(
  dependencies: ExecutionServiceDependencies,
  children: RunPorts['children'],
  turns: Turns,
): RunPorts {
  const { clock, logger, events, env, mask, keepsStacks, resolveComponent, tracing } = dependencies;
  const emit = <K extends EventKind>(event: K, data: EventData[K]) => events.emit(event, data);
  return {
    ...{ clock, children, turns, env, mask, keepsStacks, resolveComponent, tracing },
    askedToWait: createLearning(dependencies),
    slots: createStepSlots(dependencies),
    logger: logger === SILENT ? undefined : logger,
    get emit() {
      return events.hasListeners ? emit : undefined;
    },
    get measure() {
      return events.measure;
    },
  };
}

const RESUMED = { resumed: true, cancelled: false };

function createFollow(ports: RunPorts): ExecutionService['follow'] {
  return ({ compiled }, { deadlineAt: _none, ...execution }, journal, at) => {
    runEnsemble(compiled, execution, journal, withoutEffects(ports, journal, at), RESUMED, undefined);
  };
}

function withoutEffects(ports: RunPorts, journal: StandingJournal, at?: number): RunPorts {
  const { clock: real, turns, env, mask, resolveComponent } = ports;
  const setTimer = () => () => {};
  const clock: Clock = { now: () => at ?? real.now(), monotonic: () => real.monotonic(), sleep: never, setTimer };
  const children = { newId: () => '', start: never, cancel: never };
  const emit: RunPorts['emit'] = (event, data) => {
    if (event === 'agent.started') journal.begins((data as EventData['agent.started']).key);
  };
  return { clock, turns, env, mask, resolveComponent, children, emit, logger: undefined, keepsStacks: false };
}

function createToLoadedDefinition(ports: RunPorts, json: Masking['json'], dryRuns: DryRuns): ToLoadedDefinition {
  const loaded = new WeakMap<LoadedEnsemble, LoadedDefinition>();
  return (ensemble) => {
    const known = loaded.get(ensemble);
    if (known) return known;
    const { compiled, checkOutput } = ensemble;
    const outbox = createOutbox(compiled, json);
    const definition: LoadedDefinition = {
      definition: compiled.stored,
      durability: compiled.durability,
      perProcess: compiled.perProcess,
      hasLoops: compiled.hasLoops,
      outbox:
        outbox &&
        ((entry, execution, begunAt) => (execution.trigger.dryRun ? entry : outbox(entry, execution, begunAt))),
      // In every process, and if it is resumed, no operation of a dry run runs.
      run: (execution, journal, options) =>
        execution.trigger.dryRun
          ? dryRuns.run(ensemble, execution, journal, options)
          : runEnsemble(compiled, execution, journal, ports, options, checkOutput),
    };
    loaded.set(ensemble, definition);
    return definition;
  };
}

function attachEngine(
  dependencies: ExecutionServiceDependencies,
  toLoadedDefinition: ToLoadedDefinition,
  requested: () => void,
): AttachedEngine {
  const { engineStorage, clock, logger, retentionMs, ids, events } = dependencies;
  return dependencies.engine.attach({
    ...{ storage: engineStorage, clock, logger, retentionMs, requested },
    newWorkerId: () => ids.id('own_', clock.now()),
    restore: (definition, ensemble) =>
      andThen(dependencies.restore(definition, ensemble), (restored) =>
        typeof restored === 'string' ? restored : toLoadedDefinition(restored),
      ),
    ended(record, worker) {
      logEnd(logger, record, worker);
      // Nothing happened: it counts apart, and nobody is notified.
      if (record.dryRun) {
        events.measure?.(METRICS.dryRuns, [record.ensemble, record.status], 1);
        events.wake(record.id);
        return;
      }
      for (const ended of dependencies.ended) ended(record);
      if (events.hasListeners) events.send(endEvent(record));
    },
    left: (id) => events.wake(id),
  });
}

/** Traffic does not choose a retry: guards don't count it, and it has no shadow. */
function triggerOfRetry(
  { traffic: _traffic, retry: _before, ...trigger }: ExecutionTrigger,
  retry: ExecutionRetry | undefined,
): ExecutionTrigger {
  return retry ? { ...trigger, retry } : trigger;
}

/** Whether the start has an id or a key of its caller. Any other start reads nothing. */
function isOnce({ id, idempotencyKey }: ExecuteOptions): boolean {
  return id !== undefined || idempotencyKey !== undefined;
}
