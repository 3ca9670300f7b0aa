/** SQLite for the tables that are written once. */

import { type SqlDialect, toPlaced } from '../sql/dialect.ts';
import { toTextColumn } from './columns.ts';
import type { SqlConnection } from './driver.ts';

export function sqliteDialect(connection: SqlConnection): SqlDialect {
  return {
    table: (name) => `ensemble_${name}`,
    prepare(text) {
      const { sql, place } = toPlaced(text);
      const statement = connection.prepare(sql);
      return { rows: (params) => statement.all(place(params)), count: (params) => statement.run(place(params)) };
    },
    text: toTextColumn,
    skipLocked: '',
  };
}
