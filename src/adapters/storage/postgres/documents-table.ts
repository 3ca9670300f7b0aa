/** Documents, which change under a version check and may expire. */

import type { DocumentStore } from '../../../engine/ports/storage.ts';
import { toJsonColumn } from '../sql/columns.ts';
import { DOCUMENT_COLUMNS, readDocument } from '../sql/read-document.ts';
import { sweepSometimes } from '../sweep-sometimes.ts';
import { toTextColumn } from './columns.ts';
import { type SqlClient, statement } from './driver.ts';
import type { Names } from './names.ts';

/** How many expired documents a write deletes in passing. */
const MAX_SWEPT = 1000;

export function documentsTable(client: SqlClient, { documents }: Names, namespace: string): DocumentStore {
  const columns = DOCUMENT_COLUMNS.join(', ');
  const one = 'd.namespace = $1 AND d.kind = $2 AND d.name = $3';
  const live = (now: string) => `(d.expires_at IS NULL OR d.expires_at > ${now}::bigint)`;
  const select = statement(`SELECT ${columns} FROM ${documents} d WHERE ${one} AND ${live('$4')}`, DOCUMENT_COLUMNS);
  const selectAll = statement(
    `SELECT ${columns} FROM ${documents} d WHERE d.namespace = $1 AND d.kind = $2 AND d.name > $3 AND ${live('$4')}
    ORDER BY d.name LIMIT $5::bigint`,
    DOCUMENT_COLUMNS,
  );
  const insert = statement(
    `INSERT INTO ${documents} AS d (namespace, kind, name, version, tag, updated_at, expires_at, value)
    VALUES ($1, $2, $3, 1, $4, $5, $6, $7)
    ON CONFLICT (namespace, kind, name) DO UPDATE
      SET tag = excluded.tag, version = 1, updated_at = excluded.updated_at, expires_at = excluded.expires_at, value = excluded.value
      WHERE NOT ${live('$8')}`,
  );
  const update = statement(
    `UPDATE ${documents} d SET tag = $4, version = d.version + 1, updated_at = $5, expires_at = $6, value = $7
    WHERE ${one} AND d.version = $8::integer AND ${live('$9')}`,
  );
  const remove = statement(`DELETE FROM ${documents} d WHERE ${one} AND d.version = $4::integer AND ${live('$5')}`);
  const sweep = statement(
    `DELETE FROM ${documents} WHERE (namespace, kind, name) IN (
      SELECT namespace, kind, name FROM ${documents} WHERE expires_at <= $1::bigint
      LIMIT ${MAX_SWEPT} FOR UPDATE SKIP LOCKED)`,
  );
  const sweepExpired = sweepSometimes(MAX_SWEPT, async (now) => (await client.run(sweep, [now])).count);

  return {
    async read(kind, name, now) {
      const [row] = (await client.run(select, [namespace, kind, name, now])).rows;
      return row && readDocument(row);
    },
    async write(kind, name, { expectedVersion, document, now }) {
      sweepExpired(now);
      const key = [namespace, kind, name];
      if (!document) {
        if (expectedVersion > 0) return (await client.run(remove, [...key, expectedVersion, now])).count > 0;
        return (await client.run(select, [...key, now])).rows.length === 0;
      }
      const { tag, updatedAt, expiresAt = null, value } = document;
      const params = [...key, toTextColumn(tag), updatedAt, expiresAt, toJsonColumn(value)];
      if (expectedVersion === 0) return (await client.run(insert, [...params, now])).count > 0;
      return (await client.run(update, [...params, expectedVersion, now])).count > 0;
    },
    list: async (kind, { limit, after = '', now }) =>
      (await client.run(selectAll, [namespace, kind, after, now, limit])).rows.map(readDocument),
  };
}
