/** How text goes into Postgres' columns, and how the lists of its statements are read. */

import type { SqlRow } from './sql-client.ts';

const QUOTE = 34;
const BYTE_ORDER_MARK = 0xfeff;
/** What JSON escapes, and halves of surrogate pairs, alone or not. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const ODD = /[\u0000-\u001f\ud800-\udfff]/;

/** Text as it is; what Postgres can't hold or a driver would alter, and what begins with a quote, as a JSON string. */
export function toText(text: string): string {
  const first = text.charCodeAt(0);
  if (first === QUOTE || first === BYTE_ORDER_MARK) return JSON.stringify(text);
  if (!ODD.test(text)) return text;
  const json = JSON.stringify(text);
  return json.length === text.length + 2 ? text : json;
}

/** A list that a statement put together with `json_agg`; none when it had no rows. */
export function readList(row: SqlRow | undefined, column: string): readonly string[] {
  const value = row?.[column];
  return typeof value === 'string' ? (JSON.parse(value) as string[]) : [];
}
