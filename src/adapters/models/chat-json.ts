/** Reads the JSON of a model server. */

import { isMap } from '../../engine/base/json/is-map.ts';
import { copyJson, type Json, type JsonObject } from '../../engine/base/json/json.ts';
import { nestsTooDeep } from '../../engine/base/json/json-text.ts';

/** The text of a message: text, or a list of parts with text. */
export function textOf(content: Json | undefined): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  const parts = (content as readonly Json[]).map((part) => (isMap(part) ? part.text : undefined));
  return parts.filter((text) => typeof text === 'string').join('');
}

/** The first entry of a list, if it is a map. */
export function firstOf(list: Json | undefined): JsonObject | undefined {
  const first = Array.isArray(list) ? (list as readonly Json[])[0] : undefined;
  return isMap(first) ? first : undefined;
}

/** @returns undefined for text that is not JSON, nests too deep, or has a key that is never allowed */
export function parseJson(text: string): Json | undefined {
  if (nestsTooDeep(text)) return undefined;
  try {
    return copyJson(JSON.parse(text), Number.POSITIVE_INFINITY);
  } catch {
    return undefined;
  }
}
