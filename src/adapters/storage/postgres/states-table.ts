/** The state of each ensemble. */

import type { StateStore } from '../../../engine/ports/storage.ts';
import { readNumber, readObject } from '../sql/columns.ts';
import { toTextColumn } from './columns.ts';
import { type SqlClient, statement } from './driver.ts';
import type { Names } from './names.ts';

export function statesTable(client: SqlClient, names: Names, namespace: string): StateStore {
  const select = statement(
    `SELECT value, version, updated_at FROM ${names.states} WHERE namespace = $1 AND ensemble = $2`,
    ['value', 'version', 'updated_at'],
  );
  return {
    async read(ensemble) {
      const [row] = (await client.run(select, [namespace, toTextColumn(ensemble)])).rows;
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
