/** Definitions under their hash, and the state of each ensemble. */

import type { Storage } from '../../../engine/ports/storage.ts';
import { damaged, readJson, readNumber, readObject, toJsonColumn } from '../sql/columns.ts';
import { toText } from './columns.ts';
import type { Names } from './names.ts';
import { type SqlClient, statement } from './sql-client.ts';

/** The verbs of the storage port that these tables answer. */
export type DefinitionsTable = Pick<Storage, 'putDefinition' | 'getDefinition' | 'readState'>;

export function definitionsTable(client: SqlClient, names: Names, namespace: string): DefinitionsTable {
  const { definitions, states } = names;
  const insert = statement(
    `INSERT INTO ${definitions} (namespace, version, needs, definition) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
  );
  const select = statement(`SELECT needs, definition FROM ${definitions} WHERE namespace = $1 AND version = $2`, [
    ...['needs', 'definition'],
  ]);
  const selectState = statement(
    `SELECT value, version, updated_at FROM ${states} WHERE namespace = $1 AND ensemble = $2`,
    ['value', 'version', 'updated_at'],
  );
  return {
    async putDefinition({ version, definition, needs }) {
      await client.run(insert, [namespace, toText(version), toJsonColumn(needs), toJsonColumn(definition)]);
    },
    async getDefinition(version) {
      const [row] = (await client.run(select, [namespace, toText(version)])).rows;
      if (!row) return undefined;
      const name = `definition ${version}`;
      const needs = readJson(row, 'needs', name);
      if (!Array.isArray(needs)) throw damaged(name, 'needs');
      return { version, definition: readObject(row, 'definition', name), needs: needs as readonly string[] };
    },
    async readState(ensemble) {
      const [row] = (await client.run(selectState, [namespace, toText(ensemble)])).rows;
      if (!row) return undefined;
      const name = `state of ensemble ${ensemble}`;
      return {
        value: readObject(row, 'value', name),
        version: readNumber(row, 'version', name),
        updatedAt: readNumber(row, 'updated_at', name),
      };
    },
  };
}
