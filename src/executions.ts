/** The executions that a storage holds, as the public `orchestrator.executions`. */

import { OrchestratorError } from './engine/errors.ts';
import { executionEvents, type NumberedEvent } from './engine/execution/execution-events.ts';
import { cloneJson } from './engine/json.ts';
import { decodeCursor, encodeCursor, pageLimit } from './engine/model/cursor.ts';
import type { AgentRun, Execution, ExecutionStatus } from './engine/model/execution.ts';
import { toAgentRun } from './engine/model/execution-record.ts';
import { normalizeExecutionId } from './engine/model/id.ts';
import type { Emitter } from './engine/notification/emitter.ts';
import type { Clock } from './engine/ports/clock.ts';
import type { Storage } from './engine/ports/storage.ts';

export interface ExecutionFilter {
  readonly ensemble?: string;
  readonly status?: ExecutionStatus;
  /** Default 100, at most 250 (more is taken as 250). */
  readonly limit?: number;
  /** `nextCursor` of the page before, with the same filter. */
  readonly cursor?: string;
}

export interface Executions {
  /** The record, with its first 1,000 agent runs. @throws NOT_FOUND */
  get(id: string): Promise<Execution<unknown>>;
  /** Newest first, without agent runs. @throws INVALID_CURSOR, INVALID_REQUEST for a bad limit */
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

export function createExecutions(storage: Storage, events: Emitter, clock: Clock): Executions {
  const find = async (id: string): Promise<Execution> => {
    const execution = await storage.getExecution(normalizeExecutionId(id));
    if (!execution) throw new OrchestratorError('NOT_FOUND', `there is no execution ${id}`);
    return execution;
  };
  return {
    get: async (id) => cloneJson(await find(id)),
    async list({ ensemble, status, limit, cursor } = {}) {
      const size = pageLimit(limit);
      const filter = JSON.stringify([ensemble ?? null, status ?? null]);
      const before = cursor === undefined ? undefined : decodeCursor(cursor, filter);
      const query = {
        limit: size + 1,
        ...(ensemble !== undefined && { ensemble }),
        ...(status && { status }),
        ...(before && { before }),
      };
      const found = await storage.listExecutions(query);
      const executions = cloneJson(found.slice(0, size));
      const last = executions.at(-1);
      return found.length > size && last ? { executions, nextCursor: encodeCursor(last.id, filter) } : { executions };
    },
    async agents(id, { limit, cursor } = {}) {
      const execution = await find(id);
      const size = pageLimit(limit);
      const after = cursor === undefined ? 0 : Number(decodeCursor(cursor, execution.id));
      const steps = await storage.listSteps(execution.id, { after, limit: size + 1 });
      const agents = steps.slice(0, size).map((step) => cloneJson(toAgentRun(step)));
      return steps.length > size
        ? { agents, nextCursor: encodeCursor(String(after + size), execution.id) }
        : { agents };
    },
    async *events(id, { after, signal } = {}) {
      const execution = await find(id);
      yield* executionEvents({ storage, clock, events, id: execution.id, after: readEventId(after), signal });
    },
  };
}

function readEventId(after: string | undefined): number {
  if (after === undefined) return 0;
  if (/^\d{1,9}$/.test(after)) return Number(after);
  throw new OrchestratorError('INVALID_REQUEST', 'an event id is a whole number as the stream gave it');
}
