/** The executions that a storage holds, as the public `orchestrator.executions`. */

import { OrchestratorError } from './engine/errors.ts';
import { copyJson, type Json } from './engine/json.ts';
import { decodeCursor, encodeCursor, pageLimit } from './engine/model/cursor.ts';
import type { Execution, ExecutionStatus } from './engine/model/execution.ts';
import { normalizeExecutionId } from './engine/model/id.ts';
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
  list(filter?: ExecutionFilter): Promise<{ readonly executions: readonly Execution<unknown>[]; readonly nextCursor?: string }>;
}

export function createExecutions(storage: Storage): Executions {
  return {
    async get(id) {
      const execution = await storage.getExecution(normalizeExecutionId(id));
      if (!execution) throw new OrchestratorError('NOT_FOUND', `there is no execution ${id}`);
      return copyJson(execution) as unknown as Execution;
    },
    async list({ ensemble, status, limit, cursor } = {}) {
      const size = pageLimit(limit);
      const filter = JSON.stringify([ensemble ?? null, status ?? null]);
      const before = cursor === undefined ? undefined : decodeCursor(cursor, filter);
      const query = { limit: size + 1, ...(ensemble !== undefined && { ensemble }), ...(status && { status }), ...(before && { before }) };
      const found = (await storage.listExecutions(query)).map((execution) => copyJson(execution as unknown as Json) as unknown as Execution);
      const executions = found.slice(0, size);
      const last = executions.at(-1);
      return found.length > size && last ? { executions, nextCursor: encodeCursor(last.id, filter) } : { executions };
    },
  };
}
