/** How many executions each caller was charged for. A commit charges callers. */

import type { UsageStore } from '../../../engine/ports/storage.ts';
import { readNumber } from '../sql/columns.ts';
import { toTextColumn } from './columns.ts';
import { type SqlClient, statement } from './driver.ts';
import type { Names } from './names.ts';

export function chargesTable(client: SqlClient, { charges }: Names, namespace: string): UsageStore {
  const select = statement(`SELECT charged FROM ${charges} WHERE namespace = $1 AND account = $2 AND period = $3`, [
    'charged',
  ]);
  return {
    async charged(account, period) {
      const [row] = (await client.run(select, [namespace, toTextColumn(account), period])).rows;
      return row ? readNumber(row, 'charged', `the charges of ${account}`) : 0;
    },
  };
}
