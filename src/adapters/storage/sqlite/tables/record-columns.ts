/**
 * The columns that executions and steps are read from. SQLite reads a column by passing all columns before it, so short
 * columns come first.
 */

import { retriedByOf } from '../../sql/read-execution.ts';
import type { SqlConnection } from '../drivers/driver.ts';
import { RUNS } from './names.ts';

/** What the caller of a start, or a retry, gave. */
export const GIVEN = 'retry_of, idempotency_key, tags';

/** An execution's status, without long columns. */
export const SUMMARY = 'id, ensemble, version, status, started_by, created_at, finished_at';

/**
 * An execution's record without its values. Agent runs are counted until the execution ends; then their number is
 * stored.
 */
export const ABOUT = `ref, id, ensemble, version, status, seed, started_by, created_at, deadline_at, finished_at, duration,
  coalesce(agents, (SELECT count(*) ${RUNS} ref AND retry_at IS NULL)) AS agents, error`;

/** The columns of an execution that come after its values. */
export const AFTER_VALUES = `started_at, recoveries, ${GIVEN}, handover, resumed_at, ${retriedByOf('ensemble_executions', 'ensemble_executions')}`;

/** A whole execution. */
export const RECORD = `${ABOUT}, output, input, ${AFTER_VALUES}`;

/** A step without its output. */
export const SHORT_STEP = 'seq, key, name, status, attempts, started_at, duration, retry_at, error';

/** A whole step. Never `*`: SQLite then takes the column names from the file, which may be damaged. */
export const STEP = `${SHORT_STEP}, output, note`;

/** @returns SQL for the length of a column in bytes; newer versions of SQLite know it without reading the value */
export function byteLength(connection: SqlConnection): (column: string) => string {
  try {
    connection.prepare("SELECT octet_length('') AS bytes").all([]);
    return (column) => `octet_length(${column})`;
  } catch {
    return (column) => `length(CAST(${column} AS BLOB))`;
  }
}
