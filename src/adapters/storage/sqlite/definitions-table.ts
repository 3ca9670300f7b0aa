/** Definitions by their hash. */

import type { DefinitionStore } from '../../../engine/ports/storage.ts';
import { damaged, readJson, readObject, toJsonColumn } from '../sql/columns.ts';
import { toTextColumn } from './columns.ts';
import type { SqlConnection } from './driver.ts';

export function definitionsTable(connection: SqlConnection, namespace: string): DefinitionStore {
  const insert = connection.prepare(`
    INSERT INTO ensemble_definitions (namespace, version, needs, definition) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`);
  const select = connection.prepare(
    'SELECT needs, definition FROM ensemble_definitions WHERE namespace = ? AND version = ?',
  );
  return {
    put({ version, definition, needs }) {
      insert.run([namespace, toTextColumn(version), toJsonColumn(needs), toJsonColumn(definition)]);
    },
    get(version) {
      const [row] = select.all([namespace, toTextColumn(version)]);
      if (!row) return undefined;
      const name = `definition ${version}`;
      const needs = readJson(row, 'needs', name);
      if (!Array.isArray(needs)) throw damaged(name, 'needs');
      return { version, definition: readObject(row, 'definition', name), needs: needs as readonly string[] };
    },
  };
}
