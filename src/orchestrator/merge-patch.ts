/** JSON Merge Patch (RFC 7396). */

import type { Json, JsonObject } from '../engine/base/json.ts';

/** @returns a new object; neither argument is changed */
export function mergePatch(target: Json, patch: JsonObject): JsonObject {
  const merged = new Map<string, Json>(isObject(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, isObject(value) ? mergePatch(merged.get(key) ?? null, value) : value);
  }
  return Object.fromEntries(merged);
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
