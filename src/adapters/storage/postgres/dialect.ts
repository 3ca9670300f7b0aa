/** Postgres for the tables that are written once. */

import type { SqlDialect, SqlQuery } from '../sql/dialect.ts';
import { toTextColumn } from './columns.ts';
import { type SqlClient, statement } from './driver.ts';
import type { Names } from './names.ts';

export function postgresDialect(client: SqlClient, names: Names): SqlDialect {
  const prepare = (text: string, columns: readonly string[] = []): SqlQuery => {
    const prepared = statement(text, columns);
    return {
      rows: async (params) => (await client.run(prepared, params)).rows,
      count: async (params) => (await client.run(prepared, params)).count,
    };
  };
  return {
    table: (name) => names[name],
    prepare,
    prepareTake: (_select, update, columns) => prepare(`${update} RETURNING ${columns.join(', ')}`, columns),
    text: toTextColumn,
    skipLocked: 'FOR UPDATE SKIP LOCKED',
  };
}
