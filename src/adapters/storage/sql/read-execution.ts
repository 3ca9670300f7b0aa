/**
 * Builds executions and step records from their rows in an SQL store. The error for a damaged row names the row and the
 * column.
 */

import { isOrchestratorError } from '../../../engine/base/errors.ts';
import type {
  AgentResult,
  Execution,
  ExecutionError,
  ExecutionStatus,
  ExecutionSummary,
  ExecutionTrigger,
  FinalStatus,
  OpenCount,
} from '../../../engine/model/execution.ts';
import {
  type StoredProgress,
  toAgentResult,
  toExecution,
  toSummary,
  withoutValues,
} from '../../../engine/model/execution-record.ts';
import {
  type ExecutionEnd,
  type Handover,
  NEVER,
  type NewExecution,
  type StepRecord,
} from '../../../engine/model/stored-execution.ts';
import { retryKeyOf } from '../../../engine/model/start-once.ts';
import { ACCEPTED, readFields, STEP } from './fields.ts';
import { type RowName, readBoolean, readJson, readNumber, readObject, readText, type StoredRow } from './columns.ts';

/** @throws INTERNAL when a column is damaged */
export function readExecution(row: StoredRow, runs: readonly AgentResult[]): Execution {
  const name = nameOf(row);
  const startedAt = row.started_at === null ? undefined : readNumber(row, 'started_at', name);
  const { handover, resumedAt } = readHandover(row, name);
  const recoveries = readNumber(row, 'recoveries', name);
  const retriedBy = row.retried_by === null ? undefined : readText(row, 'retried_by', name);
  const status = row.status as StoredProgress['status'];
  const progress = { status, startedAt, recoveries, handover, resumedAt, retriedBy };
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
 * Builds a record of a list, without agent runs and large values. `input_omitted` and `output_omitted` say which values
 * are too large. A damaged row must not hide the other rows or itself: its values are null, and its `error` says that
 * the row is damaged.
 */
export function readListed(row: StoredRow): Execution {
  const [input, output] = [readBoolean(row, 'input_omitted'), readBoolean(row, 'output_omitted')];
  const readable = { ...row, ...(input && { input: 'null' }), ...(output && { output: 'null' }) };
  try {
    return withoutValues(readExecution(readable, []), input, output);
  } catch (error) {
    if (!isOrchestratorError(error, 'INTERNAL')) throw error;
    return { ...readExecution(repaired(row), []), error: { code: 'INTERNAL', message: error.message } };
  }
}

/** The row with a readable value in every column of a record. */
function repaired(row: StoredRow): StoredRow {
  const fixed: Record<string, unknown> = {
    ...row,
    started_by: '{"type":"call"}',
    input: 'null',
    output: 'null',
    error: null,
    deadline_at: null,
    retry_of: null,
    retried_by: null,
    handover: null,
    resumed_at: null,
    idempotency_key: null,
    tags: null,
  };
  for (const column of ['id', 'ensemble', 'version', 'seed']) {
    const value = row[column];
    if (typeof value !== 'string' || value.startsWith('"')) fixed[column] = '';
  }
  for (const column of [
    'created_at',
    'agents',
    'recoveries',
    ...(row.started_at === null ? [] : ['started_at']),
    ...(row.finished_at === null ? [] : ['finished_at', 'duration']),
  ]) {
    // A damaged `created_at` sorts after all others, and the next page continues after it.
    if (!isNumber(row, column)) fixed[column] = column === 'created_at' ? NEVER : 0;
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
  return readFields(STEP, row, `step ${String(row.key)} of execution ${executionId}`);
}

/**
 * Builds an agent run of a record. When the row has no output, the record omits the output.
 * @throws INTERNAL when a column is damaged
 */
export function readRun(row: StoredRow, executionId: string): AgentResult {
  if (row.output !== null) return toAgentResult(readStep(row, executionId));
  return { ...toAgentResult(readStep({ ...row, output: 'null' }, executionId)), outputOmitted: true };
}

/** The execution's id; the stored text when the id is damaged. */
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
  return readFields(ACCEPTED, row, name);
}

/**
 * @returns undefined when the execution has not ended
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
    ...(row.handover !== null && readEndFacts(row, name)),
  };
}

/** What an end keeps in the column of the handover. */
function readEndFacts(row: StoredRow, name: RowName): Pick<ExecutionEnd, 'waited' | 'usage' | 'components'> {
  const facts = readObject(row, 'handover', name);
  const { usage, components } = facts as unknown as Pick<ExecutionEnd, 'usage' | 'components'>;
  return {
    ...(facts.waited !== undefined && { waited: readNumber(facts, 'waited', name) }),
    ...(usage && { usage }),
    ...(components && { components }),
  };
}

/**
 * What the last run of an execution left, and when the execution was claimed after that.
 * @throws INTERNAL when a column is damaged
 */
export function readHandover(
  row: StoredRow,
  name: RowName,
): { readonly handover?: Handover; readonly resumedAt?: number } {
  return {
    ...(row.handover !== null && { handover: readObject(row, 'handover', name) as unknown as Handover }),
    ...(row.resumed_at !== null && { resumedAt: readNumber(row, 'resumed_at', name) }),
  };
}

/** The condition of the index of unresolved executions, word for word. @param of - the table or alias of the read, with a point */
export function unresolvedOf(of = ''): string {
  return `${of}status IN ('failed', 'timed_out') AND ${of}retried IS NULL`;
}

/** The execution that retries one which ended badly: a column of a read, by the index of idempotency keys. @param of - the table or alias of the read */
export function retriedByOf(executions: string, of: string): string {
  const key = `'${retryKeyOf('')}' || ${of}.id`;
  return `CASE WHEN ${of}.status IN ('failed', 'timed_out', 'cancelled') THEN (
    SELECT r.id FROM ${executions} r WHERE r.namespace = ${of}.namespace AND r.idempotency_key = ${key}) END AS retried_by`;
}

function readTrigger(row: StoredRow, name: RowName): ExecutionTrigger {
  return readObject(row, 'started_by', name) as unknown as ExecutionTrigger;
}

function readError(row: StoredRow, name: RowName): ExecutionError {
  return readObject(row, 'error', name) as unknown as ExecutionError;
}

/** @param row - `number` and `oldest` */
export function readOpenCount(row: StoredRow = {}): OpenCount {
  const count = readNumber(row, 'number', 'a count');
  return count === 0 ? { count } : { count, oldestAt: readNumber(row, 'oldest', 'an instant') };
}
