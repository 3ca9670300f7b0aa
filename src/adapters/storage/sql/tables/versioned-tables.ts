/** Values that change under a version check: the states of ensembles, and how far each schedule has come. */

import type { JsonObject } from '../../../../engine/base/json/json.ts';
import { andThen } from '../../../../engine/base/maybe-promise.ts';
import type { Storage } from '../../../../engine/storage/storage.port.ts';
import { readNumber, readObject, type StoredRow, toJsonColumn } from '../columns.ts';
import type { SqlDialect } from '../dialect.ts';

interface VersionedChange {
  /** 0 if nothing was stored. */
  readonly expectedVersion: number;
  readonly value: JsonObject;
  readonly updatedAt: number;
}

const COLUMNS = ['value', 'version', 'updated_at'];

/** @param column - the column of the key @param what - names a row in an error */
function versionedTable(
  dialect: SqlDialect,
  namespace: string,
  { table, column, what }: { readonly table: 'states' | 'schedules'; readonly column: string; readonly what: string },
) {
  const name = dialect.table(table);
  const one = `namespace = $1 AND ${column} = $2`;
  const select = dialect.prepare(`SELECT ${COLUMNS.join(', ')} FROM ${name} WHERE ${one}`, COLUMNS);
  const insert = dialect.prepare(
    `INSERT INTO ${name} (namespace, ${column}, version, updated_at, value) VALUES ($1, $2, 1, $3::bigint, $4)
    ON CONFLICT DO NOTHING`,
  );
  const update = dialect.prepare(
    `UPDATE ${name} SET version = version + 1, updated_at = $3::bigint, value = $4 WHERE ${one} AND version = $5::integer`,
  );
  const isOne = (count: number) => count > 0;
  return {
    read: (key: string) =>
      andThen(select.rows([namespace, dialect.text(key)]), ([row]) => row && readVersioned(row, `${what} ${key}`)),
    /** @returns false if the version is another one: then nothing changes */
    write(key: string, { expectedVersion, value, updatedAt }: VersionedChange) {
      const params = [namespace, dialect.text(key), updatedAt, toJsonColumn(value)];
      if (expectedVersion === 0) return andThen(insert.count(params), isOne);
      return andThen(update.count([...params, expectedVersion]), isOne);
    },
  };
}

/** @throws INTERNAL when a column is damaged */
function readVersioned(row: StoredRow, name: string) {
  return {
    value: readObject(row, 'value', name),
    version: readNumber(row, 'version', name),
    updatedAt: readNumber(row, 'updated_at', name),
  };
}

export function statesTable(dialect: SqlDialect, namespace: string): Storage['state'] {
  return versionedTable(dialect, namespace, { table: 'states', column: 'ensemble', what: 'state of ensemble' });
}

export function schedulesTable(dialect: SqlDialect, namespace: string): Storage['schedules'] {
  const { read, write } = versionedTable(dialect, namespace, { table: 'schedules', column: 'name', what: 'schedule' });
  return { read, advance: write };
}
