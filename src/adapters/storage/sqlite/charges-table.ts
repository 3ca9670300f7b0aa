/** How many executions each caller was charged for, and how many of them are held. */

import type { Charge } from '../../../engine/model/quota.ts';
import type { UsageStore } from '../../../engine/ports/storage.ts';
import { toTextColumn } from './columns.ts';
import type { SqlConnection } from './driver.ts';
import { SLOTS } from './names.ts';

export interface ChargesTable extends UsageStore {
  /** Whether the quota has place for another charge. */
  allows(charge: Charge): boolean;
  /** Whether a slot of the caller is free, if it needs one. */
  hasSlot(charge: Charge): boolean;
  /** Charges a caller once, in the transaction that has asked `allows`. */
  charge(charge: Charge): void;
}

export function chargesTable(connection: SqlConnection, namespace: string): ChargesTable {
  const select = connection.prepare(
    'SELECT charged FROM ensemble_charges WHERE namespace = ? AND account = ? AND period = ?',
  );
  const upsert = connection.prepare(`
    INSERT INTO ensemble_charges (namespace, account, period, charged) VALUES (?, ?, ?, 1)
    ON CONFLICT (namespace, account, period) DO UPDATE SET charged = charged + 1`);
  const charged = (account: string, period: string) =>
    (select.all([namespace, toTextColumn(account), period])[0]?.charged ?? 0) as number;
  const countHeld = connection.prepare(`SELECT count(*) AS taken FROM ${SLOTS} AND namespace = ? AND account = ?`);
  const running = (account: string) => countHeld.all([namespace, toTextColumn(account)])[0]?.taken as number;
  return {
    charged,
    running,
    hasSlot: ({ account, slots }) => slots === undefined || running(account) < slots,
    allows: ({ account, period, limit = Number.POSITIVE_INFINITY }) => charged(account, period) < limit,
    charge({ account, period }) {
      upsert.run([namespace, toTextColumn(account), period]);
    },
  };
}
