/** Keyed values, which may expire. */

import { checkKey, type KvStore } from '../../../engine/ports/data.ts';
import { readJson, toJsonColumn } from '../sql/columns.ts';
import { sweepSometimes } from '../sweep-sometimes.ts';
import type { SqlConnection } from './driver.ts';
import { keyLists } from './list-keys.ts';

/** How many expired keys a read deletes in passing. */
const MAX_SWEPT = 1000;

export function kvTable(connection: SqlConnection, namespace: string): KvStore {
  const select = connection.prepare('SELECT value, expires_at FROM ensemble_kv WHERE namespace = ? AND key = ?');
  const upsert = connection.prepare(`
    INSERT INTO ensemble_kv (namespace, key, expires_at, value) VALUES (?, ?, ?, ?)
    ON CONFLICT (namespace, key) DO UPDATE SET expires_at = excluded.expires_at, value = excluded.value`);
  const remove = connection.prepare('DELETE FROM ensemble_kv WHERE namespace = ? AND key = ?');
  const sweep = connection.prepare(`
    DELETE FROM ensemble_kv WHERE (namespace, key) IN (
      SELECT namespace, key FROM ensemble_kv WHERE namespace = ? AND expires_at <= ? LIMIT ${MAX_SWEPT})`);
  const list = keyLists(connection, 'ensemble_kv', namespace, '(expires_at IS NULL OR expires_at > ?)');
  const sweepExpired = sweepSometimes(MAX_SWEPT, (now) => sweep.run([namespace, now]));

  return {
    kind: 'kv',
    get(key, now) {
      sweepExpired(now);
      const [row] = select.all([namespace, checkKey(key)]);
      if (!row || (typeof row.expires_at === 'number' && row.expires_at <= now)) return undefined;
      return readJson(row, 'value', `key ${key}`);
    },
    put(key, value, expiresAt) {
      upsert.run([namespace, checkKey(key), expiresAt ?? null, toJsonColumn(value)]);
    },
    delete: (key) => remove.run([namespace, checkKey(key)]) > 0,
    list(page) {
      sweepExpired(page.now);
      return list(page);
    },
  };
}
