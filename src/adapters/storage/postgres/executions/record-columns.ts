/** The columns that executions and steps are read from. */

import * as fields from '../../sql/fields.ts';
import { columnsOf } from '../../sql/fields.ts';
import { retriedByOf } from '../../sql/read-execution.ts';
import type { Names } from '../tables/names.ts';

/** An execution as it was accepted. */
export const ACCEPTED = columnsOf(fields.ACCEPTED);
/** A whole execution. Agent runs are counted until it ends; then their number is stored. */
export const RECORD = [...ACCEPTED, ...columnsOf(fields.ENDED), ...columnsOf(fields.PROGRESS)];
/** A whole step. */
export const STEP = columnsOf(fields.STEP);

/** A column of a record that is not a column of the table `e` alone. Undefined for any other. */
export function computedColumn(
  column: string,
  { executions, steps }: Pick<Names, 'executions' | 'steps'>,
): string | undefined {
  if (column === 'agents') return agentsOf(steps);
  return column === 'retried_by' ? retriedByOf(executions, 'e') : undefined;
}

/** The number of agent runs: counted until the execution ends, then stored. */
function agentsOf(steps: string): string {
  const counted = `SELECT count(*) FROM ${steps} s WHERE s.execution = e.ref AND s.retry_at IS NULL AND NOT s.note`;
  return `coalesce(e.agents, (${counted})) AS agents`;
}
