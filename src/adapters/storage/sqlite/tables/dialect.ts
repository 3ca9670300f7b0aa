/** SQLite for the tables that are written once. */

import { type SqlDialect, type SqlParam, toPlaced } from '../../sql/dialect.ts';
import { createTransaction, type SqlConnection } from '../drivers/driver.ts';
import { toTextColumn } from './columns.ts';

/** @param transaction - how a change of several statements is made one. For a dialect within a transaction: nothing */
export function sqliteDialect(connection: SqlConnection, transaction = createTransaction(connection)): SqlDialect {
  const prepare = (text: string) => {
    const { sql, place } = toPlaced(text);
    const statement = connection.prepare(sql);
    return {
      rows: (params: readonly SqlParam[]) => statement.all(place(params)),
      count: (params: readonly SqlParam[]) => statement.run(place(params)),
    };
  };
  return {
    table: (name) => `ensemble_${name}`,
    prepare,
    prepareTake(select, update) {
      const [selecting, updating] = [prepare(select), prepare(update)];
      return {
        rows: (params) =>
          transaction(() => {
            const rows = selecting.rows(params);
            if (rows.length > 0) updating.count(params);
            return rows;
          }),
      };
    },
    text: toTextColumn,
    key: { select: 'key', read: (key) => key },
    bytes: {
      select: (column) => column,
      // Some drivers give a Buffer.
      read: (value) =>
        value instanceof Uint8Array ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength) : undefined,
      // Node.js 22 passes an empty array of bytes as NULL.
      insert: (parameter) => `coalesce(${parameter}, x'')`,
      param: (content) => content,
    },
    skipLocked: '',
    notSearched: (column) => `+${column}`,
  };
}
