/** How far each schedule has come. */

import type { Storage } from '../../../engine/ports/storage.ts';
import { readNumber, readObject, toJsonColumn } from '../sql/columns.ts';
import { toText } from './columns.ts';
import type { Names } from './names.ts';
import { type SqlClient, statement } from './sql-client.ts';

/** Makes the table; a step of the schema, see `MIGRATIONS`. */
export const SCHEDULES_MIGRATION = `
  CREATE TABLE $.schedules (
    version integer NOT NULL,
    updated_at bigint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (namespace, name)
  );
  `;

/** The verbs of the storage port that this table answers. */
export type SchedulesTable = Pick<Storage, 'readSchedule' | 'advanceSchedule'>;

export function schedulesTable(client: SqlClient, { schedules }: Names, namespace: string): SchedulesTable {
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
    async readSchedule(name) {
      const [row] = (await client.run(select, [namespace, toText(name)])).rows;
      if (!row) return undefined;
      const what = `schedule ${name}`;
      return {
        value: readObject(row, 'value', what),
        version: readNumber(row, 'version', what),
        updatedAt: readNumber(row, 'updated_at', what),
      };
    },
    async advanceSchedule(name, { expectedVersion, value, updatedAt }) {
      const params = [namespace, toText(name), updatedAt, toJsonColumn(value)];
      const isFirst = expectedVersion === 0;
      const { count } = await client.run(isFirst ? insert : update, isFirst ? params : [...params, expectedVersion]);
      return count > 0;
    },
  };
}
