/** Objects: bytes under a key, with their content type. */

import { andThen } from '../../../../engine/base/maybe-promise.ts';
import { checkKey, type ObjectStore } from '../../../../engine/storage/data.port.ts';
import { damagedRow, readNumber, readText } from '../columns.ts';
import type { SqlDialect } from '../dialect.ts';
import { keyLists } from './list-keys.ts';

export function objectsTable(dialect: SqlDialect, namespace: string): ObjectStore {
  const objects = dialect.table('objects');
  const { bytes } = dialect;
  const select = dialect.prepare(
    `SELECT ${bytes.select('content')} AS content, content_type, updated_at FROM ${objects} WHERE namespace = $1 AND key = $2`,
    ['content', 'content_type', 'updated_at'],
  );
  const upsert = dialect.prepare(
    `INSERT INTO ${objects} (namespace, key, content_type, updated_at, content) VALUES ($1, $2, $3, $4, ${bytes.insert('$5')})
    ON CONFLICT (namespace, key) DO UPDATE SET
      content_type = excluded.content_type, updated_at = excluded.updated_at, content = excluded.content`,
  );
  const remove = dialect.prepare(`DELETE FROM ${objects} WHERE namespace = $1 AND key = $2`);
  return {
    kind: 'objects',
    get: (key) =>
      andThen(select.rows([namespace, checkKey(key)]), ([row]) => {
        if (!row) return undefined;
        const name = `object ${key}`;
        const content = bytes.read(row.content);
        if (!content) throw damagedRow(name, 'content');
        return {
          content,
          contentType: readText(row, 'content_type', name),
          updatedAt: readNumber(row, 'updated_at', name),
        };
      }),
    put(key, { content, contentType, updatedAt }) {
      const params = [namespace, checkKey(key), dialect.text(contentType), updatedAt, bytes.param(content)];
      return andThen(upsert.count(params), () => undefined);
    },
    delete: (key) => andThen(remove.count([namespace, checkKey(key)]), (count) => count > 0),
    list: keyLists(dialect, 'objects', namespace),
  };
}
