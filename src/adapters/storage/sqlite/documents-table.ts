/** Documents, which change under a version check and may expire. */

import type { DocumentStore } from '../../../engine/ports/storage.ts';
import { toJsonColumn } from '../sql/columns.ts';
import { DOCUMENT_COLUMNS, readDocument } from '../sql/read-document.ts';
import { sweepSometimes } from '../sweep-sometimes.ts';
import { toTextColumn } from './columns.ts';
import type { SqlConnection } from './driver.ts';

/** How many expired documents a write deletes in passing. */
const MAX_SWEPT = 1000;

export function documentsTable(connection: SqlConnection, namespace: string): DocumentStore {
  const columns = DOCUMENT_COLUMNS.join(', ');
  const one = 'namespace = ? AND kind = ? AND name = ?';
  const live = '(expires_at IS NULL OR expires_at > ?)';
  const expired = 'expires_at IS NOT NULL AND expires_at <= ?';
  const select = connection.prepare(`SELECT ${columns} FROM ensemble_documents WHERE ${one} AND ${live}`);
  const selectAll = connection.prepare(`
    SELECT ${columns} FROM ensemble_documents WHERE namespace = ? AND kind = ? AND name > ? AND ${live} ORDER BY name LIMIT ?`);
  const insert = connection.prepare(`
    INSERT INTO ensemble_documents AS d (namespace, kind, ${columns}) VALUES (?, ?, ?, ?, 1, ?, ?, ?)
    ON CONFLICT (namespace, kind, name) DO UPDATE
      SET tag = excluded.tag, version = 1, updated_at = excluded.updated_at, expires_at = excluded.expires_at, value = excluded.value
      WHERE d.expires_at IS NOT NULL AND d.expires_at <= ?`);
  const update = connection.prepare(`
    UPDATE ensemble_documents SET tag = ?, version = version + 1, updated_at = ?, expires_at = ?, value = ?
    WHERE ${one} AND version = ? AND ${live}`);
  const remove = connection.prepare(`DELETE FROM ensemble_documents WHERE ${one} AND version = ? AND ${live}`);
  const sweep = connection.prepare(`
    DELETE FROM ensemble_documents WHERE (namespace, kind, name) IN (
      SELECT namespace, kind, name FROM ensemble_documents WHERE ${expired} LIMIT ${MAX_SWEPT})`);
  const sweepExpired = sweepSometimes(MAX_SWEPT, (now) => sweep.run([now]));

  return {
    read(kind, name, now) {
      const [row] = select.all([namespace, kind, name, now]);
      return row && readDocument(row);
    },
    write(kind, name, { expectedVersion, document, now }) {
      sweepExpired(now);
      const key = [namespace, kind, name];
      if (!document) {
        if (expectedVersion > 0) return remove.run([...key, expectedVersion, now]) > 0;
        return select.all([...key, now]).length === 0;
      }
      const { tag, updatedAt, expiresAt = null, value } = document;
      const about = [updatedAt, expiresAt, toJsonColumn(value)];
      if (expectedVersion === 0) return insert.run([...key, toTextColumn(tag), ...about, now]) > 0;
      return update.run([toTextColumn(tag), ...about, ...key, expectedVersion, now]) > 0;
    },
    list: (kind, { limit, after = '', now }) => selectAll.all([namespace, kind, after, now, limit]).map(readDocument),
  };
}
