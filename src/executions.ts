/** The executions that a storage holds, as the public `orchestrator.executions`. */

import { OrchestratorError } from './engine/errors.ts';
import { executionEvents, type NumberedEvent } from './engine/execution/execution-events.ts';
import { cloneJson } from './engine/json.ts';
import { isCompletedChild } from './engine/model/child.ts';
import { decodeCursor, encodeCursor, POSITION, pageLimit, readEventId } from './engine/model/cursor.ts';
import {
  type AgentRun,
  EXECUTION_STATUSES,
  type Execution,
  type ExecutionStatus,
  isFinal,
} from './engine/model/execution.ts';
import { toAgentRun } from './engine/model/execution-record.ts';
import { type IdSource, normalizeExecutionId } from './engine/model/id.ts';
import { isTakenSignal, type StepRecord } from './engine/model/stored-execution.ts';
import type { Emitter } from './engine/notification/emitter.ts';
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
  /** The record, with its first 1,000 agent runs. @throws NOT_FOUND */
  get(id: string): Promise<Execution<unknown>>;
  /** Newest first, without agent runs. @throws INVALID_CURSOR; INVALID_REQUEST for a bad limit, or what is no status */
  list(
    filter?: ExecutionFilter,
  ): Promise<{ readonly executions: readonly Execution<unknown>[]; readonly nextCursor?: string }>;
  /** Every agent run, by pages, in the order in which they were stored. @throws NOT_FOUND, INVALID_CURSOR, INVALID_REQUEST */
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
  readonly events: Emitter;
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

export function createExecutions({ storage, events, clock, runner, ids, restore }: ExecutionsParts): Executions {
  const find = async (id: string): Promise<Execution> => {
    const execution = await storage.getExecution(normalizeExecutionId(id));
    if (!execution) throw new OrchestratorError('NOT_FOUND', `there is no execution ${id}`);
    return execution;
  };
  const succeeded = async (id: string): Promise<readonly StepRecord[]> => {
    const steps: StepRecord[] = [];
    for (let after = 0; ; after += PAGE) {
      const page = await storage.listSteps(id, { after, limit: PAGE, notes: true });
      steps.push(...page.filter(isResult));
      if (page.length < PAGE) return steps;
    }
  };

  return {
    async cancel(id) {
      const before = await find(id);
      if (before.status === 'cancelled') return cloneJson(before);
      if (isFinal(before.status)) {
        throw conflict(before, `execution ${before.id} has ended: it is ${before.status}`);
      }
      await runner.engine.cancel(before.id);
      return cloneJson(await find(id));
    },
    async retry(id) {
      const failed = await find(id);
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
      const accepted = await storage.getAccepted(failed.id);
      if (!accepted) throw new OrchestratorError('NOT_FOUND', `there is no execution ${id}`);
      return runner.again(ensemble, accepted, await succeeded(failed.id));
    },
    async signal(id, name, payload, options) {
      const execution = await find(id);
      const signal = toSignal(execution.id, name, payload, options, { clock, ids });
      if ((await runner.engine.signal(signal)) === 'stored') return cloneJson(await find(id));
      const { status } = await find(id);
      throw conflict({ ...execution, status }, `execution ${execution.id} takes no signals any more: it is ${status}`);
    },
    get: async (id) => cloneJson(await find(id)),
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
    async agents(id, page = {}) {
      refuseUnknownKeys(page, ['limit', 'cursor'], 'executions.agents');
      const { limit, cursor } = page;
      const execution = await find(id);
      const size = pageLimit(limit);
      const after = cursor === undefined ? 0 : Number(decodeCursor(cursor, execution.id, POSITION));
      const steps = await storage.listSteps(execution.id, { after, limit: size + 1 });
      const agents = steps.slice(0, size).map((step) => cloneJson(toAgentRun(step)));
      return steps.length > size
        ? { agents, nextCursor: encodeCursor(String(after + size), execution.id) }
        : { agents };
    },
    async *events(id, options = {}) {
      refuseUnknownKeys(options, ['after', 'signal'], 'executions.events');
      const { after, signal } = options;
      const execution = await find(id);
      yield* executionEvents({ storage, clock, events, id: execution.id, after: readEventId(after), signal });
    },
  };
}

/** What a retried run is handed: results, children that completed, and signals that were taken. What else is noted is decided anew. */
function isResult(step: StepRecord): boolean {
  if (step.note) return isTakenSignal(step) || isCompletedChild(step);
  return step.status === 'completed' && step.retryAt === undefined;
}

function conflict({ id: executionId, status }: Execution, message: string): OrchestratorError {
  return new OrchestratorError('CONFLICT', message, { details: { executionId, status } });
}

function checkStatus(status: ExecutionStatus | undefined): void {
  if (status === undefined || EXECUTION_STATUSES.includes(status)) return;
  throw new OrchestratorError('INVALID_REQUEST', `\`status\` must be one of ${EXECUTION_STATUSES.join(', ')}`);
}
