/** The state of each ensemble. */

import type { StateStore } from '../../../engine/ports/storage.ts';
import { readNumber, readObject, toJsonColumn } from '../sql/columns.ts';
import { toTextColumn } from './columns.ts';
import { type SqlClient, statement } from './driver.ts';
import type { Names } from './names.ts';

export function statesTable(client: SqlClient, names: Names, namespace: string): StateStore {
  const select = statement(
    `SELECT value, version, updated_at FROM ${names.states} WHERE namespace = $1 AND ensemble = $2`,
    ['value', 'version', 'updated_at'],
  );
  const insert = statement(
    `INSERT INTO ${names.states} (namespace, ensemble, version, updated_at, value) VALUES ($1, $2, 1, $3, $4)
    ON CONFLICT DO NOTHING`,
  );
  const update = statement(
    `UPDATE ${names.states} SET version = version + 1, updated_at = $3, value = $4
    WHERE namespace = $1 AND ensemble = $2 AND version = $5::integer`,
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
    async write(ensemble, { expectedVersion, value, updatedAt }) {
      const params = [namespace, toTextColumn(ensemble), updatedAt, toJsonColumn(value)];
      if (expectedVersion === 0) return (await client.run(insert, params)).count > 0;
      return (await client.run(update, [...params, expectedVersion])).count > 0;
    },
  };
}
