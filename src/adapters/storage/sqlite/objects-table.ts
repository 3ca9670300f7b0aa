/** Objects: bytes under a key, with their content type. */

import { checkKey, type ObjectStore } from '../../../engine/ports/data.ts';
import { damaged, readNumber, readText } from '../sql/columns.ts';
import { toTextColumn } from './columns.ts';
import type { SqlConnection } from './driver.ts';
import { keyLists } from './list-keys.ts';

export function objectsTable(connection: SqlConnection, namespace: string): ObjectStore {
  const select = connection.prepare(
    'SELECT content, content_type, updated_at FROM ensemble_objects WHERE namespace = ? AND key = ?',
  );
  // Node.js 22 passes an empty array of bytes as NULL.
  const upsert = connection.prepare(`
    INSERT INTO ensemble_objects (namespace, key, content_type, updated_at, content) VALUES (?, ?, ?, ?, coalesce(?, x''))
    ON CONFLICT (namespace, key) DO UPDATE SET
      content_type = excluded.content_type, updated_at = excluded.updated_at, content = excluded.content`);
  const remove = connection.prepare('DELETE FROM ensemble_objects WHERE namespace = ? AND key = ?');
  return {
    kind: 'objects',
    get(key) {
      const [row] = select.all([namespace, checkKey(key)]);
      if (!row) return undefined;
      const name = `object ${key}`;
      const content = row.content;
      if (!(content instanceof Uint8Array)) throw damaged(name, 'content');
      return {
        content: toBytes(content),
        contentType: readText(row, 'content_type', name),
        updatedAt: readNumber(row, 'updated_at', name),
      };
    },
    put(key, { content, contentType, updatedAt }) {
      upsert.run([namespace, checkKey(key), toTextColumn(contentType), updatedAt, content]);
    },
    delete: (key) => remove.run([namespace, checkKey(key)]) > 0,
    list: keyLists(connection, 'ensemble_objects', namespace),
  };
}

// Some drivers give a Buffer.
function toBytes(value: Uint8Array): Uint8Array {
  return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
}
