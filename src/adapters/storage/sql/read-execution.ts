/** Builds executions, step records and deliveries from their rows in a SQL store; a damaged row says which it is, and what of it. */

import { isOrchestratorError } from '../../../engine/errors.ts';
import type { Execution, ExecutionError, ExecutionTrigger, FinalStatus } from '../../../engine/model/execution.ts';
import { type Progress, toExecution } from '../../../engine/model/execution-record.ts';
import type { ExecutionEnd, NewExecution, StepRecord, StoredDelivery } from '../../../engine/model/stored-execution.ts';
import { type RowName, readBoolean, readJson, readNumber, readObject, readText, type StoredRow } from './columns.ts';

/** @throws INTERNAL when a column is damaged */
export function readExecution(row: StoredRow, steps: readonly StepRecord[]): Execution {
  const name = nameOf(row);
  const startedAt = row.started_at === null ? undefined : readNumber(row, 'started_at', name);
  const progress = { status: row.status as Progress['status'], startedAt };
  return toExecution(readAccepted(row, name), progress, readEnd(row, name), steps, readNumber(row, 'agents', name));
}

/**
 * The record in a listing, without its runs. One damaged row must not hide the others, nor itself: what of it can't be read
 * is null there, and its `error` says so.
 */
export function readListed(row: StoredRow): Execution {
  try {
    return readExecution(row, []);
  } catch (error) {
    if (!isOrchestratorError(error, 'INTERNAL')) throw error;
    return { ...readExecution(mended(row), []), error: { code: 'INTERNAL', message: error.message } };
  }
}

/** The row with something readable in every column that a record is made of. */
function mended(row: StoredRow): StoredRow {
  const fixed: Record<string, unknown> = {
    ...row,
    started_by: '{"type":"call"}',
    input: 'null',
    output: 'null',
    error: null,
    deadline_at: null,
    retry_of: null,
  };
  for (const column of ['id', 'ensemble', 'version', 'seed']) {
    const value = row[column];
    if (typeof value !== 'string' || value.startsWith('"')) fixed[column] = '';
  }
  for (const column of [
    'created_at',
    'agents',
    ...(row.started_at === null ? [] : ['started_at']),
    ...(row.finished_at === null ? [] : ['finished_at', 'duration']),
  ]) {
    if (!isNumber(row, column)) fixed[column] = 0;
  }
  return fixed;
}

function isNumber(row: StoredRow, column: string): boolean {
  try {
    readNumber(row, column, '');
    return true;
  } catch {
    return false;
  }
}

/** @throws INTERNAL when a column is damaged */
export function readStep(row: StoredRow, executionId: string): StepRecord {
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
    ...(readBoolean(row, 'note') && { note: true }),
  };
}

/** The id as it was handed in, or what stands in its place when it is damaged. */
export function readId(row: StoredRow): string {
  try {
    return readText(row, 'id', nameOf(row));
  } catch {
    return shownId(row);
  }
}

function nameOf(row: StoredRow): RowName {
  return `execution ${shownId(row)}`;
}

function shownId({ id }: StoredRow): string {
  return typeof id === 'object' ? '(damaged id)' : String(id);
}

/** @throws INTERNAL when a column is damaged */
export function readAccepted(row: StoredRow, name: RowName = nameOf(row)): NewExecution {
  return {
    id: readText(row, 'id', name),
    ensemble: readText(row, 'ensemble', name),
    version: readText(row, 'version', name),
    trigger: readObject(row, 'started_by', name) as unknown as ExecutionTrigger,
    input: readJson(row, 'input', name),
    seed: readText(row, 'seed', name),
    createdAt: readNumber(row, 'created_at', name),
    ...(row.deadline_at !== null && { deadlineAt: readNumber(row, 'deadline_at', name) }),
    ...(row.retry_of !== null && { retryOf: readText(row, 'retry_of', name) }),
  };
}

/**
 * @returns undefined when it has not ended
 * @throws INTERNAL when a column is damaged
 */
export function readEnd(row: StoredRow, name: RowName = nameOf(row)): ExecutionEnd | undefined {
  if (row.finished_at === null) return undefined;
  return {
    status: row.status as FinalStatus,
    output: readJson(row, 'output', name),
    ...(row.error !== null && { error: readError(row, name) }),
    finishedAt: readNumber(row, 'finished_at', name),
    duration: readNumber(row, 'duration', name),
    agents: readNumber(row, 'agents', name),
  };
}

function readError(row: StoredRow, name: RowName): ExecutionError {
  return readObject(row, 'error', name) as unknown as ExecutionError;
}

/** @throws INTERNAL when a column is damaged */
export function readDelivery(row: StoredRow, executionId: string): StoredDelivery {
  const name = `delivery ${String(row.id)} of execution ${executionId}`;
  return {
    id: readText(row, 'id', name),
    executionId,
    event: readText(row, 'event', name),
    target: readObject(row, 'target', name),
    payload: readObject(row, 'payload', name),
    createdAt: readNumber(row, 'created_at', name),
    dueAt: readNumber(row, 'due_at', name),
    status: row.status as StoredDelivery['status'],
    attempts: readNumber(row, 'attempts', name),
  };
}
