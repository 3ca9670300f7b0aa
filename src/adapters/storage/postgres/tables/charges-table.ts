/** How many executions each caller was charged for, and how many of them are held. Commits and claims count. */

import type { CommitEntry } from '../../../../engine/execution/stored-execution.ts';
import type { UsageStore } from '../../../../engine/storage/storage.port.ts';
import { readNumber } from '../../sql/columns.ts';
import { type SqlClient, statement } from '../drivers/driver.ts';
import { toTextColumn } from './columns.ts';
import { RUNNING } from './count-charges.ts';
import type { Names } from './names.ts';

export interface ChargesTable extends UsageStore {
  /** Which limit of its caller an entry does not keep. */
  limitOf(entry: CommitEntry): Promise<'quota-exceeded' | 'slots-taken'>;
}

export function chargesTable(client: SqlClient, { charges }: Names, namespace: string): ChargesTable {
  const select = statement(`SELECT charged FROM ${charges} WHERE namespace = $1 AND account = $2 AND period = $3`, [
    'charged',
  ]);
  const charged = async (account: string, period: string) => {
    const [row] = (await client.run(select, [namespace, toTextColumn(account), period])).rows;
    return row ? readNumber(row, 'charged', `the charges of ${account}`) : 0;
  };
  return {
    charged,
    running: (account) => charged(account, RUNNING),
    async limitOf({ charge, release }) {
      if (charge?.slots === undefined || release) return 'quota-exceeded';
      const { account, period, limit = Number.POSITIVE_INFINITY } = charge;
      return (await charged(account, period)) >= limit ? 'quota-exceeded' : 'slots-taken';
    },
  };
}
