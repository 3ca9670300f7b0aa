/** One field of the form of a signal: how it is asked for, and its value. */

import type { Json, JsonObject } from '../base/json/json.ts';

/** The types of the fields that a form has an input of its own for. */
export const PLAIN_TYPES: readonly (Json | undefined)[] = ['string', 'number', 'integer', 'boolean'];

/** Whether a form has an input of its own for a field. Any other field is asked for as JSON. */
export function isAskedPlainly({ type, enum: allowed }: JsonObject): boolean {
  return Array.isArray(allowed) || PLAIN_TYPES.includes(type);
}

/**
 * The value of a field; undefined for one that is left empty. A text that can't be read as its type stays text, which the schema refuses.
 *
 * @param text - as a form sends it: a box that is not checked is not there
 */
export function readField(field: JsonObject, text: string | undefined): Json | undefined {
  const { type, enum: allowed } = field;
  if (type === 'boolean') return text !== undefined && text !== 'false';
  if (text === undefined || text === '') return undefined;
  if (Array.isArray(allowed)) return (allowed as readonly Json[]).find((one) => String(one) === text) ?? text;
  if (!isAskedPlainly(field)) return parseJson(text);
  if (type === 'string') return text;
  // As people write numbers: not in hexadecimal, and without an exponent.
  return /^[+-]?(\d+\.?\d*|\.\d+)$/.test(text.trim()) ? Number(text) : text;
}

function parseJson(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}
