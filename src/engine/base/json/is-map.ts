/** JSON objects, among the other JSON values. */

import type { Json, JsonObject } from './json.ts';

export function isMap(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
