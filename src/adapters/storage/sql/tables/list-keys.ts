/** Lists the keys of values and of objects, page by page. */

import { andThen, type MaybePromise } from '../../../../engine/base/maybe-promise.ts';
import type { KeyPage } from '../../../../engine/storage/data.port.ts';
import type { SqlDialect, SqlQuery, TableName } from '../dialect.ts';
import { keyRange } from './key-range.ts';

/** @param where - the condition of the listed rows; `$2` is the page's `now` */
export function keyLists(dialect: SqlDialect, table: TableName, namespace: string, where = '$2::bigint IS NOT NULL') {
  const pages = new Map<string, SqlQuery>();
  return (page: KeyPage): MaybePromise<readonly string[]> => {
    // No key contains NUL, so the keys after a text with NUL are those after the part before it.
    const after = page.after?.split('\u0000', 1)[0];
    const range = keyRange({ ...page, ...(after !== undefined && { after }) });
    if (!range) return [];
    const sql = `SELECT ${dialect.key.select} AS key FROM ${dialect.table(table)} t
      WHERE namespace = $1 AND ${where} AND ${range.where(4)} ORDER BY t.key LIMIT $3::bigint`;
    const query = pages.get(sql) ?? dialect.prepare(sql, ['key']);
    pages.set(sql, query);
    return andThen(query.rows([namespace, page.now, page.limit, ...range.params]), (rows) =>
      rows.map(({ key }) => dialect.key.read(key as string)),
    );
  };
}
