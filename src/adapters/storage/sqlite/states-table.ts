/** The state of each ensemble. */

import type { StateStore } from '../../../engine/ports/storage.ts';
import { readNumber, readObject, toJsonColumn } from '../sql/columns.ts';
import { toTextColumn } from './columns.ts';
import type { SqlConnection } from './driver.ts';

export function statesTable(connection: SqlConnection, namespace: string): StateStore {
  const select = connection.prepare(
    'SELECT value, version, updated_at FROM ensemble_states WHERE namespace = ? AND ensemble = ?',
  );
  const insert = connection.prepare(`
    INSERT INTO ensemble_states (namespace, ensemble, version, updated_at, value) VALUES (?, ?, 1, ?, ?)
    ON CONFLICT DO NOTHING`);
  const update = connection.prepare(`
    UPDATE ensemble_states SET version = version + 1, updated_at = ?, value = ?
    WHERE namespace = ? AND ensemble = ? AND version = ?`);
  return {
    read(ensemble) {
      const [row] = select.all([namespace, toTextColumn(ensemble)]);
      if (!row) return undefined;
      const name = `state of ensemble ${ensemble}`;
      return {
        value: readObject(row, 'value', name),
        version: readNumber(row, 'version', name),
        updatedAt: readNumber(row, 'updated_at', name),
      };
    },
    write(ensemble, { expectedVersion, value, updatedAt }) {
      const [name, json] = [toTextColumn(ensemble), toJsonColumn(value)];
      if (expectedVersion === 0) return insert.run([namespace, name, updatedAt, json]) > 0;
      return update.run([updatedAt, json, namespace, name, expectedVersion]) > 0;
    },
  };
}
