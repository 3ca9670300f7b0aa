/** Cursors of pages: where the next page begins, bound to what is listed. */

import { fromBase64, toBase64 } from '../../engine/base/bytes/base64.ts';
import { OrchestratorError } from '../../engine/base/errors.ts';
import type { Json } from '../../engine/base/json/json.ts';

/** @param of - what is listed: a statement with its values, or a store with its prefix */
export function toCursor(position: string | number, of: Json): string {
  return toBase64(new TextEncoder().encode(JSON.stringify([hash(of), position])));
}

/** @throws INVALID_INPUT for a cursor that was not given for the same list */
export function readCursor<T extends string | number>(cursor: string, of: Json, kind: 'string' | 'number'): T {
  try {
    const [bound, position] = JSON.parse(new TextDecoder().decode(fromBase64(cursor)));
    const isPosition =
      kind === 'string' ? typeof position === 'string' : Number.isSafeInteger(position) && position >= 0;
    if (bound === hash(of) && isPosition) return position;
  } catch {
    // It is not a cursor.
  }
  const message = 'storage: `cursor` must be the `nextCursor` of a page of the same list, with the same values';
  throw new OrchestratorError('INVALID_INPUT', message);
}

/** FNV-1a. A cursor protects nothing: a caller that may read the next page may read every page. */
function hash(of: Json): number {
  let value = 0x811c9dc5;
  for (const character of JSON.stringify(of))
    value = Math.imul(value ^ (character.codePointAt(0) as number), 0x01000193);
  return value >>> 0;
}
