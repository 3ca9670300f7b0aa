/**
 * Builds executions and step records from their rows in an SQL store. The error for a damaged row names the row and the
 * column.
 */

import { isOrchestratorError } from '../../../engine/base/errors.ts';
import type {
  AgentResult,
  Execution,
  ExecutionStatus,
  ExecutionSummary,
  OpenCount,
} from '../../../engine/execution/execution.ts';
import {
  type StoredProgress,
  toAgentResult,
  toExecution,
  toSummary,
  withoutValues,
} from '../../../engine/execution/execution-record.ts';
import { retryKeyOf } from '../../../engine/execution/start-once.ts';
import {
  changesOf,
  type ExecutionEnd,
  type Handover,
  NEVER,
  type NewExecution,
  type StepRecord,
} from '../../../engine/execution/stored-execution.ts';
import type { PinnedExecution } from '../../../engine/storage/storage.port.ts';
import { type RowName, readBoolean, readNumber, readObject, readText, type StoredRow } from './columns.ts';
import { ACCEPTED, columnsOf, ENDED, type Field, HANDOVER, PROGRESS, readFields, STEP, SUMMARY } from './fields.ts';

/** @throws INTERNAL when a column is damaged */
export function readExecution(row: StoredRow, runs: readonly AgentResult[]): Execution {
  const name = nameOf(row);
  const progress = { status: row.status as StoredProgress['status'], ...readFields(PROGRESS, row, name) };
  const agents = ENDED.agents.read(row, name);
  return toExecution(readAccepted(row, name), progress, readEnd(row, name), runs, agents);
}

/** The columns that {@link readSummary} reads: none is long. */
export const SUMMARY_COLUMNS = [...columnsOf(SUMMARY), 'status', 'finished_at'];

/** @throws INTERNAL when a column is damaged */
export function readSummary(row: StoredRow): ExecutionSummary {
  const name = nameOf(row);
  const about = readFields(SUMMARY, row, name);
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
    return { ...readExecution(repairedRow(row), []), error: { code: 'INTERNAL', message: error.message } };
  }
}

/** The row with a readable value in every column of a record. */
function repairedRow(row: StoredRow): StoredRow {
  // What an end keeps in `handover` may be damaged in parts.
  const fixed: Record<string, unknown> = { ...row, input: 'null', output: 'null', error: null, handover: null };
  const ended = row.finished_at === null ? { agents: ENDED.agents } : ENDED;
  for (const field of Object.values<Field<unknown>>({ ...ACCEPTED, ...PROGRESS, ...ended })) {
    const { column, type, isOptional } = field;
    if (isReadable(fixed, field)) continue;
    if (isOptional) fixed[column] = null;
    else fixed[column] = type === 'text' ? '' : 0;
  }
  if (!isReadable(row, ACCEPTED.trigger)) fixed.started_by = '{"type":"call"}';
  // It sorts after all others, and the next page continues after it.
  if (!isReadable(row, ACCEPTED.createdAt)) fixed.created_at = NEVER;
  return fixed;
}

function isReadable(row: StoredRow, { column, isOptional, read }: Field<unknown>): boolean {
  try {
    if (!isOptional || row[column] !== null) read(row, '');
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
  return { ...readFields(ENDED, row, name), ...(row.handover !== null && readEndFacts(row, name)) };
}

/** What an end keeps in the column of the handover. */
type EndFacts = Pick<ExecutionEnd, 'waited' | 'usage' | 'components' | 'moves' | 'completions'>;

function readEndFacts(row: StoredRow, name: RowName): EndFacts {
  const facts = readObject(row, 'handover', name);
  const { usage, components, ...rest } = facts as unknown as EndFacts;
  return {
    ...(facts.waited !== undefined && { waited: readNumber(facts, 'waited', name) }),
    ...(usage && { usage }),
    ...(components && { components }),
    ...changesOf(rest),
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
  return readFields(HANDOVER, row, name);
}

export const PINNED_COLUMNS = [
  'id',
  'version',
  'epoch',
  'owner',
  'finished_at',
  'handover',
  'resumed_at',
  'started_at',
];

/** @throws INTERNAL when a column is damaged */
export function readPinned(row: StoredRow): PinnedExecution {
  const name = nameOf(row);
  const { handover } = row.finished_at === null ? readHandover(row, name) : {};
  return {
    version: readText(row, 'version', name),
    epoch: readNumber(row, 'epoch', name),
    isFree: row.owner === null && row.finished_at === null,
    begun: row.started_at !== null,
    ...(handover && { handover }),
  };
}

/** The condition of the index of unresolved executions, word for word. @param of - the table or alias of the read, with a point */
export function unresolvedOf(of = ''): string {
  return `${of}status IN ('failed', 'timed_out') AND ${of}retried IS NULL`;
}

/** The execution that retries one which has ended: a column of a read, by the index of idempotency keys. @param of - the table or alias of the read */
export function retriedByOf(executions: string, of: string): string {
  const key = `'${retryKeyOf('')}' || ${of}.id`;
  return `CASE WHEN ${of}.status IN ('failed', 'timed_out', 'cancelled') OR ${of}.retried THEN (
    SELECT r.id FROM ${executions} r WHERE r.namespace = ${of}.namespace AND r.idempotency_key = ${key}) END AS retried_by`;
}

/** @param row - `number` and `oldest` */
export function readOpenCount(row: StoredRow = {}): OpenCount {
  const count = readNumber(row, 'number', 'a count');
  return count === 0 ? { count } : { count, oldestAt: readNumber(row, 'oldest', 'an instant') };
}
