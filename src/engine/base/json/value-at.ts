/** Reads and replaces a value inside another value by its path. */

import type { Json, JsonObject } from './json.ts';

/** The value at a path, read through own keys only; undefined when there is none. */
export function valueAt(root: unknown, path: readonly PropertyKey[]): unknown {
  let value = root;
  for (const part of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[part];
  }
  return value;
}

/** A copy with another value at a path, whose maps and lists all exist. */
export function replaceAt(value: Json, [key, ...rest]: readonly (string | number)[], by: Json): Json {
  if (key === undefined) return by;
  if (Array.isArray(value)) return value.map((item, i) => (i === key ? replaceAt(item, rest, by) : item));
  const map = value as JsonObject;
  return { ...map, [key]: replaceAt(map[key] as Json, rest, by) };
}
