/** Keyed values that may expire, and objects: bytes under a key, with their content type. */

import { fromBase64, toBase64 } from '../../../engine/base64.ts';
import { checkKey, type KeyPage, type KvStore, type ObjectStore } from '../../../engine/ports/data.ts';
import { damaged, readJson, readNumber, readText, toJsonColumn } from '../sql/columns.ts';
import { keyRange } from '../sqlite/data-keys.ts';
import { toText } from './columns.ts';
import type { Names } from './names.ts';
import { type SqlClient, type SqlParam, type Statement, statement } from './sql-client.ts';

/** Expired keys are deleted by the reads that pass by: this seldom, or by the next one where so many were found. */
const SWEEP_EVERY_MS = 60_000;
const SWEEP_AT_MOST = 1000;

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
      LIMIT ${SWEEP_AT_MOST} FOR UPDATE SKIP LOCKED)`,
  );
  const list = keyLists(client, kv, namespace, live);
  let nextSweep = Number.NEGATIVE_INFINITY;

  const sweepSometimes = (now: number) => {
    if (now < nextSweep) return;
    nextSweep = now + SWEEP_EVERY_MS;
    client.run(sweep, [namespace, now]).then(
      ({ count }) => {
        if (count >= SWEEP_AT_MOST) nextSweep = now;
      },
      // A read does not fail because what nobody can see any more could not be deleted yet.
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
      const params = [namespace, checkKey(key), toText(contentType), updatedAt, toBase64(content)];
      await client.run(upsert, params);
    },
    delete: async (key) => (await client.run(remove, [namespace, checkKey(key)])).count > 0,
    list: keyLists(client, objects, namespace),
  };
}

/** Pages of keys. @param where - of the rows that are listed; `$2` is the instant of the page */
function keyLists(client: SqlClient, table: string, namespace: string, where = '$2::bigint IS NOT NULL') {
  const pages = new Map<string, Statement>();
  return async (page: KeyPage): Promise<readonly string[]> => {
    // No key holds NUL, so those behind one that does are those behind what stands before it.
    const after = page.after?.split('\u0000', 1)[0];
    const range = keyRange({ ...page, ...(after !== undefined && { after }) });
    if (!range) return [];
    let place = 3;
    const inRange = range.where.replaceAll('?', () => {
      place += 1;
      return `$${place}`;
    });
    // As JSON: a driver may take a byte order mark at the beginning away.
    const text = `SELECT to_json(key)::text AS key FROM ${table} t WHERE namespace = $1 AND ${where} AND ${inRange} ORDER BY t.key LIMIT $3::bigint`;
    const known = pages.get(text) ?? statement(text, ['key']);
    pages.set(text, known);
    const params: SqlParam[] = [namespace, page.now, page.limit, ...range.params];
    return (await client.run(known, params)).rows.map(({ key }) => JSON.parse(key as string) as string);
  };
}
