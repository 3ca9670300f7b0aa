/** Keyed values, which may expire. */

import { andThen } from '../../../../engine/base/maybe-promise.ts';
import { checkKey, type KvStore } from '../../../../engine/storage/data.port.ts';
import { sweepSometimes } from '../../sweep-sometimes.ts';
import { readJson, toJsonColumn } from '../columns.ts';
import type { SqlDialect } from '../dialect.ts';
import { keyLists } from './list-keys.ts';

/** How many expired keys a read deletes in passing. */
const MAX_SWEPT = 100;

export function kvTable(dialect: SqlDialect, namespace: string): KvStore {
  const kv = dialect.table('kv');
  const live = '(expires_at IS NULL OR expires_at > $2::bigint)';
  const select = dialect.prepare(`SELECT value FROM ${kv} WHERE namespace = $1 AND key = $3 AND ${live}`, ['value']);
  const upsert = dialect.prepare(
    `INSERT INTO ${kv} (namespace, key, expires_at, value) VALUES ($1, $2, $3, $4)
    ON CONFLICT (namespace, key) DO UPDATE SET expires_at = excluded.expires_at, value = excluded.value`,
  );
  const remove = dialect.prepare(`DELETE FROM ${kv} WHERE namespace = $1 AND key = $2`);
  const sweep = dialect.prepare(
    `WITH old AS MATERIALIZED (
      SELECT key FROM ${kv} WHERE ${dialect.notSearched('namespace')} = $1 AND expires_at <= $2::bigint ORDER BY expires_at LIMIT ${MAX_SWEPT} ${dialect.skipLocked}
    )
    DELETE FROM ${kv} WHERE namespace = $1 AND key IN (SELECT key FROM old)`,
  );
  const list = keyLists(dialect, 'kv', namespace, live);
  const sweepExpired = sweepSometimes(MAX_SWEPT, (now) => sweep.count([namespace, now]));

  return {
    kind: 'kv',
    get(key, now) {
      sweepExpired(now);
      const rows = select.rows([namespace, now, checkKey(key)]);
      return andThen(rows, ([row]) => row && readJson(row, 'value', `key ${key}`));
    },
    put: (key, value, expiresAt) =>
      andThen(upsert.count([namespace, checkKey(key), expiresAt ?? null, toJsonColumn(value)]), () => undefined),
    delete: (key) => andThen(remove.count([namespace, checkKey(key)]), (count) => count > 0),
    list(page) {
      sweepExpired(page.now);
      return list(page);
    },
  };
}
