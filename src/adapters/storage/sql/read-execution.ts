/** Builds executions, step records and deliveries from their rows in a SQL store; a damaged row says which it is, and what of it. */

import { isOrchestratorError } from '../../../engine/errors.ts';
import type {
  AgentRun,
  Execution,
  ExecutionError,
  ExecutionStatus,
  ExecutionSummary,
  ExecutionTrigger,
  FinalStatus,
} from '../../../engine/model/execution.ts';
import {
  type Progress,
  toAgentRun,
  toExecution,
  toSummary,
  withoutValues,
} from '../../../engine/model/execution-record.ts';
import type { ExecutionEnd, NewExecution, StepRecord, StoredDelivery } from '../../../engine/model/stored-execution.ts';
import { type RowName, readBoolean, readJson, readNumber, readObject, readText, type StoredRow } from './columns.ts';

/** @throws INTERNAL when a column is damaged */
export function readExecution(row: StoredRow, runs: readonly AgentRun[]): Execution {
  const name = nameOf(row);
  const startedAt = row.started_at === null ? undefined : readNumber(row, 'started_at', name);
  const progress = { status: row.status as Progress['status'], startedAt };
  return toExecution(readAccepted(row, name), progress, readEnd(row, name), runs, readNumber(row, 'agents', name));
}

/** @throws INTERNAL when a column is damaged */
export function readSummary(row: StoredRow): ExecutionSummary {
  const name = nameOf(row);
  const about = {
    id: readText(row, 'id', name),
    ensemble: readText(row, 'ensemble', name),
    version: readText(row, 'version', name),
    trigger: readTrigger(row, name),
    createdAt: readNumber(row, 'created_at', name),
  };
  const finishedAt = row.finished_at === null ? undefined : readNumber(row, 'finished_at', name);
  return toSummary(about, row.status as ExecutionStatus, finishedAt);
}

/**
 * The record in a listing, without its runs and its large values, which `input_omitted` and `output_omitted` tell. One damaged row
 * must not hide the others, nor itself: what of it can't be read is null there, and its `error` says so.
 */
export function readListed(row: StoredRow): Execution {
  const [input, output] = [readBoolean(row, 'input_omitted'), readBoolean(row, 'output_omitted')];
  const given = { ...row, ...(input && { input: 'null' }), ...(output && { output: 'null' }) };
  try {
    return withoutValues(readExecution(given, []), input, output);
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

/** A run of a record: without an output in its row, the record does not carry it. @throws INTERNAL when a column is damaged */
export function readRun(row: StoredRow, executionId: string): AgentRun {
  if (row.output !== null) return toAgentRun(readStep(row, executionId));
  return { ...toAgentRun(readStep({ ...row, output: 'null' }, executionId)), outputOmitted: true };
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
    trigger: readTrigger(row, name),
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

function readTrigger(row: StoredRow, name: RowName): ExecutionTrigger {
  return readObject(row, 'started_by', name) as unknown as ExecutionTrigger;
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
