/** Lists the keys of values and of objects, page by page. */

import type { KeyPage } from '../../../engine/ports/data.ts';
import { keyRange } from '../sql/key-range.ts';
import type { SqlConnection, SqlStatement } from './driver.ts';

/** @param where - the condition of the listed rows; `?` is the page's `now` */
export function keyLists(connection: SqlConnection, table: string, namespace: string, where?: string) {
  const statements = new Map<string, SqlStatement>();
  return (page: KeyPage): readonly string[] => {
    const range = keyRange(page);
    if (!range) return [];
    const live = where === undefined ? '' : ` AND ${where}`;
    const sql = `SELECT key FROM ${table} WHERE namespace = ? AND ${range.where}${live} ORDER BY key LIMIT ?`;
    const statement = statements.get(sql) ?? connection.prepare(sql);
    statements.set(sql, statement);
    const params = [namespace, ...range.params, ...(where === undefined ? [] : [page.now]), page.limit];
    return statement.all(params).map(({ key }) => key as string);
  };
}
