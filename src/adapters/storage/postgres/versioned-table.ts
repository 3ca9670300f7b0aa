/** A table of values that change under a version check. */

import { toJsonColumn } from '../sql/columns.ts';
import {
  readVersioned,
  VERSIONED_COLUMNS,
  type VersionedChange,
  type VersionedKind,
  type VersionedValue,
} from '../sql/versioned.ts';
import { toTextColumn } from './columns.ts';
import { type SqlClient, statement } from './driver.ts';

export interface VersionedTable {
  read(key: string): Promise<VersionedValue | undefined>;
  /** @returns false if the version is another one: then nothing changes */
  write(key: string, change: VersionedChange): Promise<boolean>;
}

export function versionedTable(
  client: SqlClient,
  namespace: string,
  table: string,
  { column, rowName }: VersionedKind,
): VersionedTable {
  const one = `namespace = $1 AND ${column} = $2`;
  const select = statement(`SELECT ${VERSIONED_COLUMNS.join(', ')} FROM ${table} WHERE ${one}`, VERSIONED_COLUMNS);
  const insert = statement(
    `INSERT INTO ${table} (namespace, ${column}, version, updated_at, value) VALUES ($1, $2, 1, $3::bigint, $4)
    ON CONFLICT DO NOTHING`,
  );
  const update = statement(
    `UPDATE ${table} SET version = version + 1, updated_at = $3::bigint, value = $4 WHERE ${one} AND version = $5::integer`,
  );
  return {
    async read(key) {
      const [row] = (await client.run(select, [namespace, toTextColumn(key)])).rows;
      return row && readVersioned(row, rowName(key));
    },
    async write(key, { expectedVersion, value, updatedAt }) {
      const params = [namespace, toTextColumn(key), updatedAt, toJsonColumn(value)];
      if (expectedVersion === 0) return (await client.run(insert, params)).count > 0;
      return (await client.run(update, [...params, expectedVersion])).count > 0;
    },
  };
}
