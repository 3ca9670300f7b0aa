/**
 * Writes values to columns of an SQL store and reads them. A damaged column gives an error that names row and column.
 */

import { OrchestratorError } from '../../../engine/base/errors.ts';
import type { Json, JsonObject } from '../../../engine/base/json/json.ts';
import { type CommitEntry, changesOf } from '../../../engine/execution/stored-execution.ts';

/** A row from a driver. A number may be text, and true is `t` or 1. */
export type StoredRow = Readonly<Record<string, unknown>>;

/** The name of a row in error messages: `execution exec_01...`. */
export type RowName = string;

const QUOTE = 34;

/** JSON is safe in every driver, because it escapes NUL and unpaired surrogates. */
export function toJsonColumn(value: Json): string {
  return JSON.stringify(value) ?? 'null';
}

export function toOptionalJsonColumn(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value);
}

/**
 * The column `handover`: what the run that releases an execution leaves; after the end, how long the execution waited, what its
 * models used, the components that it used, and the changes of its definition. NULL for a release without a handover, which keeps the stored one, and for an end without any.
 */
export function toHandoverColumn({ release, end }: Pick<CommitEntry, 'release' | 'end'>): string | null {
  if (end) {
    const { waited, usage, components } = end;
    const changes = changesOf(end);
    if (waited === undefined && usage === undefined && components === undefined && !changes) return null;
    return JSON.stringify({ waited, usage, components, ...changes });
  }
  return toOptionalJsonColumn(release?.handover);
}

/**
 * Reads text that was stored as it is, or as a JSON string, which begins with a quote.
 * @throws INTERNAL when the column is damaged
 */
export function readText(row: StoredRow, column: string, name: RowName): string {
  const value = row[column];
  if (typeof value !== 'string' || value.length > MAX_JSON_CHARACTERS) throw damagedRow(name, column);
  if (value.charCodeAt(0) !== QUOTE) return value;
  const text = parse(value, name, column);
  if (typeof text !== 'string') throw damagedRow(name, column);
  return text;
}

/** @throws INTERNAL when the column is damaged */
export function readJson(row: StoredRow, column: string, name: RowName): Json {
  return parse(row[column], name, column);
}

/** @throws INTERNAL when the column is damaged, or is not an object */
export function readObject(row: StoredRow, column: string, name: RowName): JsonObject {
  const value = readJson(row, column, name);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw damagedRow(name, column);
  return value as JsonObject;
}

/** @throws INTERNAL when the column is not a number */
export function readNumber(row: StoredRow, column: string, name: RowName): number {
  const value = row[column];
  const number = typeof value === 'string' && value !== '' ? Number(value) : value;
  if (typeof number !== 'number' || Number.isNaN(number)) throw damagedRow(name, column);
  return number;
}

export function readBoolean(row: StoredRow, column: string): boolean {
  return row[column] === 't' || row[column] === 1;
}

/** No value that is stored has more: the largest is a state of 32 MiB. */
const MAX_JSON_CHARACTERS = 64 * 1024 * 1024;

function parse(value: unknown, name: RowName, column: string): Json {
  if (typeof value !== 'string' || value.length > MAX_JSON_CHARACTERS) throw damagedRow(name, column);
  try {
    return JSON.parse(value) as Json;
  } catch (cause) {
    throw damagedRow(name, column, cause);
  }
}

export function damagedRow(name: RowName, column: string, cause?: unknown): OrchestratorError {
  const message = `${name}: its stored ${column} can't be read because the row is damaged; restore it from a backup, or delete the row`;
  return new OrchestratorError('INTERNAL', message, { cause, details: { row: name, column } });
}
