/** The stored executions, as the public `orchestrator.executions`. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { cloneJson } from '../../engine/base/json/json.ts';
import { refuseUnknownKeys } from '../../engine/base/read-options.ts';
import type { StoredEvent } from '../../engine/events/rules/execution-events.ts';
import { isCompletedChild } from '../../engine/execution/child.ts';
import { decodeCursor, encodeCursor, pageLimit, readEventId } from '../../engine/storage/cursor.ts';
import type { EnsembleDefinition } from '../../engine/ensemble/ensemble.ts';
import {
  type AgentResult,
  type Execution,
  type ExecutionSummary,
  isFinal,
  type OpenCounts,
} from '../../engine/execution/execution.ts';
import { withoutStack } from '../../engine/execution/execution-error.ts';
import type { ExecutionHistory } from '../../engine/execution/execution-history.ts';
import { endedBadly, toAgentResult, withoutValues } from '../../engine/execution/execution-record.ts';
import type { ExecutionStep } from '../../engine/ensemble/execution-step.ts';
import { type IdSource, normalizeExecutionId } from '../../engine/execution/id.ts';
import { isKeptRequest } from '../../engine/webhook/kept-request.ts';
import { agentAlone } from '../../engine/ensemble/name.ts';
import { isPart } from '../../engine/ensemble/step-kind.ts';
import { isTakenSignal, type StepRecord } from '../../engine/execution/stored-execution.ts';
import type { Principal } from '../../engine/access/token.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { MaybePromise } from '../../engine/operation/operation.port.ts';
import type { ExecutionQuery, RecordReader, Storage, StoredDefinition } from '../../engine/storage/storage.port.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';
import { checkPrincipal } from '../options/options.ts';
import type { SignalForms } from '../signals/signal-forms.ts';
import { type SignalOptions, toSignal } from '../signals/signals.ts';
import { createEventTickets, type EventTicket } from './event-tickets.ts';
import type { RetryOptions } from './execute-options.ts';
import { type ExecutionFilter, readExecutionFilter } from './execution-filter.ts';
import type { ExecutionService } from './execution-service.ts';
import { newestOf } from './find-first.ts';
import { type ExecutionHandle, withPlan } from './handles.ts';
import { listSteps, readStep, STEP_KEY, type StepPage, type StepPageOptions } from './list-steps.ts';
import { readHistory, readRecords } from './read-records.ts';
import { createStepsAtWork, type RunningSteps, type StepInput } from './steps-at-work.ts';

export type { ExecutionFilter };

/** Refuses the literal name of a signal that no flow waits for. A name that is not a literal may be any. */
type KnownSignal<Name, Signal> = string extends Name
  ? unknown
  : Name extends Signal
    ? unknown
    : { readonly 'no flow waits for the signal': Name };

export interface Executions<Signal extends string = string> {
  /**
   * Cancels an execution. It ends at its next step boundary, and the signal of the current step is aborted. An execution that waits
   * or is queued ends without another step.
   * @returns its record after the request. An active execution may still be `running` for a moment
   * @throws NOT_FOUND; CONFLICT if it has ended, unless it was cancelled
   */
  cancel(id: string): Promise<Execution<unknown>>;
  /**
   * Retries the newest execution of a chain of retries. If it failed, timed out or was cancelled, a new execution starts, once: with
   * the same input, the same definition, the same idempotency keys of its calls, and the results of the successful steps, which don't
   * run again. If it completed or has not ended, nothing starts.
   *
   * @param id - of any execution of the chain
   * @returns the handle of the newest execution
   * @throws NOT_FOUND; NOT_CONFIGURED if this process lacks what it needs; INVALID_INPUT for an `input` that does not fit
   */
  retry(id: string, options?: RetryOptions): Promise<ExecutionHandle>;
  /**
   * Sends a signal to an execution. The first `wait` for a signal of this name continues with the payload, now or when the flow
   * reaches it. A signal that arrives before its `wait` is kept. Each signal is taken by one `wait`.
   *
   * @param name - the name of the signal
   * @param payload - JSON. Default null
   * @returns the record of the execution after that: it is still `waiting`, or it continues already
   * @throws NOT_FOUND; CONFLICT if the execution has ended; INVALID_INPUT for a name that no `wait` of its definition has, with the
   *   names that exist in `details.waits`, and for a payload that is not JSON
   */
  signal<Name extends Signal | (string & Record<never, never>)>(
    id: string,
    name: Name & KnownSignal<Name, Signal>,
    payload?: unknown,
    options?: SignalOptions,
  ): Promise<Execution<unknown>>;
  /**
   * Deletes the record of an execution that has ended, with its steps. Its id and its idempotency key can be used again. Its deliveries and
   * its children stay.
   * @throws NOT_FOUND; CONFLICT if it has not ended
   */
  delete(id: string): Promise<{ readonly id: string; readonly deleted: true }>;
  /** The record, with the first 1,000 agent runs and at most 4 MiB of their outputs. @throws NOT_FOUND */
  get(id: string): Promise<Execution<unknown>>;
  /** The status, without values and agent runs. The cost is the same for every execution. @throws NOT_FOUND */
  status(id: string): Promise<ExecutionSummary>;
  /**
   * By `createdAt` and id, newest first unless `order` says otherwise, without agent runs, and without inputs and outputs of more than 4 KiB. An execution is listed
   * if it matches all filters.
   * @throws INVALID_CURSOR; INVALID_REQUEST for an invalid limit or filter, and if more than 10,000 ids or tags begin with `search`
   */
  list(
    filter?: ExecutionFilter,
  ): Promise<{ readonly executions: readonly Execution<unknown>[]; readonly nextCursor?: string }>;
  /**
   * How many executions are queued, running and waiting, in all processes that use the storage, and when the oldest of each was
   * accepted; the same as `unresolved` for those that failed or timed out and that no other execution retries; and how many were
   * accepted in the last hour. Each is counted to 10,000.
   */
  open(): Promise<OpenExecutions>;
  /** One agent run with its output, by its `key`. @throws NOT_FOUND */
  agent(id: string, key: string): Promise<AgentResult>;
  /**
   * All agent runs, in pages, in the order in which they were stored. A page ends early if its outputs have 8 MiB.
   * @throws NOT_FOUND, INVALID_CURSOR, INVALID_REQUEST
   */
  agents(
    id: string,
    page?: { readonly limit?: number; readonly cursor?: string },
  ): Promise<{ readonly agents: readonly AgentResult[]; readonly nextCursor?: string }>;
  /**
   * The steps of every kind, in pages, in the order in which they began to be known: agents, blocks, routes, waits, sleeps, children,
   * and those that were skipped. A page ends early if its outputs have 8 MiB.
   * @throws NOT_FOUND, INVALID_CURSOR, INVALID_REQUEST
   */
  steps(id: string, page?: StepPageOptions): Promise<StepPage>;
  /** One step with its output, by its `key`. @throws NOT_FOUND */
  step(id: string, key: string): Promise<ExecutionStep>;
  /**
   * What an agent of the flow got as its input. It is not stored: its expressions are evaluated again, over what was recorded before
   * the agent began. That takes as long as a resume of the execution.
   * @returns without `input`, and with the `reason`, if that can't be done: it read the state, or this process can't run the definition
   * @throws NOT_FOUND
   */
  stepInput(id: string, key: string): Promise<StepInput>;
  /**
   * The agents that are at work in their attempt, in whatever process: those that the flow comes to after all that is recorded. Of an
   * execution that was cancelled or timed out, those that were at work then. Otherwise empty. It takes as long as a resume of the
   * execution.
   * @throws NOT_FOUND
   */
  running(id: string): Promise<RunningSteps>;
  /**
   * The definition with which an execution began, without the shared agents that it names.
   * @throws NOT_FOUND, also for an execution of an agent alone, and if the store does not have the definition
   */
  definition(id: string): Promise<ExecutedDefinition>;
  /**
   * What is stored of an execution: how it began, all its step records with their outputs, the decisions and the signals that it took,
   * and its end. It is JSON. `replay` of the testing kit takes it. It holds what no response masks, so keep it as safe as the store.
   * @throws NOT_FOUND
   */
  history(id: string): Promise<ExecutionHistory>;
  /**
   * The events of an execution so far, then the new ones, until it ends. Each event has an id. `after` continues after this id.
   * An `agent.delta`, a text that a model writes in this process, is not stored: it has the id of the event before it.
   * @throws NOT_FOUND; INVALID_REQUEST for an `after` that is not the id of an event. Both at the first read
   */
  events(
    id: string,
    options?: { readonly after?: string; readonly signal?: AbortSignal },
  ): AsyncIterableIterator<StoredEvent>;
  /**
   * A ticket with which anyone can open the event stream of this execution over HTTP for 60 seconds, as `?ticket=`. It is for a
   * browser's `EventSource`, which sends no header. Every process of the store accepts it, also after a restart.
   *
   * @param options - `holder`: the `tokenId` of the principal that asks. If it is the id of a token, the ticket and the streams that
   *   it opened end together with this token. Without it, an open stream ends with its execution
   * @throws NOT_FOUND
   */
  ticket(id: string, options?: { readonly holder?: string }): Promise<EventTicket>;
  /**
   * Who reads the events of an execution with a ticket.
   *
   * @param options - `isOpen`: the stream was opened before, so the 60 seconds may be over
   * @throws UNAUTHORIZED for a ticket that is not valid for this execution; TOKEN_EXPIRED with `details.expiredAt` (Unix ms)
   */
  verifyTicket(id: string, ticket: string, options?: { readonly isOpen?: boolean }): Promise<Principal>;
}

/** The definition with which an execution began. */
export interface ExecutedDefinition {
  readonly ensemble: string;
  /** The hash of the definition. */
  readonly version: string;
  readonly definition: EnsembleDefinition;
}

/** The executions that have not ended, those that need attention, and those of the last hour. */
export interface OpenExecutions extends OpenCounts {
  /** How many executions were accepted in the last hour. */
  readonly lastHour: number;
}

const HOUR_MS = 3_600_000;
/** The largest count of {@link Executions.open}. */
const MAX_OPEN = 10_000;

export interface ExecutionsDependencies {
  readonly storage: Pick<Storage, 'executions' | 'signals' | 'tokens'>;
  /** The same for calls that are not mere reads: it waits longer when it is away. */
  readonly patient: Pick<Storage, 'definitions' | 'executions'>;
  readonly clock: Clock;
  readonly executionService: ExecutionService;
  readonly ids: IdSource;
  readonly forms: SignalForms;
  restore(definition: StoredDefinition, ensemble: string): MaybePromise<LoadedEnsemble | string>;
}

function orNotFound<T>(found: T | undefined, id: string): T {
  if (found === undefined) throw new OrchestratorError('NOT_FOUND', `there is no execution ${id}`);
  return found;
}

function createFinders({ executions }: RecordReader) {
  return {
    find: async (id: string): Promise<Execution> =>
      cloneJson(orNotFound(await executions.get(normalizeExecutionId(id)), id)),
    statusOf: async (id: string): Promise<ExecutionSummary> =>
      orNotFound(await executions.getStatus(normalizeExecutionId(id)), id),
  };
}

export function createExecutions(dependencies: ExecutionsDependencies): Executions {
  const { storage, patient, clock, executionService, ids, forms, restore } = dependencies;
  const { definitions } = patient;
  const tickets = createEventTickets(storage.tokens, clock);
  const { turns, engine } = executionService;
  const records = engine.records ?? storage;
  const atWork = createStepsAtWork({ ...executionService, clock, definitions, restore });
  const { find, statusOf } = createFinders(records);
  const acting = createFinders(executionService.records);
  const hasMoreAfter = async (id: string, after: string): Promise<boolean> =>
    (await records.executions.listSteps(id, { after, limit: 1 })).length > 0;
  const succeeded = async (id: string): Promise<readonly StepRecord[]> => {
    const steps: StepRecord[] = [];
    for await (const step of readRecords(records, turns, id)) if (isResult(step)) steps.push(step);
    return steps;
  };

  /** The execution with an idempotency key, if it matches the other filters: a listing of its place alone says so. */
  const listByKey = async (key: string, query: ExecutionQuery): Promise<readonly Execution[]> => {
    const id = await records.executions.findByKey(key);
    const found = id === undefined ? undefined : await records.executions.getStatus(id);
    if (!found) return [];
    const { createdAt } = found;
    const { order: _one, since = createdAt, until = createdAt + 1, ...rest } = query;
    // It is the first page, and the only one.
    if (rest.before) return [];
    // No id has a space, so no other execution is between this position and the execution.
    const place = {
      before: { createdAt, id: `${found.id} ` },
      since: Math.max(since, createdAt),
      until: Math.min(until, createdAt + 1),
    };
    return (await records.executions.list({ ...rest, ...place, limit: 1 })).filter((one) => one.id === found.id);
  };

  return {
    async cancel(id) {
      const before = await acting.statusOf(id);
      if (before.status === 'cancelled') return acting.find(id);
      if (isFinal(before.status)) {
        throw conflict(before, `execution ${before.id} has ended: it is ${before.status}`);
      }
      await engine.cancel(before.id);
      return acting.find(id);
    },
    async retry(id, options = {}) {
      refuseUnknownKeys(options, ['principal', 'newKeys', 'input'], 'executions.retry');
      checkPrincipal(options.principal);
      const failed = await acting.statusOf(await newestOf(executionService.records, (await acting.statusOf(id)).id));
      if (!endedBadly(failed)) return executionService.handleOf(failed.id);
      if (failed.trigger.dryRun)
        throw conflict(
          failed,
          `execution ${failed.id} is a dry run: nothing of it happened; start the ensemble instead`,
        );
      const definition = await definitions.get(failed.version);
      const ensemble = definition
        ? await restore(definition, failed.ensemble)
        : `its definition ${failed.version} is not stored`;
      if (typeof ensemble === 'string') {
        throw new OrchestratorError('NOT_CONFIGURED', `execution ${failed.id} can't be retried here: ${ensemble}`);
      }
      const accepted = orNotFound(await executionService.records.executions.getAccepted(failed.id), id);
      return executionService.retry(ensemble, accepted, await succeeded(failed.id), options);
    },
    async signal(id, name, payload, options) {
      const execution = await acting.statusOf(id);
      const given = toSignal(execution.id, name, payload, options, { clock, ids });
      const checked = isFinal(execution.status) ? given.payload : await forms.check(execution, name, given.payload);
      if ((await engine.signal({ ...given, payload: checked })) === 'stored') return acting.find(id);
      const { status } = await acting.statusOf(id);
      throw conflict({ ...execution, status }, `execution ${execution.id} accepts no more signals: it is ${status}`);
    },
    async delete(id) {
      const { id: executionId } = await acting.statusOf(id);
      if ((await patient.executions.delete([executionId])) > 0) return { id: executionId, deleted: true };
      const now = await acting.statusOf(executionId);
      throw conflict(now, `execution ${executionId} has not ended: it is ${now.status}; cancel it first`);
    },
    get: async (id) => forms.addTo(await withPlan(await find(id), records)),
    status: async (id) => cloneJson(await statusOf(id)),
    async list(given = {}) {
      const { query, key, values, size, cursorAfter } = readExecutionFilter(given);
      const found = await (key === undefined ? records.executions.list(query) : listByKey(key, query));
      const shown = found.slice(0, size).map(withoutStackOf);
      const executions = cloneJson(values ? shown : shown.map(withoutAnyValue));
      const last = executions.at(-1);
      return found.length > size && last ? { executions, nextCursor: cursorAfter(last) } : { executions };
    },
    async open() {
      const { executions } = records;
      const lastHour = await executions.countAccepted(clock.now() - HOUR_MS, MAX_OPEN);
      return { ...(await executions.countOpen(MAX_OPEN)), lastHour };
    },
    async agent(id, key) {
      const { id: executionId } = await statusOf(id);
      const step = await records.executions.getStep(executionId, String(key));
      if (step && !step.note) return cloneJson(toAgentResult(step));
      throw new OrchestratorError('NOT_FOUND', `execution ${executionId} has no agent run ${key}`);
    },
    async agents(id, given = {}) {
      refuseUnknownKeys(given, ['limit', 'cursor'], 'executions.agents');
      const { limit, cursor } = given;
      const { id: executionId } = await statusOf(id);
      const size = pageLimit(limit);
      const filter = `${executionId} agents`;
      const after = cursor === undefined ? undefined : decodeCursor(cursor, filter, STEP_KEY);
      const steps = await records.executions.listSteps(executionId, { after, limit: size + 1 });
      const page = steps.slice(0, size);
      const last = page.at(-1)?.key;
      const agents = page.map((step) => cloneJson(toAgentResult(step)));
      const hasMore = last !== undefined && (steps.length > size || (await hasMoreAfter(executionId, last)));
      return hasMore ? { agents, nextCursor: encodeCursor(last, filter) } : { agents };
    },
    async steps(id, given = {}) {
      refuseUnknownKeys(given, ['limit', 'cursor', 'maxOutput'], 'executions.steps');
      return listSteps(records, clock, await statusOf(id), given);
    },
    async step(id, key) {
      const summary = await statusOf(id);
      const step = await readStep(records, clock, summary, String(key));
      if (step) return step;
      throw new OrchestratorError('NOT_FOUND', `execution ${summary.id} has no step ${key}`);
    },
    stepInput: async (id, key) => atWork.inputOf(await statusOf(id), String(key)),
    running: async (id) => atWork.running(await statusOf(id)),
    async definition(id) {
      const { id: executionId, ensemble, version } = await statusOf(id);
      const isFlow = agentAlone(ensemble) === undefined;
      const stored = isFlow ? await definitions.get(version) : undefined;
      if (stored)
        return { ensemble, version, definition: cloneJson(stored.definition) as unknown as EnsembleDefinition };
      const what = isFlow
        ? `the definition ${version} of execution ${executionId} is not stored`
        : `execution ${executionId} ran an agent alone: it has no flow`;
      throw new OrchestratorError('NOT_FOUND', what);
    },
    history: async (id) => readHistory(records, turns, (await statusOf(id)).id),
    async *events(id, options = {}) {
      refuseUnknownKeys(options, ['after', 'signal'], 'executions.events');
      const { after, signal } = options;
      const execution = await statusOf(id);
      yield* executionService.storedEvents(execution.id, readEventId(after), signal);
    },
    async ticket(id, options = {}) {
      refuseUnknownKeys(options, ['holder'], 'executions.ticket');
      return tickets.create((await statusOf(id)).id, options.holder);
    },
    async verifyTicket(id, ticket, options = {}) {
      refuseUnknownKeys(options, ['isOpen'], 'executions.verifyTicket');
      return tickets.verify(normalizeExecutionId(id), String(ticket), options.isOpen === true);
    },
  };
}

/** Only the record of one execution has the stack of its error. */
function withoutStackOf(record: Execution): Execution {
  return record.error ? { ...record, error: withoutStack(record.error) } : record;
}

function withoutAnyValue(record: Execution): Execution {
  return withoutValues(record, true, record.finishedAt !== undefined);
}

/** Whether a retry keeps a record: results, parts of attempts, completed children, taken signals, and its request. Other decisions are made again. */
function isResult(step: StepRecord): boolean {
  if (step.note) return isPart(step) || isTakenSignal(step) || isCompletedChild(step) || isKeptRequest(step);
  return step.status === 'completed' && step.retryAt === undefined;
}

function conflict({ id: executionId, status }: ExecutionSummary, message: string): OrchestratorError {
  return new OrchestratorError('CONFLICT', message, { details: { executionId, status } });
}
