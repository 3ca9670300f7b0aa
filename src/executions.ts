/** The executions that a storage holds, as the public `orchestrator.executions`. */

import { OrchestratorError } from './engine/errors.ts';
import type { NumberedEvent } from './engine/execution/execution-events.ts';
import { cloneJson } from './engine/json.ts';
import { isCompletedChild } from './engine/model/child.ts';
import { decodeCursor, encodeCursor, pageLimit, readEventId } from './engine/model/cursor.ts';
import {
  type AgentRun,
  EXECUTION_STATUSES,
  type Execution,
  type ExecutionStatus,
  type ExecutionSummary,
  isFinal,
} from './engine/model/execution.ts';
import { toAgentRun } from './engine/model/execution-record.ts';
import { type IdSource, normalizeExecutionId } from './engine/model/id.ts';
import { isTakenSignal, type StepRecord } from './engine/model/stored-execution.ts';
import type { Clock } from './engine/ports/clock.ts';
import type { Storage, StoredDefinition } from './engine/ports/storage.ts';
import type { LoadedEnsemble } from './load-definitions.ts';
import { refuseUnknownKeys } from './options.ts';
import type { ExecutionHandle, Runner } from './runner.ts';
import { type SignalOptions, toSignal } from './signals.ts';

export interface ExecutionFilter {
  readonly ensemble?: string;
  readonly status?: ExecutionStatus;
  /** Those that the steps of this execution started. */
  readonly parentId?: string;
  /** Default 100, at most 250 (more is taken as 250). */
  readonly limit?: number;
  /** `nextCursor` of the page before, with the same filter. */
  readonly cursor?: string;
}

export interface Executions {
  /**
   * Stops an execution: at its next step boundary, with the signal of the step at hand aborted. One that waits or is queued
   * ends without another step.
   * @returns its record as it is then: a run at work may still be `running` for a moment
   * @throws NOT_FOUND; CONFLICT when it has ended, unless it was cancelled
   */
  cancel(id: string): Promise<Execution<unknown>>;
  /**
   * Makes a new execution of one that failed, timed out or was cancelled: with its input, its definition, and the results of
   * the steps that succeeded, which are not run again.
   * @returns the new execution's handle
   * @throws NOT_FOUND; CONFLICT when it completed, or has not ended; NOT_CONFIGURED when this process lacks what it needs
   */
  retry(id: string): Promise<ExecutionHandle>;
  /**
   * Tells an execution something: the first `wait` for a signal of that name goes on with the payload, now or when the flow comes to it. What
   * comes before it is waited for is kept; each signal is taken by one wait.
   *
   * @param name - the signal's name
   * @param payload - JSON; null when it is left out
   * @returns the execution's record as it is then: still `waiting`, or on its way already
   * @throws NOT_FOUND; CONFLICT when it has ended; INVALID_INPUT for a name that no wait can have, or a payload that is no JSON
   */
  signal(id: string, name: string, payload?: unknown, options?: SignalOptions): Promise<Execution<unknown>>;
  /** The record, with its first 1,000 agent runs, and their outputs up to 4 MiB in total. @throws NOT_FOUND */
  get(id: string): Promise<Execution<unknown>>;
  /** Where it stands, without its values and its agents' runs: costs the same for any execution. @throws NOT_FOUND */
  status(id: string): Promise<ExecutionSummary>;
  /** Newest first, without agent runs, and without an `input` or `output` of more than 4 KiB. @throws INVALID_CURSOR; INVALID_REQUEST for a bad limit, or what is no status */
  list(
    filter?: ExecutionFilter,
  ): Promise<{ readonly executions: readonly Execution<unknown>[]; readonly nextCursor?: string }>;
  /** One agent run with its output, by its `key`. @throws NOT_FOUND */
  agent(id: string, key: string): Promise<AgentRun>;
  /**
   * Every agent run, by pages, in the order in which they were stored. A page ends early when its outputs come to 8 MiB.
   * @throws NOT_FOUND, INVALID_CURSOR, INVALID_REQUEST
   */
  agents(
    id: string,
    page?: { readonly limit?: number; readonly cursor?: string },
  ): Promise<{ readonly agents: readonly AgentRun[]; readonly nextCursor?: string }>;
  /**
   * What happened in an execution so far, then what happens, until it ends. Each event has an id; `after` takes up behind one.
   * @throws NOT_FOUND, and INVALID_REQUEST for an `after` that is no event id, when it is first read
   */
  events(
    id: string,
    options?: { readonly after?: string; readonly signal?: AbortSignal },
  ): AsyncIterableIterator<NumberedEvent>;
}

export interface ExecutionsParts {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly runner: Runner;
  readonly ids: IdSource;
  restore(definition: StoredDefinition, ensemble: string): LoadedEnsemble | string;
}

/** Steps that are read at once. */
const PAGE = 1000;
const FILTER_KEYS: readonly (keyof ExecutionFilter)[] = ['ensemble', 'status', 'parentId', 'limit', 'cursor'];
/** What a page ends with: the last execution's id. */
const EXECUTION_ID = /^exec_[0-9A-Z]{26}$/;
const STEP_KEY = /^.+$/s;

export function createExecutions({ storage, clock, runner, ids, restore }: ExecutionsParts): Executions {
  const orNotFound = <T>(found: T | undefined, id: string): T => {
    if (found === undefined) throw new OrchestratorError('NOT_FOUND', `there is no execution ${id}`);
    return found;
  };
  const find = async (id: string): Promise<Execution> =>
    cloneJson(orNotFound(await storage.getExecution(normalizeExecutionId(id)), id));
  const statusOf = async (id: string): Promise<ExecutionSummary> =>
    orNotFound(await storage.getStatus(normalizeExecutionId(id)), id);
  const isMoreBehind = async (id: string, after: string): Promise<boolean> =>
    (await storage.listSteps(id, { after, limit: 1 })).length > 0;
  const succeeded = async (id: string): Promise<readonly StepRecord[]> => {
    const steps: StepRecord[] = [];
    for (let after: string | undefined; ; ) {
      const page = await storage.listSteps(id, { after, limit: PAGE, notes: true });
      if (page.length === 0) return steps;
      steps.push(...page.filter(isResult));
      after = page.at(-1)?.key;
    }
  };

  return {
    async cancel(id) {
      const before = await statusOf(id);
      if (before.status === 'cancelled') return find(id);
      if (isFinal(before.status)) {
        throw conflict(before, `execution ${before.id} has ended: it is ${before.status}`);
      }
      await runner.engine.cancel(before.id);
      return find(id);
    },
    async retry(id) {
      const failed = await statusOf(id);
      if (!isFinal(failed.status) || failed.status === 'completed') {
        const why = isFinal(failed.status) ? 'it completed' : `it has not ended: it is ${failed.status}`;
        throw conflict(failed, `execution ${failed.id} can't be retried: ${why}`);
      }
      const definition = await storage.getDefinition(failed.version);
      const ensemble = definition
        ? restore(definition, failed.ensemble)
        : `its definition ${failed.version} is not stored`;
      if (typeof ensemble === 'string') {
        throw new OrchestratorError('NOT_CONFIGURED', `execution ${failed.id} can't be retried here: ${ensemble}`);
      }
      const accepted = orNotFound(await storage.getAccepted(failed.id), id);
      return runner.again(ensemble, accepted, await succeeded(failed.id));
    },
    async signal(id, name, payload, options) {
      const execution = await statusOf(id);
      const signal = toSignal(execution.id, name, payload, options, { clock, ids });
      if ((await runner.engine.signal(signal)) === 'stored') return find(id);
      const { status } = await statusOf(id);
      throw conflict({ ...execution, status }, `execution ${execution.id} takes no signals any more: it is ${status}`);
    },
    get: find,
    status: async (id) => cloneJson(await statusOf(id)),
    async list(given = {}) {
      refuseUnknownKeys(given, FILTER_KEYS, 'executions.list');
      const { ensemble, status, parentId: parent, limit, cursor } = given;
      checkStatus(status);
      const parentId = parent === undefined ? undefined : normalizeExecutionId(parent);
      const size = pageLimit(limit);
      const filter = JSON.stringify([ensemble ?? null, status ?? null, parentId ?? null]);
      const before = cursor === undefined ? undefined : decodeCursor(cursor, filter, EXECUTION_ID);
      const query = {
        limit: size + 1,
        ...(ensemble !== undefined && { ensemble }),
        ...(status && { status }),
        ...(parentId !== undefined && { parentId }),
        ...(before && { before }),
      };
      const found = await storage.listExecutions(query);
      const executions = cloneJson(found.slice(0, size));
      const last = executions.at(-1);
      return found.length > size && last ? { executions, nextCursor: encodeCursor(last.id, filter) } : { executions };
    },
    async agent(id, key) {
      const { id: executionId } = await statusOf(id);
      const step = await storage.getStep(executionId, String(key));
      if (step && !step.note) return cloneJson(toAgentRun(step));
      throw new OrchestratorError('NOT_FOUND', `execution ${executionId} has no agent run ${key}`);
    },
    async agents(id, given = {}) {
      refuseUnknownKeys(given, ['limit', 'cursor'], 'executions.agents');
      const { limit, cursor } = given;
      const { id: executionId } = await statusOf(id);
      const size = pageLimit(limit);
      const filter = `${executionId} agents`;
      const after = cursor === undefined ? undefined : decodeCursor(cursor, filter, STEP_KEY);
      const steps = await storage.listSteps(executionId, { after, limit: size + 1 });
      const page = steps.slice(0, size);
      const last = page.at(-1)?.key;
      const agents = page.map((step) => cloneJson(toAgentRun(step)));
      const hasMore = last !== undefined && (steps.length > size || (await isMoreBehind(executionId, last)));
      return hasMore ? { agents, nextCursor: encodeCursor(last, filter) } : { agents };
    },
    async *events(id, options = {}) {
      refuseUnknownKeys(options, ['after', 'signal'], 'executions.events');
      const { after, signal } = options;
      const execution = await statusOf(id);
      yield* runner.storedEvents(execution.id, readEventId(after), signal);
    },
  };
}

/** What a retried run is handed: results, children that completed, and signals that were taken. What else is noted is decided anew. */
function isResult(step: StepRecord): boolean {
  if (step.note) return isTakenSignal(step) || isCompletedChild(step);
  return step.status === 'completed' && step.retryAt === undefined;
}

function conflict({ id: executionId, status }: ExecutionSummary, message: string): OrchestratorError {
  return new OrchestratorError('CONFLICT', message, { details: { executionId, status } });
}

function checkStatus(status: ExecutionStatus | undefined): void {
  if (status === undefined || EXECUTION_STATUSES.includes(status)) return;
  throw new OrchestratorError('INVALID_REQUEST', `\`status\` must be one of ${EXECUTION_STATUSES.join(', ')}`);
}
