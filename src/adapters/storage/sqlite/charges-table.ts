/** How many executions each caller was charged for. */

import type { Charge } from '../../../engine/model/quota.ts';
import type { UsageStore } from '../../../engine/ports/storage.ts';
import { toTextColumn } from './columns.ts';
import type { SqlConnection } from './driver.ts';

export interface ChargesTable extends UsageStore {
  /** Whether the quota has place for another charge. */
  allows(charge: Charge): boolean;
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
  return {
    charged,
    allows: ({ account, period, limit = Number.POSITIVE_INFINITY }) => charged(account, period) < limit,
    charge({ account, period }) {
      upsert.run([namespace, toTextColumn(account), period]);
    },
  };
}
