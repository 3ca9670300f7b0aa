/** Rows of any Postgres query as JSON, by the types of their columns. */

import { toBase64 } from '../../../../engine/base/bytes/base64.ts';
import { OrchestratorError } from '../../../../engine/base/errors.ts';
import type { Json, JsonObject } from '../../../../engine/base/json/json.ts';
import type { SqlTable } from '../drivers/driver.ts';

/** Reads the text that Postgres writes for a value of a type. Texts of all other types stay text. */
const READERS: Readonly<Record<number, (text: string) => Json>> = {
  16: (text) => text === 't',
  17: (text) => toBase64(fromHex(text.slice(2))),
  20: readWhole,
  21: Number,
  23: Number,
  26: Number,
  114: readJson,
  700: readFloat,
  701: readFloat,
  1114: (text) => text.replace(' ', 'T'),
  1184: readInstant,
  3802: readJson,
};

/** @throws INVALID_INPUT for two columns with the same name, of which a row would lose one */
export function toRows({ columns, rows }: SqlTable): readonly JsonObject[] {
  const names = columns.map(({ name }) => name);
  const bad = names.find((name, i) => name === '__proto__' || names.indexOf(name) !== i);
  if (bad !== undefined) {
    const message = `SQL: two columns are named ${bad}, or the name is not possible; name one of them with AS`;
    throw new OrchestratorError('INVALID_INPUT', message);
  }
  const readers = columns.map(({ type }) => READERS[type]);
  return rows.map((values) => {
    const row: Record<string, Json> = {};
    for (const [i, text] of values.entries())
      row[names[i] as string] = text === null ? null : (readers[i]?.(text) ?? text);
    return row;
  });
}

function fromHex(hex: string): Uint8Array {
  const bytes = new Uint8Array(hex.length / 2);
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}

function readWhole(text: string): Json {
  return Number.isSafeInteger(Number(text)) ? Number(text) : text;
}

function readFloat(text: string): Json {
  return Number.isFinite(Number(text)) ? Number(text) : text;
}

// No loop around a whole text: a long one would exceed the stack of the regular expression.
const QUOTE_OR_NUMBER = /\\.|"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** A whole number beyond 2^53 is text, as in a column of its own. */
function readJson(text: string): Json {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  const isLarge = (part: string) => /^-?\d+$/.test(part) && !Number.isSafeInteger(Number(part));
  let inText = false;
  const exact = text.replace(QUOTE_OR_NUMBER, (part) => {
    if (part === '"') inText = !inText;
    return !inText && isLarge(part) ? `"${part}"` : part;
  });
  return JSON.parse(exact);
}

const INSTANT = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(\.\d+)?([+-]\d\d)(?::?(\d\d))?$/;

/** An instant in UTC with its microseconds. Those that ISO 8601 has no text for, such as `infinity`, stay as they are. */
function readInstant(text: string): Json {
  const [, day, time, fraction = '.', hours, minutes = '00'] = INSTANT.exec(text) ?? [];
  if (day === undefined) return text;
  const seconds = new Date(`${day}T${time}${hours}:${minutes}`).toISOString().slice(0, 19);
  return `${seconds}${fraction.padEnd(4, '0')}Z`;
}
