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
import type { SqlConnection } from './driver.ts';

export interface VersionedTable {
  read(key: string): VersionedValue | undefined;
  /** @returns false if the version is another one: then nothing changes */
  write(key: string, change: VersionedChange): boolean;
}

export function versionedTable(
  connection: SqlConnection,
  namespace: string,
  table: string,
  { column, rowName }: VersionedKind,
): VersionedTable {
  const one = `namespace = ? AND ${column} = ?`;
  const select = connection.prepare(`SELECT ${VERSIONED_COLUMNS.join(', ')} FROM ${table} WHERE ${one}`);
  const insert = connection.prepare(`
    INSERT INTO ${table} (namespace, ${column}, version, updated_at, value) VALUES (?, ?, 1, ?, ?)
    ON CONFLICT DO NOTHING`);
  const update = connection.prepare(`
    UPDATE ${table} SET version = version + 1, updated_at = ?, value = ? WHERE ${one} AND version = ?`);
  return {
    read(key) {
      const [row] = select.all([namespace, toTextColumn(key)]);
      return row && readVersioned(row, rowName(key));
    },
    write(key, { expectedVersion, value, updatedAt }) {
      const [text, json] = [toTextColumn(key), toJsonColumn(value)];
      if (expectedVersion === 0) return insert.run([namespace, text, updatedAt, json]) > 0;
      return update.run([updatedAt, json, namespace, text, expectedVersion]) > 0;
    },
  };
}
