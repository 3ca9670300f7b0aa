/** Text in Postgres columns, and lists in the answers of statements. */

import type { SqlRow } from '../drivers/driver.ts';

const QUOTE = 34;
const BYTE_ORDER_MARK = 0xfeff;
/** Control characters, which JSON escapes, and halves of surrogate pairs. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern must find control characters
const SPECIAL = /[\u0000-\u001f\ud800-\udfff]/;

/**
 * The text itself, or a JSON string for text that Postgres can't store, that a driver would alter, or that begins with
 * a quote.
 */
export function toTextColumn(text: string): string {
  const first = text.charCodeAt(0);
  if (first === QUOTE || first === BYTE_ORDER_MARK) return JSON.stringify(text);
  if (!SPECIAL.test(text)) return text;
  const json = JSON.stringify(text);
  return json.length === text.length + 2 ? text : json;
}

/** Reads a list that a statement made with `json_agg`; empty when there were no rows. */
export function readList(row: SqlRow | undefined, column: string): readonly string[] {
  const value = row?.[column];
  return typeof value === 'string' ? (JSON.parse(value) as string[]) : [];
}
