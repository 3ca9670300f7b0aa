/** Objects: bytes under a key, with their content type. */

import { fromBase64, toBase64 } from '../../../engine/base/base64.ts';
import { checkKey, type ObjectStore } from '../../../engine/ports/data.ts';
import { damaged, readNumber, readText } from '../sql/columns.ts';
import { toTextColumn } from './columns.ts';
import { type SqlClient, statement } from './driver.ts';
import { keyLists } from './list-keys.ts';
import type { Names } from './names.ts';

export function objectsTable(client: SqlClient, { objects }: Names, namespace: string): ObjectStore {
  const select = statement(
    `SELECT encode(content, 'base64') AS content, content_type, updated_at FROM ${objects}
    WHERE namespace = $1 AND key = $2`,
    ['content', 'content_type', 'updated_at'],
  );
  const upsert = statement(
    `INSERT INTO ${objects} (namespace, key, content_type, updated_at, content)
    VALUES ($1, $2, $3, $4, decode($5, 'base64'))
    ON CONFLICT (namespace, key) DO UPDATE SET
      content_type = excluded.content_type, updated_at = excluded.updated_at, content = excluded.content`,
  );
  const remove = statement(`DELETE FROM ${objects} WHERE namespace = $1 AND key = $2`);
  return {
    kind: 'objects',
    async get(key) {
      const [row] = (await client.run(select, [namespace, checkKey(key)])).rows;
      if (!row) return undefined;
      const name = `object ${key}`;
      const content = fromBase64(row.content ?? '');
      if (!content) throw damaged(name, 'content');
      return {
        content,
        contentType: readText(row, 'content_type', name),
        updatedAt: readNumber(row, 'updated_at', name),
      };
    },
    async put(key, { content, contentType, updatedAt }) {
      const params = [namespace, checkKey(key), toTextColumn(contentType), updatedAt, toBase64(content)];
      await client.run(upsert, params);
    },
    delete: async (key) => (await client.run(remove, [namespace, checkKey(key)])).count > 0,
    list: keyLists(client, objects, namespace),
  };
}
