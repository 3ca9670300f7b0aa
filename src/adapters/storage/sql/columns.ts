/** How values stand in the columns of a SQL store, and how they are read: what is damaged says so, by row and column. */

import { OrchestratorError } from '../../../engine/errors.ts';
import type { Json, JsonObject } from '../../../engine/json.ts';

/** A row as a driver gives it. Numbers may come as their text, and truth as `t` or 1. */
export type StoredRow = Readonly<Record<string, unknown>>;

/** The row that is read, in words: `execution exec_01...`. */
export type RowName = string;

const QUOTE = 34;

/** Safe in any driver: JSON writes NUL and halves of surrogate pairs as escapes. */
export function toJsonColumn(value: Json): string {
  return JSON.stringify(value) ?? 'null';
}

export function toOptionalJsonColumn(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value);
}

/** Text that was stored as it is, or as a JSON string, which begins with a quote. @throws INTERNAL when the column is damaged */
export function readText(row: StoredRow, column: string, name: RowName): string {
  const value = row[column];
  if (typeof value !== 'string') throw damaged(name, column);
  if (value.charCodeAt(0) !== QUOTE) return value;
  const text = parse(value, name, column);
  if (typeof text !== 'string') throw damaged(name, column);
  return text;
}

/** @throws INTERNAL when the column is damaged */
export function readJson(row: StoredRow, column: string, name: RowName): Json {
  return parse(row[column], name, column);
}

/** @throws INTERNAL when the column is damaged, or holds no object */
export function readObject(row: StoredRow, column: string, name: RowName): JsonObject {
  const value = readJson(row, column, name);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw damaged(name, column);
  return value as JsonObject;
}

/** @throws INTERNAL when there is no number in the column */
export function readNumber(row: StoredRow, column: string, name: RowName): number {
  const value = row[column];
  const number = typeof value === 'string' && value !== '' ? Number(value) : value;
  if (typeof number !== 'number' || Number.isNaN(number)) throw damaged(name, column);
  return number;
}

export function readBoolean(row: StoredRow, column: string): boolean {
  return row[column] === 't' || row[column] === 1;
}

function parse(value: unknown, name: RowName, column: string): Json {
  if (typeof value !== 'string') throw damaged(name, column);
  try {
    return JSON.parse(value) as Json;
  } catch (cause) {
    throw damaged(name, column, cause);
  }
}

export function damaged(name: RowName, column: string, cause?: unknown): OrchestratorError {
  const message = `${name}: its stored ${column} can't be read, the row is damaged; restore it from a backup, or delete the row`;
  return new OrchestratorError('INTERNAL', message, { cause, details: { row: name, column } });
}
