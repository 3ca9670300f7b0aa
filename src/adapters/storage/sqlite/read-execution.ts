/** Builds executions and step records from their rows; a damaged row says which it is, and what of it. */

import { isOrchestratorError } from '../../../engine/errors.ts';
import type { Execution, ExecutionError, ExecutionStatus, ExecutionTrigger } from '../../../engine/model/execution.ts';
import { toExecution } from '../../../engine/model/execution-record.ts';
import type { ExecutionEnd, NewExecution, StepRecord } from '../../../engine/model/stored-execution.ts';
import { type RowName, readJson, readNumber, readObject, readText } from './columns.ts';
import type { SqlRow, SqlValue } from './connection.ts';

/** @throws INTERNAL when a column is damaged */
export function readExecution(row: SqlRow, steps: readonly StepRecord[], agents: number): Execution {
  const name = nameOf(row);
  return toExecution(readAccepted(row, name), readEnd(row, name), steps, agents);
}

/**
 * The record in a listing, without its runs. One damaged row must not hide the others, nor itself: what of it can't be read
 * is null there, and its `error` says so.
 */
export function readListed(row: SqlRow): Execution {
  try {
    return readExecution(row, [], readNumber(row, 'agents', nameOf(row)));
  } catch (error) {
    if (!isOrchestratorError(error, 'INTERNAL')) throw error;
    const readable = mended(row);
    return {
      ...readExecution(readable, [], readable.agents as number),
      error: { code: 'INTERNAL', message: error.message },
    };
  }
}

/** The row with something readable in every column that a record is made of. */
function mended(row: SqlRow): SqlRow {
  const fixed: Record<string, SqlValue> = {
    ...row,
    started_by: '{"type":"call"}',
    input: 'null',
    output: 'null',
    error: null,
    deadline_at: null,
  };
  for (const column of ['id', 'ensemble', 'version', 'seed']) {
    const value = row[column];
    if (typeof value !== 'string' || value.startsWith('"')) fixed[column] = '';
  }
  for (const column of [
    'created_at',
    'epoch',
    'agents',
    ...(row.finished_at === null ? [] : ['finished_at', 'duration']),
  ]) {
    if (typeof row[column] !== 'number') fixed[column] = 0;
  }
  return fixed;
}

/** @throws INTERNAL when a column is damaged */
export function readStep(row: SqlRow, executionId: string): StepRecord {
  const name = `step ${String(row.key)} of execution ${executionId}`;
  return {
    key: readText(row, 'key', name),
    name: readText(row, 'name', name),
    status: row.status as StepRecord['status'],
    attempts: readNumber(row, 'attempts', name),
    startedAt: readNumber(row, 'started_at', name),
    duration: readNumber(row, 'duration', name),
    output: readJson(row, 'output', name),
    ...(row.error !== null && { error: readError(row, name) }),
    ...(row.retry_at !== null && { retryAt: readNumber(row, 'retry_at', name) }),
  };
}

function nameOf(row: SqlRow): RowName {
  return `execution ${String(row.id)}`;
}

function readAccepted(row: SqlRow, name: RowName): NewExecution {
  return {
    id: readText(row, 'id', name),
    ensemble: readText(row, 'ensemble', name),
    version: readText(row, 'version', name),
    trigger: readObject(row, 'started_by', name) as unknown as ExecutionTrigger,
    input: readJson(row, 'input', name),
    seed: readText(row, 'seed', name),
    createdAt: readNumber(row, 'created_at', name),
    ...(row.deadline_at !== null && { deadlineAt: readNumber(row, 'deadline_at', name) }),
    epoch: readNumber(row, 'epoch', name),
  };
}

function readEnd(row: SqlRow, name: RowName): ExecutionEnd | undefined {
  if (row.finished_at === null) return undefined;
  return {
    status: row.status as Exclude<ExecutionStatus, 'queued' | 'running' | 'waiting'>,
    output: readJson(row, 'output', name),
    ...(row.error !== null && { error: readError(row, name) }),
    finishedAt: readNumber(row, 'finished_at', name),
    duration: readNumber(row, 'duration', name),
  };
}

function readError(row: SqlRow, name: RowName): ExecutionError {
  return readObject(row, 'error', name) as unknown as ExecutionError;
}
