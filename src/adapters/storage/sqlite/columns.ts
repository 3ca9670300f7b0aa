/** How values stand in columns: JSON as text, and text that no driver can cut or alter. */

import { OrchestratorError } from '../../../engine/errors.ts';
import type { Json, JsonObject } from '../../../engine/json.ts';
import type { SqlRow, SqlValue } from './connection.ts';

/** The row that is read, in words: `execution exec_01...`. */
export type RowName = string;

/** Safe in any driver: JSON writes NUL and halves of surrogate pairs as escapes. */
export function toJsonColumn(value: Json): string {
  return JSON.stringify(value) ?? 'null';
}

export function toOptionalJsonColumn(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value);
}

// Drivers cut text at a NUL, and replace half a surrogate pair.
const LONE_SURROGATE = /\p{Surrogate}/u;

export function isPlainText(text: string): boolean {
  return !text.includes('\u0000') && !LONE_SURROGATE.test(text);
}

/** Text as it is; what a driver would alter, and what begins with a quote, as a JSON string: no two texts become one. */
export function toTextColumn(text: string): string {
  return text.charCodeAt(0) !== QUOTE && isPlainText(text) ? text : JSON.stringify(text);
}

const QUOTE = 34;

/** @throws INTERNAL when the column is damaged */
export function readText(row: SqlRow, column: string, name: RowName): string {
  const value = row[column];
  if (typeof value !== 'string') throw damaged(name, column);
  if (value.charCodeAt(0) !== QUOTE) return value;
  const text = parse(value, name, column);
  if (typeof text !== 'string') throw damaged(name, column);
  return text;
}

/** @throws INTERNAL when the column is damaged */
export function readJson(row: SqlRow, column: string, name: RowName): Json {
  return parse(row[column], name, column);
}

/** @throws INTERNAL when the column is damaged, or holds no object */
export function readObject(row: SqlRow, column: string, name: RowName): JsonObject {
  const value = readJson(row, column, name);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw damaged(name, column);
  return value as JsonObject;
}

/** @throws INTERNAL when the column is damaged */
export function readNumber(row: SqlRow, column: string, name: RowName): number {
  const value = row[column];
  if (typeof value !== 'number') throw damaged(name, column);
  return value;
}

function parse(value: SqlValue | undefined, name: RowName, column: string): Json {
  if (typeof value !== 'string') throw damaged(name, column);
  try {
    return JSON.parse(value) as Json;
  } catch (cause) {
    throw damaged(name, column, cause);
  }
}

export function damaged(name: RowName, column: string, cause?: unknown): OrchestratorError {
  const message = `${name}: its stored ${column} can't be read, the row is damaged; restore the SQLite file from a backup, or delete the row`;
  return new OrchestratorError('INTERNAL', message, { cause, details: { row: name, column } });
}
