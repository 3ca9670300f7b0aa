/** Rows as text in the formats of an export: JSON, lines of JSON, CSV. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import { toCsvLine } from './csv.ts';

export type RowFormat = 'json' | 'csv' | 'ndjson';

export const CONTENT_TYPES: Readonly<Record<RowFormat, string>> = {
  json: 'application/json',
  csv: 'text/csv; charset=utf-8',
  ndjson: 'application/x-ndjson',
};

export interface RowOptions {
  readonly format: RowFormat;
  /** For CSV: whether the first line has the names of the columns. Default true. */
  readonly headers?: boolean | undefined;
  /** Only these columns, in this order. Default: those of the first row. */
  readonly fields?: readonly string[] | undefined;
  /** The columns of every row, if they are known before the first one. */
  readonly columns?: readonly string[] | undefined;
}

/** Turns rows into text, part by part. */
export interface RowWriter {
  /** The row with the columns that are exported. @throws INVALID_INPUT for a field that the first row lacks */
  pick(row: JsonObject): JsonObject;
  /** @param row - a result of `pick` */
  write(row: JsonObject): string;
  /** What follows the last row. */
  end(): string;
}

export function createRowWriter({ format, headers = true, fields, columns: known }: RowOptions): RowWriter {
  let columns = fields ?? known;
  let count = 0;
  const header = () => (format === 'csv' && headers && columns ? toCsvLine(columns) : '');
  return {
    pick(row) {
      if (!fields) return row;
      const missing = fields.find((field) => count === 0 && !Object.hasOwn(row, field));
      if (missing !== undefined) {
        const known = Object.keys(row).join(', ');
        throw new OrchestratorError(
          'INVALID_INPUT',
          `storage: there is no column ${missing}; the columns are ${known}`,
        );
      }
      return Object.fromEntries(fields.map((field) => [field, own(row, field)]));
    },
    write(row) {
      const isFirst = count === 0;
      count += 1;
      if (format === 'ndjson') return `${JSON.stringify(row)}\n`;
      if (format === 'json') return `${isFirst ? '[\n' : ',\n'}${JSON.stringify(row)}`;
      columns ??= Object.keys(row);
      const line = toCsvLine(columns.map((column) => own(row, column)));
      return isFirst ? header() + line : line;
    },
    end() {
      if (format === 'json') return count === 0 ? '[]\n' : '\n]\n';
      return count === 0 ? header() : '';
    },
  };
}

function own(row: JsonObject, field: string): Json {
  return Object.hasOwn(row, field) ? (row[field] as Json) : null;
}

/** A list of rows as one text. In CSV, every column of any row is there. @throws INVALID_INPUT if the value is not a list of rows */
export function rowsToText(value: Json, format: 'csv' | 'ndjson'): string {
  if (!Array.isArray(value))
    throw new OrchestratorError('INVALID_INPUT', `storage: \`value\` must be a list for \`format: ${format}\``);
  if (format === 'ndjson') return value.map((row) => `${JSON.stringify(row)}\n`).join('');
  const rows: readonly JsonObject[] = value;
  if (!rows.every((row) => typeof row === 'object' && row !== null && !Array.isArray(row)))
    throw new OrchestratorError('INVALID_INPUT', 'storage: `value` must be a list of objects for `format: csv`');
  const writer = createRowWriter({ format, fields: [...new Set(rows.flatMap((row) => Object.keys(row)))] });
  return rows.map((row) => writer.write(row)).join('') + writer.end();
}
