/** Definitions by their hash. */

import type { DefinitionStore } from '../../../engine/ports/storage.ts';
import { damaged, readJson, readObject, toJsonColumn } from '../sql/columns.ts';
import { toTextColumn } from './columns.ts';
import { type SqlClient, statement } from './driver.ts';
import type { Names } from './names.ts';

export function definitionsTable(client: SqlClient, names: Names, namespace: string): DefinitionStore {
  const { definitions } = names;
  const insert = statement(
    `INSERT INTO ${definitions} (namespace, version, needs, definition) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
  );
  const select = statement(`SELECT needs, definition FROM ${definitions} WHERE namespace = $1 AND version = $2`, [
    ...['needs', 'definition'],
  ]);
  return {
    async put({ version, definition, needs }) {
      await client.run(insert, [namespace, toTextColumn(version), toJsonColumn(needs), toJsonColumn(definition)]);
    },
    async get(version) {
      const [row] = (await client.run(select, [namespace, toTextColumn(version)])).rows;
      if (!row) return undefined;
      const name = `definition ${version}`;
      const needs = readJson(row, 'needs', name);
      if (!Array.isArray(needs)) throw damaged(name, 'needs');
      return { version, definition: readObject(row, 'definition', name), needs: needs as readonly string[] };
    },
  };
}
