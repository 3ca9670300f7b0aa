/** Definitions by their hash. */

import { andThen } from '../../../../engine/base/maybe-promise.ts';
import type { DefinitionStore } from '../../../../engine/storage/storage.port.ts';
import { damagedRow, readJson, readObject, toJsonColumn } from '../columns.ts';
import type { SqlDialect } from '../dialect.ts';

export function definitionsTable(dialect: SqlDialect, namespace: string): DefinitionStore {
  const definitions = dialect.table('definitions');
  const insert = dialect.prepare(
    `INSERT INTO ${definitions} (namespace, version, needs, definition) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
  );
  const select = dialect.prepare(`SELECT needs, definition FROM ${definitions} WHERE namespace = $1 AND version = $2`, [
    'needs',
    'definition',
  ]);
  return {
    put({ version, definition, needs }) {
      const params = [namespace, dialect.text(version), toJsonColumn(needs), toJsonColumn(definition)];
      return andThen(insert.count(params), () => undefined);
    },
    get: (version) =>
      andThen(select.rows([namespace, dialect.text(version)]), ([row]) => {
        if (!row) return undefined;
        const name = `definition ${version}`;
        const needs = readJson(row, 'needs', name);
        if (!Array.isArray(needs)) throw damagedRow(name, 'needs');
        return { version, definition: readObject(row, 'definition', name), needs: needs as readonly string[] };
      }),
  };
}
