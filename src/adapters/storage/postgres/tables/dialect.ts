/** Postgres for the tables that are written once. */

import { fromBase64, toBase64 } from '../../../../engine/base/bytes/base64.ts';
import type { SqlDialect, SqlQuery } from '../../sql/dialect.ts';
import { type SqlParam, type SqlRunner, statement } from '../drivers/driver.ts';
import { toTextColumn } from './columns.ts';
import type { Names } from './names.ts';

export function postgresDialect(client: SqlRunner, names: Names): SqlDialect {
  const prepare = (text: string, columns: readonly string[] = []): SqlQuery => {
    const prepared = statement(text, columns);
    return {
      rows: async (params) => (await client.run(prepared, params as readonly SqlParam[])).rows,
      count: async (params) => (await client.run(prepared, params as readonly SqlParam[])).count,
    };
  };
  return {
    table: (name) => names[name],
    prepare,
    prepareTake: (_select, update, columns) => prepare(`${update} RETURNING ${columns.join(', ')}`, columns),
    text: toTextColumn,
    // As JSON, because a driver may remove a byte order mark at the start.
    key: { select: 'to_json(key)::text', read: (text) => JSON.parse(text) as string },
    bytes: {
      select: (column) => `encode(${column}, 'base64')`,
      read: (value) => fromBase64(typeof value === 'string' ? value : ''),
      insert: (parameter) => `decode(${parameter}, 'base64')`,
      param: toBase64,
    },
    skipLocked: 'FOR UPDATE SKIP LOCKED',
    notSearched: (column) => column,
  };
}
