/** Postgres for the tables that are written once. */

import type { SqlDialect } from '../sql/dialect.ts';
import { toTextColumn } from './columns.ts';
import { type SqlClient, statement } from './driver.ts';
import type { Names } from './names.ts';

export function postgresDialect(client: SqlClient, names: Names): SqlDialect {
  return {
    table: (name) => names[name],
    prepare(text, columns = []) {
      const prepared = statement(text, columns);
      return {
        rows: async (params) => (await client.run(prepared, params)).rows,
        count: async (params) => (await client.run(prepared, params)).count,
      };
    },
    text: toTextColumn,
    skipLocked: 'FOR UPDATE SKIP LOCKED',
  };
}
