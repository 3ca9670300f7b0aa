/** Lists the keys of values and of objects, page by page. */

import type { KeyPage } from '../../../engine/ports/data.ts';
import { keyRange } from '../sql/key-range.ts';
import { type SqlClient, type SqlParam, type Statement, statement } from './driver.ts';

/** @param where - the condition of the listed rows; `$2` is the page's `now` */
export function keyLists(client: SqlClient, table: string, namespace: string, where = '$2::bigint IS NOT NULL') {
  const pages = new Map<string, Statement>();
  return async (page: KeyPage): Promise<readonly string[]> => {
    // No key contains NUL, so the keys after a text with NUL are those after the part before it.
    const after = page.after?.split('\u0000', 1)[0];
    const range = keyRange({ ...page, ...(after !== undefined && { after }) });
    if (!range) return [];
    let parameter = 3;
    const inRange = range.where.replaceAll('?', () => {
      parameter += 1;
      return `$${parameter}`;
    });
    // As JSON, because a driver may remove a byte order mark at the start.
    const text = `SELECT to_json(key)::text AS key FROM ${table} t WHERE namespace = $1 AND ${where} AND ${inRange} ORDER BY t.key LIMIT $3::bigint`;
    const known = pages.get(text) ?? statement(text, ['key']);
    pages.set(text, known);
    const params: SqlParam[] = [namespace, page.now, page.limit, ...range.params];
    return (await client.run(known, params)).rows.map(({ key }) => JSON.parse(key as string) as string);
  };
}
