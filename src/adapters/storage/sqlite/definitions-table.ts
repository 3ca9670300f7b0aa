/** Definitions under their hash, and the state of each ensemble. */

import type { JsonObject } from '../../../engine/json.ts';
import type { Storage } from '../../../engine/ports/storage.ts';
import { damaged, readJson, readNumber, readObject, toJsonColumn } from '../sql/columns.ts';
import { toTextColumn } from './columns.ts';
import type { SqlConnection } from './connection.ts';

/** The verbs of the storage port that these tables answer. */
export type DefinitionsTable = Pick<Storage, 'putDefinition' | 'getDefinition' | 'readState'>;

export function definitionsTable(connection: SqlConnection, namespace: string): DefinitionsTable {
  const insert = connection.prepare(`
    INSERT INTO ensemble_definitions (namespace, version, needs, definition) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`);
  const select = connection.prepare(
    'SELECT needs, definition FROM ensemble_definitions WHERE namespace = ? AND version = ?',
  );
  const selectState = connection.prepare(
    'SELECT value, version, updated_at FROM ensemble_states WHERE namespace = ? AND ensemble = ?',
  );
  return {
    putDefinition({ version, definition, needs }) {
      insert.run([namespace, toTextColumn(version), toJsonColumn(needs), toJsonColumn(definition)]);
    },
    getDefinition(version) {
      const [row] = select.all([namespace, toTextColumn(version)]);
      if (!row) return undefined;
      const name = `definition ${version}`;
      const needs = readJson(row, 'needs', name);
      if (!Array.isArray(needs)) throw damaged(name, 'needs');
      return { version, definition: readObject(row, 'definition', name), needs: needs as readonly string[] };
    },
    readState(ensemble) {
      const [row] = selectState.all([namespace, toTextColumn(ensemble)]);
      if (!row) return undefined;
      const name = `state of ensemble ${ensemble}`;
      const value: JsonObject = readObject(row, 'value', name);
      return { value, version: readNumber(row, 'version', name), updatedAt: readNumber(row, 'updated_at', name) };
    },
  };
}
