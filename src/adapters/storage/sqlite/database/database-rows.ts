/** Rows of SQLite as JSON, page by page or part by part, and values as parameters. */

import { toBase64 } from '../../../../engine/base/bytes/base64.ts';
import { OrchestratorError } from '../../../../engine/base/errors.ts';
import type { Json, JsonObject } from '../../../../engine/base/json/json.ts';
import { VALUE_MARK } from '../../../../engine/storage/sql-text.ts';
import { type CheckedSql, toBound } from '../../sql/sql-rules.ts';
import type { BoundValue, ColumnValue, DatabaseHandle } from './database-handle.ts';

/** A part of a stream ends after this number of rows, or after about this many characters. */
const PART_ROWS = 500;
const PART_CHARACTERS = 1_000_000;
/** The largest value of a column. An output has at most 4 MiB, and a row of an export may have more. */
const MAX_COLUMN_BYTES = 16 * 1024 * 1024;

/** SQLite's placeholder for each value. */
export function withPlaceholders({ text }: CheckedSql): string {
  return text.replaceAll(VALUE_MARK, '?');
}

/** A whole number is a bigint: a driver binds any other number as floating point, for which `7 / 2` is 3.5. */
export function toParams(values: readonly Json[]): readonly BoundValue[] {
  return values.map((value) => {
    const bound = toBound(value);
    if (typeof bound === 'boolean') return bound ? 1n : 0n;
    return typeof bound === 'number' && Number.isSafeInteger(bound) ? BigInt(bound) : bound;
  });
}

export function readPage(
  handle: DatabaseHandle,
  sql: string,
  params: readonly BoundValue[],
  { limit, offset }: { readonly limit: number; readonly offset: number },
): { readonly rows: readonly JsonObject[]; readonly hasMore: boolean } {
  const rows: JsonObject[] = [];
  let passed = 0;
  for (const row of handle.read(sql).rows(params)) {
    passed += 1;
    if (passed <= offset) continue;
    if (rows.length === limit) return { rows, hasMore: true };
    rows.push(toRow(row));
  }
  return { rows, hasMore: false };
}

/** The rows in parts. Each part is read when it is asked for. */
export function* readParts(
  handle: DatabaseHandle,
  sql: string,
  params: readonly BoundValue[],
): Generator<readonly JsonObject[], void> {
  let part: JsonObject[] = [];
  let characters = 0;
  for (const row of handle.read(sql).rows(params)) {
    part.push(toRow(row));
    for (const name in row) characters += sizeOf(row[name]);
    if (part.length < PART_ROWS && characters < PART_CHARACTERS) continue;
    yield part;
    part = [];
    characters = 0;
  }
  if (part.length > 0) yield part;
}

function sizeOf(value: ColumnValue | undefined): number {
  if (typeof value === 'string') return value.length;
  return typeof value === 'object' && value !== null ? value.byteLength : 8;
}

function toRow(values: Readonly<Record<string, ColumnValue>>): JsonObject {
  const row: Record<string, Json> = {};
  for (const name in values) {
    const value = values[name] as ColumnValue;
    // Before it is encoded: that takes seconds, and no output could have it.
    if (sizeOf(value) > MAX_COLUMN_BYTES) throw tooLargeColumn(name, sizeOf(value));
    row[name] = toJson(value);
  }
  return row;
}

function tooLargeColumn(name: string, size: number): OrchestratorError {
  const message = `column ${name} has a value of ${size} characters or bytes, more than ${MAX_COLUMN_BYTES}; select a part of it, such as with substr()`;
  return new OrchestratorError('INVALID_OUTPUT', message);
}

function toJson(value: ColumnValue): Json {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  if (value instanceof ArrayBuffer) return toBase64(new Uint8Array(value));
  return value instanceof Uint8Array ? toBase64(value) : value;
}
