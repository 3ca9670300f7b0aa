/**
 * What callers are counted for, in one table: the executions of a month, and the slots of the executions that are held. A constraint
 * refuses a statement that counts more than a caller may have.
 */

import type { Charge } from '../../../../engine/access/quota.ts';
import { messageOf } from '../../../../engine/base/errors.ts';
import { codeOf } from '../drivers/failure.ts';

/** The period of the slots that are taken. */
export const RUNNING = 'running';

/** What a start counts for its caller. */
export interface Counted {
  readonly account: string;
  /** A month, or {@link RUNNING}. */
  readonly period: string;
  /** 0 for the slot of an execution that is queued: it takes none yet. */
  readonly count: 0 | 1;
  readonly max: number;
}

export function countedOf(
  { account, period, limit = Number.MAX_SAFE_INTEGER, slots }: Charge,
  isQueued: boolean,
): readonly Counted[] {
  const month: Counted = { account, period, count: 1, max: limit };
  return slots === undefined ? [month] : [month, { account, period: RUNNING, count: isQueued ? 0 : 1, max: slots }];
}

/**
 * The statement that counts. Rows of one caller and period become one, and all statements write in one order, so none waits for
 * another one that waits for it.
 * @param rows - selects `account`, `period`, `count`, which may be negative, and `max`: null leaves the one that is stored
 */
export function countCharges(charges: string, rows: string): string {
  const max = 'coalesce(excluded.max, c.max)';
  return `INSERT INTO ${charges} AS c (namespace, account, period, charged, max)
    SELECT $1, x.account, x.period, sum(x.count), max(x.max) FROM (${rows}) x GROUP BY x.account, x.period ORDER BY x.account, x.period
    ON CONFLICT (namespace, account, period) DO UPDATE SET charged = c.charged + excluded.charged,
      max = CASE WHEN excluded.charged > 0 THEN ${max} ELSE greatest(${max}, c.charged) END`;
}

/** The slots of the executions in `of`, which has their `account`: taken, or given back. */
export function slotRows(of: string, count: 1 | -1): string {
  return `SELECT account, '${RUNNING}' AS period, ${count} AS count, NULL::bigint AS max FROM ${of} WHERE account IS NOT NULL`;
}

const CHECK_VIOLATION = '23514';
const WITHIN_QUOTA = 'charges_within_quota';

/** Whether the constraint has refused a statement. */
export function isOverLimit(error: unknown): boolean {
  return codeOf(error) === CHECK_VIOLATION && messageOf(error).includes(WITHIN_QUOTA);
}
