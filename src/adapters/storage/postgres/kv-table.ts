/** Keyed values, which may expire. */

import { checkKey, type KvStore } from '../../../engine/ports/data.ts';
import { readJson, toJsonColumn } from '../sql/columns.ts';
import { sweepSometimes } from '../sweep-sometimes.ts';
import { type SqlClient, statement } from './driver.ts';
import { keyLists } from './list-keys.ts';
import type { Names } from './names.ts';

/** How many expired keys a read deletes in passing. */
const MAX_SWEPT = 1000;

export function kvTable(client: SqlClient, { kv }: Names, namespace: string): KvStore {
  const live = '(expires_at IS NULL OR expires_at > $2::bigint)';
  const select = statement(`SELECT value FROM ${kv} WHERE namespace = $1 AND key = $3 AND ${live}`, ['value']);
  const upsert = statement(
    `INSERT INTO ${kv} (namespace, key, expires_at, value) VALUES ($1, $2, $3, $4)
    ON CONFLICT (namespace, key) DO UPDATE SET expires_at = excluded.expires_at, value = excluded.value`,
  );
  const remove = statement(`DELETE FROM ${kv} WHERE namespace = $1 AND key = $2`);
  const sweep = statement(
    `WITH old AS MATERIALIZED (
      SELECT key FROM ${kv} WHERE namespace = $1 AND expires_at <= $2::bigint LIMIT ${MAX_SWEPT} FOR UPDATE SKIP LOCKED
    )
    DELETE FROM ${kv} WHERE namespace = $1 AND expires_at <= $2::bigint AND key IN (SELECT key FROM old)`,
  );
  const list = keyLists(client, kv, namespace, live);
  const sweepExpired = sweepSometimes(MAX_SWEPT, async (now) => (await client.run(sweep, [namespace, now])).count);

  return {
    kind: 'kv',
    async get(key, now) {
      sweepExpired(now);
      const [row] = (await client.run(select, [namespace, now, checkKey(key)])).rows;
      return row && readJson(row, 'value', `key ${key}`);
    },
    async put(key, value, expiresAt) {
      await client.run(upsert, [namespace, checkKey(key), expiresAt ?? null, toJsonColumn(value)]);
    },
    delete: async (key) => (await client.run(remove, [namespace, checkKey(key)])).count > 0,
    async list(page) {
      sweepExpired(page.now);
      return list(page);
    },
  };
}
