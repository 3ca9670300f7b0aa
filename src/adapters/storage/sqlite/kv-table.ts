/** Keyed values, which may expire. */

import { checkKey, type KvStore } from '../../../engine/ports/data.ts';
import { readJson, toJsonColumn } from '../sql/columns.ts';
import type { SqlConnection } from './driver.ts';
import { keyLists } from './list-keys.ts';

/** Reads delete expired keys: at most one read a minute, or the next read if the last one deleted the maximum. */
const SWEEP_EVERY_MS = 60_000;
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
  let nextSweep = Number.NEGATIVE_INFINITY;

  const sweepSometimes = (now: number) => {
    if (now < nextSweep) return;
    nextSweep = now + SWEEP_EVERY_MS;
    try {
      if (sweep.run([namespace, now]) >= MAX_SWEPT) nextSweep = now;
    } catch {
      // A read does not fail because expired keys, which it does not return, could not be deleted.
    }
  };

  return {
    kind: 'kv',
    get(key, now) {
      sweepSometimes(now);
      const [row] = select.all([namespace, checkKey(key)]);
      if (!row || (typeof row.expires_at === 'number' && row.expires_at <= now)) return undefined;
      return readJson(row, 'value', `key ${key}`);
    },
    put(key, value, expiresAt) {
      upsert.run([namespace, checkKey(key), expiresAt ?? null, toJsonColumn(value)]);
    },
    delete: (key) => remove.run([namespace, checkKey(key)]) > 0,
    list(page) {
      sweepSometimes(page.now);
      return list(page);
    },
  };
}
