/** The slots of callers during a claim: a claim never takes more executions of a caller than it has free slots. */

import type { SqlConnection, SqlRow, SqlValue } from '../drivers/driver.ts';
import { toLiteral } from '../tables/columns.ts';
import { SLOTS } from '../tables/names.ts';

export interface FreeSlots {
  /** The callers that had no free slot at the begin of the claim, as JSON. Their executions need not be read. */
  readonly full: string;
  /** Whether there are such callers. */
  readonly areTaken: boolean;
  /** Takes a slot for a row with `account` and `slots`, if its caller has a free one. A row without a caller needs none. */
  take(row: SqlRow): boolean;
  /** Whether `take` has refused a row. */
  readonly hasRefused: boolean;
}

/** @returns reads the slots that are taken now */
export function createFreeSlots(connection: SqlConnection, namespace: string): () => FreeSlots {
  const select = connection.prepare(
    `SELECT account, count(*) AS taken, max(slots) AS slots FROM ${SLOTS} AND namespace = ${toLiteral(namespace)} GROUP BY account`,
  );
  return () => {
    const free = new Map<SqlValue | undefined, number>();
    for (const { account, taken, slots } of select.all([])) free.set(account, (slots as number) - (taken as number));
    const full = [...free].flatMap(([account, left]) => (left <= 0 ? [account as SqlValue] : []));
    let hasRefused = false;
    return {
      full: JSON.stringify(full),
      areTaken: full.length > 0,
      take({ account = null, slots }) {
        if (account === null) return true;
        const left = free.get(account) ?? (slots as number);
        if (left > 0) free.set(account, left - 1);
        else hasRefused = true;
        return left > 0;
      },
      get hasRefused() {
        return hasRefused;
      },
    };
  };
}
