/** Keyed values, which may expire. */

import { checkKey, type KvStore } from '../../../engine/ports/data.ts';
import { readJson, toJsonColumn } from '../sql/columns.ts';
import { type SqlClient, statement } from './driver.ts';
import { keyLists } from './list-keys.ts';
import type { Names } from './names.ts';

/** Reads delete expired keys: at most one read a minute, or the next read if the last one deleted the maximum. */
const SWEEP_EVERY_MS = 60_000;
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
    `DELETE FROM ${kv} WHERE namespace = $1 AND expires_at <= $2::bigint AND key IN (
      SELECT key FROM ${kv} WHERE namespace = $1 AND expires_at <= $2::bigint
      LIMIT ${MAX_SWEPT} FOR UPDATE SKIP LOCKED)`,
  );
  const list = keyLists(client, kv, namespace, live);
  let nextSweep = Number.NEGATIVE_INFINITY;

  const sweepSometimes = (now: number) => {
    if (now < nextSweep) return;
    nextSweep = now + SWEEP_EVERY_MS;
    client.run(sweep, [namespace, now]).then(
      ({ count }) => {
        if (count >= MAX_SWEPT) nextSweep = now;
      },
      // A read does not fail because expired keys, which it does not return, could not be deleted.
      () => undefined,
    );
  };

  return {
    kind: 'kv',
    async get(key, now) {
      sweepSometimes(now);
      const [row] = (await client.run(select, [namespace, now, checkKey(key)])).rows;
      return row && readJson(row, 'value', `key ${key}`);
    },
    async put(key, value, expiresAt) {
      await client.run(upsert, [namespace, checkKey(key), expiresAt ?? null, toJsonColumn(value)]);
    },
    delete: async (key) => (await client.run(remove, [namespace, checkKey(key)])).count > 0,
    async list(page) {
      sweepSometimes(page.now);
      return list(page);
    },
  };
}
