/**
 * The columns that executions and steps are read from. SQLite reads a column by passing all columns before it, so short
 * columns come first.
 */

import * as fields from '../../sql/fields.ts';
import { columnsOf } from '../../sql/fields.ts';
import { retriedByOf } from '../../sql/read-execution.ts';
import type { SqlConnection } from '../drivers/driver.ts';
import { RUNS } from '../tables/names.ts';

/** An execution as it was accepted. */
export const ACCEPTED = columnsOf(fields.ACCEPTED).join(', ');

/**
 * An execution's record without its input and output. Agent runs are counted until the execution ends; then their number is stored.
 */
export const ABOUT = [
  'ref',
  ...columnsOf(fields.ACCEPTED).filter((name) => name !== 'input'),
  ...columnsOf(fields.ENDED).filter((name) => name !== 'output' && name !== 'agents'),
  `coalesce(agents, (SELECT count(*) ${RUNS} ref AND retry_at IS NULL)) AS agents`,
  ...columnsOf(fields.PROGRESS).filter((name) => name !== 'retried_by'),
  retriedByOf('ensemble_executions', 'ensemble_executions'),
].join(', ');

/** A whole execution. */
export const RECORD = `${ABOUT}, output, input`;

/** A step without its output. */
export const SHORT_STEP = ['seq', ...columnsOf(fields.STEP).filter((name) => name !== 'output')].join(', ');

/** A whole step. Never `*`: SQLite then takes the column names from the file, which may be damaged. */
export const STEP = `${SHORT_STEP}, output`;

/** @returns SQL for the length of a column in bytes; newer versions of SQLite know it without reading the value */
export function byteLength(connection: SqlConnection): (column: string) => string {
  try {
    connection.prepare("SELECT octet_length('') AS bytes").all([]);
    return (column) => `octet_length(${column})`;
  } catch {
    return (column) => `length(CAST(${column} AS BLOB))`;
  }
}
