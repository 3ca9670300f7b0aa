/** Lists the keys of values and of objects, page by page. */

import type { KeyPage } from '../../../engine/ports/data.ts';
import { keyRange } from '../sql/key-range.ts';
import { prepareOnUse, type SqlConnection } from './driver.ts';

/** @param where - the condition of the listed rows; `?` is the page's `now` */
export function keyLists(connection: SqlConnection, table: string, namespace: string, where?: string) {
  const prepared = prepareOnUse(connection);
  return (page: KeyPage): readonly string[] => {
    const range = keyRange(page);
    if (!range) return [];
    const live = where === undefined ? '' : ` AND ${where}`;
    const sql = `SELECT key FROM ${table} WHERE namespace = ? AND ${range.where}${live} ORDER BY key LIMIT ?`;
    const params = [namespace, ...range.params, ...(where === undefined ? [] : [page.now]), page.limit];
    return prepared(sql)
      .all(params)
      .map(({ key }) => key as string);
  };
}
