/** JSON Merge Patch (RFC 7396). */

import type { Json, JsonObject } from '../engine/base/json.ts';
import { isMap } from '../engine/json-schema/check-json-schema.ts';

/** @returns a new object; neither argument is changed */
export function mergePatch(target: Json, patch: JsonObject): JsonObject {
  const merged = new Map<string, Json>(isMap(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, isMap(value) ? mergePatch(merged.get(key) ?? null, value) : value);
  }
  return Object.fromEntries(merged);
}
