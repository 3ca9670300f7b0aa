/** Accepts an execution: stores its definition, then the execution itself, as running in this process or as queued for any worker. */

import { monthOf } from '../../engine/access/quota.ts';
import { isOrchestratorError, messageOf, OrchestratorError } from '../../engine/base/errors.ts';
import { andThen } from '../../engine/base/maybe-promise.ts';
import {
  type AcceptedRun,
  type BeginOptions,
  type LoadedDefinition,
  StaleDefinitionError,
} from '../../engine/execution/execution-engine.port.ts';
import { type FlowLimit, mayRefuse, shownName } from '../../engine/execution/limits/flow-limit.ts';
import type { CommitEntry, NewExecution } from '../../engine/execution/stored-execution.ts';
import type { MaybePromise } from '../../engine/operation/operation.port.ts';
import { isUnstorable } from '../../engine/running/write-failure.ts';
import type { CommitResult, StoredDefinition, TransactionStore } from '../../engine/storage/storage.port.ts';
import { cancelOnAbort } from './cancel-execution.ts';
import { endUnconfirmed } from './deferred-writes.ts';
import type { EngineState } from './engine-state.ts';
import { launchRun } from './launch-run.ts';
import { startPolling } from './poll.ts';

const QUEUED: AcceptedRun = { finished: Promise.resolve(undefined) };

/** See `AttachedEngine.begin`. */
export function acceptExecution(
  engine: EngineState,
  execution: NewExecution,
  loaded: LoadedDefinition,
  options: BeginOptions,
): MaybePromise<AcceptedRun> {
  const { runs, settings, suspects, worker, isClosing } = engine;
  if (isClosing && !(options.isChild && runs.size > 0))
    throw new OrchestratorError('OVERLOADED', 'the orchestrator is closed and takes no new executions');
  const { within } = options;
  if (within) {
    const { definition } = loaded;
    const storing = within.definitions ? within.definitions.put(definition) : storeDefinition(engine, definition);
    return andThen(storing, () => queueWithin(engine, execution, options, within));
  }
  // While it closes, it queues what another process can run.
  if (settings.concurrency === 0 || options.repeatable || (isClosing && !runs.pending))
    return andThen(storeDefinition(engine, loaded.definition), () => queue(engine, execution, options));
  const mustQueue = () =>
    options.later || (options.mayQueue && (runs.taken >= settings.concurrency || suspects.areActive));
  const accepted = andThen(worker.register(), (by) => {
    startPolling(engine);
    const { pauses } = engine;
    const storing = storeDefinition(engine, loaded.definition);
    return andThen(pauses.isLoaded ? storing : andThen(storing, pauses.load), () =>
      mustQueue() ||
      pauses.scopeOf(execution.ensemble) ||
      (loaded.perProcess !== undefined && !runs.perProcess.take(loaded, execution.id))
        ? queue(engine, execution, options)
        : runs.takePlace(() => {
            const begun = beginNow(engine, by, execution, loaded, options);
            return loaded.perProcess === undefined ? begun : leaving(engine, execution, begun);
          }),
    );
  });
  return accepted instanceof Promise ? runs.starting(execution.id, accepted) : accepted;
}

/** An execution that was not begun leaves its place of `perProcess`. */
function leaving<T>({ runs }: EngineState, execution: NewExecution, begun: MaybePromise<T>) {
  const leave = () => {
    if (!runs.get(execution.id)) runs.perProcess.leave(execution);
  };
  if (begun instanceof Promise) return begun.finally(leave);
  leave();
  return begun;
}

/** Stores a definition, unless this process has stored it before. */
function storeDefinition(engine: EngineState, definition: StoredDefinition): MaybePromise<void> {
  const { storage, withRetry, accept } = engine;
  const { version } = definition;
  if (accept.stored.has(version)) return undefined;
  const put = accept.writes.get(version) ?? withRetry(() => storage.definitions.put(definition));
  const onStored = () => {
    accept.writes.delete(version);
    accept.stored.add(version);
  };
  const onFailure = (thrown: unknown) => {
    accept.writes.delete(version);
    throw thrown;
  };
  // Other callers wait for the same write, except where requests can't share a promise (Cloudflare Workers).
  if (put instanceof Promise && storage.capabilities.sharedPromises) accept.writes.set(version, put);
  return andThen(put, onStored, onFailure);
}

/**
 * Stores an execution as running in this process, and launches its run.
 * @throws INVALID_INPUT when the storage can't hold it, CONFLICT when its id is taken
 */
function beginNow(
  engine: EngineState,
  worker: string,
  execution: NewExecution,
  loaded: LoadedDefinition,
  options: BeginOptions,
): MaybePromise<AcceptedRun> {
  const { signal, steps = [], charge, expects } = options;
  const mayWait = !options.refuseWithoutSlot && charge?.slots !== 0;
  const start: CommitEntry = { executionId: execution.id, epoch: 1, start: execution, steps, charge, expects };
  const entry = loaded.outbox ? loaded.outbox(start, execution, execution.createdAt) : start;
  const launch = (holder: string): AcceptedRun => {
    const records = steps.length > 0 ? steps : undefined;
    const { createdAt: startedAt } = execution;
    // One literal, no spread: every run passes here, and copies of objects are slow.
    const held = { execution, worker: holder, epoch: 1, startedAt, records, cancelled: false, resumed: false, signal };
    return launchRun(engine, held, loaded);
  };
  return andThen(writeStart(engine, worker, entry), (result) => {
    if (result === 'stored') return launch(worker);
    if (result === 'slots-taken' && (mayWait || execution.limits)) return queue(engine, execution, options);
    return acceptAgain(engine, result, worker, entry).then(launch);
  });
}

/** Retries with the new id of this worker, if the old id was considered dead. @returns the id of the worker that holds the execution */
async function acceptAgain(engine: EngineState, result: CommitResult, by: string, entry: CommitEntry): Promise<string> {
  const { worker } = engine;
  await refuseStart(engine, result, entry);
  if (result === 'fenced') await worker.verifyLease();
  const now = await worker.register();
  if (result === 'fenced' && now !== by) {
    const again = await writeStart(engine, now, entry);
    if (again === 'stored') return now;
    await refuseStart(engine, again, entry);
  }
  throw new OrchestratorError('CONFLICT', `execution ${entry.executionId} was not accepted: its id is taken`);
}

/**
 * Stores an execution as queued. A child is queued even when the queue is full. A repeatable execution may be stored already; when a
 * failure leaves it uncertain, it is not ended.
 * @throws OVERLOADED when the queue is full, INVALID_INPUT when the storage can't hold it, CONFLICT when its id is taken
 */
async function queue(engine: EngineState, execution: NewExecution, options: BeginOptions): Promise<AcceptedRun> {
  const { signal, isChild = false, repeatable = false } = options;
  if (!isChild) await refuseWhenFull(engine);
  await refuseWithoutSlot(engine, options);
  engine.accept.queued += 1;
  const { id: executionId } = execution;
  const entry = queuedEntry(execution, options);
  const result = await (repeatable ? engine.writer.write('', entry) : writeStart(engine, undefined, entry));
  await refuseStart(engine, result, entry);
  if (result !== 'stored' && !repeatable)
    throw new OrchestratorError('CONFLICT', `execution ${executionId} is stored already`);
  engine.runs.pending?.set(executionId, undefined);
  if (signal) cancelOnAbort(engine, signal, executionId);
  engine.wakeups.wake();
  return QUEUED;
}

/** Stores an execution as queued in a transaction of the caller. It is due after the commit, of which the storage notifies the workers. */
async function queueWithin(
  engine: EngineState,
  execution: NewExecution,
  options: BeginOptions,
  within: TransactionStore,
): Promise<AcceptedRun> {
  await refuseWhenFull(engine);
  await refuseWithoutSlot(engine, options);
  const entry = queuedEntry(execution, options);
  const [result = 'fenced'] = await within.commit('', [entry]);
  await refuseStart(engine, result, entry);
  if (result !== 'stored') throw new OrchestratorError('CONFLICT', `execution ${execution.id} is stored already`);
  return QUEUED;
}

function queuedEntry(execution: NewExecution, { steps = [], charge, expects, later }: BeginOptions): CommitEntry {
  const { id: executionId, createdAt, dueSince: dueAt = createdAt } = execution;
  const release = { status: 'queued', dueAt, ...later } as const;
  return { executionId, epoch: 0, start: execution, steps, charge, expects, release };
}

/** What is queued takes no slot yet. @throws CONCURRENT_LIMIT_EXCEEDED if the caller does not want to wait for one, or has none at all */
async function refuseWithoutSlot(
  engine: EngineState,
  { charge, refuseWithoutSlot: refuses }: BeginOptions,
): Promise<void> {
  if (charge?.slots === undefined || !(refuses || charge.slots === 0)) return;
  const active = await engine.withRetry(() => engine.storage.usage.running(charge.account));
  if (active >= charge.slots) throw concurrentLimit(charge.slots, active);
}

function concurrentLimit(limit: number, active: number): OrchestratorError {
  const message = `${active} executions of this caller run, and its plan allows ${limit} at once; try again when one has ended, or start it asynchronously`;
  return new OrchestratorError('CONCURRENT_LIMIT_EXCEEDED', message, { details: { limit, active, retryAfter: 1 } });
}

/** @throws OVERLOADED */
async function refuseWhenFull({ accept, settings, storage, withRetry }: EngineState): Promise<void> {
  const { queueLimit } = settings;
  if (accept.queued < queueLimit) return;
  accept.queued = await withRetry(() => storage.executions.countQueued(queueLimit));
  if (accept.queued < queueLimit) return;
  throw new OrchestratorError('OVERLOADED', `${queueLimit} executions are queued already; try again later`, {
    details: { limit: queueLimit },
    retryable: true,
  });
}

/** @throws QUOTA_EXCEEDED, CONCURRENT_LIMIT_EXCEEDED, RATE_LIMIT_EXCEEDED, StaleDefinitionError if that is why a start was refused */
async function refuseStart(
  { storage, withRetry, clock }: EngineState,
  result: CommitResult,
  { charge, start }: CommitEntry,
): Promise<void> {
  if (result === 'stale') throw new StaleDefinitionError();
  if (result === 'queue-full') throw queueFull(start?.limits ?? [], clock.now());
  if (!charge) return;
  const { account, period, limit = 0, slots = 0 } = charge;
  if (result === 'slots-taken') {
    const active = await withRetry(() => storage.usage.running(account));
    // One may have ended since.
    throw concurrentLimit(slots, Math.max(active, slots));
  }
  if (result !== 'quota-exceeded') return;
  const used = await withRetry(() => storage.usage.charged(account, period));
  const now = clock.now();
  const { end } = monthOf(now);
  const details = { limit, used, reset: end / 1000, retryAfter: Math.ceil((end - now) / 1000) };
  const message = `the quota of ${limit} executions a month is used up; it begins again at ${new Date(end).toISOString()}`;
  throw new OrchestratorError('QUOTA_EXCEEDED', message, { details });
}

/** The storage does not say which of the limits refused it. */
function queueFull(limits: readonly FlowLimit[], now: number): OrchestratorError {
  const refusing = limits.filter(mayRefuse);
  const [first] = refusing;
  const { max = 0, period } = first ?? {};
  const said = refusing.map(({ name, key, max, period, queued }) => {
    const slots = period === undefined ? `${max} at once` : `${max} in ${period} ms`;
    const more = queued === 0 ? '' : ` and ${queued} queued`;
    return `\`${shownName(name)}\` allows ${slots}${more}${key === '' ? '' : ` for the key ${JSON.stringify(key)}`}`;
  });
  const message = `${said.join('; ')}; no more is free now, try again later`;
  if (period === undefined)
    return new OrchestratorError('CONCURRENT_LIMIT_EXCEEDED', message, {
      details: { limit: max, active: max, retryAfter: 1 },
      retryable: true,
    });
  const retryAfter = Math.ceil(period / max / 1000);
  const details = { limit: max, reset: Math.ceil(now / 1000) + retryAfter, retryAfter };
  return new OrchestratorError('RATE_LIMIT_EXCEEDED', message, { details, retryable: true });
}

function writeStart(engine: EngineState, by: string | undefined, entry: CommitEntry): MaybePromise<CommitResult> {
  const result = engine.writer.write(by ?? '', entry);
  if (!(result instanceof Promise)) return result;
  return result.catch((thrown) => {
    // A retryable failure leaves it uncertain whether the entry is stored.
    if (isOrchestratorError(thrown) && thrown.retryable) endUnconfirmed(engine, by, entry);
    if (!isUnstorable(thrown)) throw thrown;
    const message = `the execution could not be stored: ${messageOf(thrown)}`;
    throw new OrchestratorError('INVALID_INPUT', message, { cause: thrown });
  });
}
