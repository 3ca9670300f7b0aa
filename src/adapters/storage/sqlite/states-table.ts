/** The state of each ensemble. */

import type { StateStore } from '../../../engine/ports/storage.ts';
import { readNumber, readObject } from '../sql/columns.ts';
import { toTextColumn } from './columns.ts';
import type { SqlConnection } from './driver.ts';

export function statesTable(connection: SqlConnection, namespace: string): StateStore {
  const select = connection.prepare(
    'SELECT value, version, updated_at FROM ensemble_states WHERE namespace = ? AND ensemble = ?',
  );
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
  };
}
