/** Objects in a Durable Object. A row holds at most 2 MiB of an object; the rest of a larger one is in rows of its own. */

import { joinBytes } from '../../../../engine/base/bytes/join-bytes.ts';
import type { ObjectStore } from '../../../../engine/storage/data.port.ts';
import { createTransaction, type SqlConnection } from '../drivers/driver.ts';
import { MAX_VALUE_BYTES } from '../drivers/durable-object-driver.ts';

/** @param firsts - the objects' table, which keeps the first part of each object */
export function splitObjects(connection: SqlConnection, firsts: ObjectStore): ObjectStore {
  connection.exec(`CREATE TABLE IF NOT EXISTS ensemble_object_parts (
    key TEXT NOT NULL, part INTEGER NOT NULL, content BLOB NOT NULL, PRIMARY KEY (key, part))`);
  const transaction = createTransaction(connection);
  const select = connection.prepare('SELECT content FROM ensemble_object_parts WHERE key = ? ORDER BY part');
  const insert = connection.prepare('INSERT INTO ensemble_object_parts (key, part, content) VALUES (?, ?, ?)');
  const remove = connection.prepare('DELETE FROM ensemble_object_parts WHERE key = ?');
  return {
    ...firsts,
    get(key) {
      const first = firsts.get(key);
      if (first === undefined || first instanceof Promise || first.content.length < MAX_VALUE_BYTES) return first;
      const parts = [first.content, ...select.all([key]).map(({ content }) => content as Uint8Array)];
      return { ...first, content: joinBytes(parts) };
    },
    put: (key, { content, ...about }) =>
      transaction(() => {
        firsts.put(key, { ...about, content: content.subarray(0, MAX_VALUE_BYTES) });
        remove.run([key]);
        for (let part = 1; part * MAX_VALUE_BYTES < content.length; part++) {
          insert.run([key, part, content.subarray(part * MAX_VALUE_BYTES, (part + 1) * MAX_VALUE_BYTES)]);
        }
      }),
    delete: (key) =>
      transaction(() => {
        remove.run([key]);
        return firsts.delete(key);
      }),
  };
}
