/** Builds documents from their rows in an SQL store. */

import type { StoredDocument } from '../../../engine/ports/document-store.ts';
import { readNumber, readObject, readText, type StoredRow } from './columns.ts';

export const DOCUMENT_COLUMNS = ['name', 'tag', 'version', 'updated_at', 'expires_at', 'value'];

/** @throws INTERNAL when a column is damaged */
export function readDocument(row: StoredRow): StoredDocument {
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
