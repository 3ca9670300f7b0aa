/** How far each schedule has come. */

import type { ScheduleStore } from '../../../engine/ports/storage.ts';
import { readNumber, readObject, toJsonColumn } from '../sql/columns.ts';
import { toTextColumn } from './columns.ts';
import { type SqlClient, statement } from './driver.ts';
import type { Names } from './names.ts';

export function schedulesTable(client: SqlClient, { schedules }: Names, namespace: string): ScheduleStore {
  const select = statement(`SELECT value, version, updated_at FROM ${schedules} WHERE namespace = $1 AND name = $2`, [
    'value',
    'version',
    'updated_at',
  ]);
  const insert = statement(
    `INSERT INTO ${schedules} (namespace, name, version, updated_at, value) VALUES ($1, $2, 1, $3::bigint, $4)
    ON CONFLICT DO NOTHING`,
  );
  const update = statement(
    `UPDATE ${schedules} SET version = version + 1, updated_at = $3::bigint, value = $4
    WHERE namespace = $1 AND name = $2 AND version = $5::integer`,
  );
  return {
    async read(name) {
      const [row] = (await client.run(select, [namespace, toTextColumn(name)])).rows;
      if (!row) return undefined;
      const what = `schedule ${name}`;
      return {
        value: readObject(row, 'value', what),
        version: readNumber(row, 'version', what),
        updatedAt: readNumber(row, 'updated_at', what),
      };
    },
    async advance(name, { expectedVersion, value, updatedAt }) {
      const params = [namespace, toTextColumn(name), updatedAt, toJsonColumn(value)];
      const isFirst = expectedVersion === 0;
      const { count } = await client.run(isFirst ? insert : update, isFirst ? params : [...params, expectedVersion]);
      return count > 0;
    },
  };
}
