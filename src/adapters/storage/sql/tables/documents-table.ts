/** Documents, which change under a version check and may expire. */

import { andThen } from '../../../../engine/base/maybe-promise.ts';
import type { DocumentStore, StoredDocument } from '../../../../engine/storage/document-store.port.ts';
import { sweepSometimes } from '../../sweep-sometimes.ts';
import { readNumber, readObject, readText, type StoredRow, toJsonColumn } from '../columns.ts';
import type { SqlDialect } from '../dialect.ts';

/** How many expired documents a write deletes in passing. */
const MAX_SWEPT = 100;

const COLUMNS = ['name', 'tag', 'version', 'updated_at', 'expires_at', 'value'];

export function documentsTable(dialect: SqlDialect, namespace: string): DocumentStore {
  const documents = dialect.table('documents');
  const columns = COLUMNS.join(', ');
  const one = 'namespace = $1 AND kind = $2 AND name = $3';
  const live = (now: string) => `(expires_at IS NULL OR expires_at > ${now}::bigint)`;
  const select = dialect.prepare(`SELECT ${columns} FROM ${documents} WHERE ${one} AND ${live('$4')}`, COLUMNS);
  const selectAll = dialect.prepare(
    `SELECT ${columns} FROM ${documents} WHERE namespace = $1 AND kind = $2 AND name > $3 AND ${live('$4')}
    ORDER BY name LIMIT $5::bigint`,
    COLUMNS,
  );
  const insert = dialect.prepare(
    `INSERT INTO ${documents} AS d (namespace, kind, name, version, tag, updated_at, expires_at, value)
    VALUES ($1, $2, $3, 1, $4, $5, $6, $7)
    ON CONFLICT (namespace, kind, name) DO UPDATE
      SET tag = excluded.tag, version = 1, updated_at = excluded.updated_at, expires_at = excluded.expires_at, value = excluded.value
      WHERE d.expires_at IS NOT NULL AND d.expires_at <= $8::bigint`,
  );
  const update = dialect.prepare(
    `UPDATE ${documents} SET tag = $4, version = version + 1, updated_at = $5, expires_at = $6, value = $7
    WHERE ${one} AND version = $8::integer AND ${live('$9')}`,
  );
  const remove = dialect.prepare(`DELETE FROM ${documents} WHERE ${one} AND version = $4::integer AND ${live('$5')}`);
  const sweep = dialect.prepare(
    `WITH old AS MATERIALIZED (
      SELECT namespace, kind, name FROM ${documents} WHERE expires_at IS NOT NULL AND expires_at <= $1::bigint
      LIMIT ${MAX_SWEPT} ${dialect.skipLocked}
    )
    DELETE FROM ${documents} WHERE (namespace, kind, name) IN (SELECT namespace, kind, name FROM old)`,
  );
  const sweepExpired = sweepSometimes(MAX_SWEPT, (now) => sweep.count([now]));
  const isOne = (count: number) => count > 0;

  return {
    read: (kind, name, now) => andThen(select.rows([namespace, kind, name, now]), ([row]) => row && readDocument(row)),
    write(kind, name, { expectedVersion, document, now }) {
      sweepExpired(now);
      const key = [namespace, kind, name];
      if (!document) {
        if (expectedVersion > 0) return andThen(remove.count([...key, expectedVersion, now]), isOne);
        return andThen(select.rows([...key, now]), (rows) => rows.length === 0);
      }
      const { tag, updatedAt, expiresAt = null, value } = document;
      const params = [...key, dialect.text(tag), updatedAt, expiresAt, toJsonColumn(value)];
      if (expectedVersion === 0) return andThen(insert.count([...params, now]), isOne);
      return andThen(update.count([...params, expectedVersion, now]), isOne);
    },
    list: (kind, { limit, after = '', now }) =>
      andThen(selectAll.rows([namespace, kind, after, now, limit]), (rows) => rows.map(readDocument)),
  };
}

/** @throws INTERNAL when a column is damaged */
function readDocument(row: StoredRow): StoredDocument {
  const what = `document ${String(row.name)}`;
  return {
    name: readText(row, 'name', what),
    tag: readText(row, 'tag', what),
    version: readNumber(row, 'version', what),
    updatedAt: readNumber(row, 'updated_at', what),
    ...(row.expires_at !== null && { expiresAt: readNumber(row, 'expires_at', what) }),
    value: readObject(row, 'value', what),
  };
}
