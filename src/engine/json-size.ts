/** What JSON values count, without copying them. */

import { CONTAINER_BYTES, ENTRY_BYTES, type Json, type JsonObject } from './json.ts';

/** What a JSON value counts, as `copySized` counts it; nothing is checked. */
export function sizeOfJson(value: Json): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  let bytes = CONTAINER_BYTES;
  if (Array.isArray(value)) {
    bytes += value.length * ENTRY_BYTES;
    for (let i = 0; i < value.length; i++) bytes += sizeOfJson(value[i] as Json);
    return bytes;
  }
  // Values of ours inherit nothing; a list of their keys would cost more than the counting.
  for (const key in value) {
    bytes += key.length + ENTRY_BYTES + sizeOfJson((value as JsonObject)[key] as Json);
  }
  return bytes;
}
