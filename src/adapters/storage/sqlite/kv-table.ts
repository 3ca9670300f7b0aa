/** Keyed values that may expire. */

import { checkKey, type KvStore } from '../../../engine/ports/data.ts';
import { readJson, toJsonColumn } from '../sql/columns.ts';
import type { SqlConnection, SqlStatement } from './connection.ts';
import { keyRange } from './data-keys.ts';

/** Expired keys are deleted by the reads that pass by: this seldom, or by the next one where so many were found. */
const SWEEP_EVERY_MS = 60_000;
const SWEEP_AT_MOST = 1000;

export function kvTable(connection: SqlConnection, namespace: string): KvStore {
  const select = connection.prepare('SELECT value, expires_at FROM ensemble_kv WHERE namespace = ? AND key = ?');
  const upsert = connection.prepare(`
    INSERT INTO ensemble_kv (namespace, key, expires_at, value) VALUES (?, ?, ?, ?)
    ON CONFLICT (namespace, key) DO UPDATE SET expires_at = excluded.expires_at, value = excluded.value`);
  const remove = connection.prepare('DELETE FROM ensemble_kv WHERE namespace = ? AND key = ?');
  const sweep = connection.prepare(`
    DELETE FROM ensemble_kv WHERE (namespace, key) IN (
      SELECT namespace, key FROM ensemble_kv WHERE namespace = ? AND expires_at <= ? LIMIT ${SWEEP_AT_MOST})`);
  const pages = new Map<string, SqlStatement>();
  let nextSweep = Number.NEGATIVE_INFINITY;

  const sweepSometimes = (now: number) => {
    if (now < nextSweep) return;
    nextSweep = now + SWEEP_EVERY_MS;
    try {
      if (sweep.run([namespace, now]) >= SWEEP_AT_MOST) nextSweep = now;
    } catch {
      // A read does not fail because what nobody can see any more could not be deleted yet.
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
      const range = keyRange(page);
      if (!range) return [];
      const sql = `SELECT key FROM ensemble_kv WHERE namespace = ? AND ${range.where} AND (expires_at IS NULL OR expires_at > ?) ORDER BY key LIMIT ?`;
      const statement = pages.get(sql) ?? connection.prepare(sql);
      pages.set(sql, statement);
      return statement.all([namespace, ...range.params, page.now, page.limit]).map(({ key }) => key as string);
    },
  };
}
