/** Pages of the listings that the orchestrator returns whole. */

import { decodeCursor, encodeCursor, pageLimit } from '../engine/model/cursor.ts';
import type { HttpCall } from './call.ts';
import { readLimit, readQuery } from './read-query.ts';
import type { Reply } from './reply.ts';

const ANY_ID = /^.{1,2100}$/;

/** By their ids, or by what `compare` says: so an entry that is gone still has its place. */
export interface ListOrder<T> {
  idOf(item: T): string;
  compare?(a: string, b: string): number;
}

/**
 * @param key - of the list in the response
 * @param items - in their order
 * @throws INVALID_REQUEST; INVALID_CURSOR
 */
export function pageOfList<T>(
  { request, params }: HttpCall,
  key: string,
  items: readonly T[],
  { idOf, compare = byId }: ListOrder<T>,
): Reply {
  const { limit, cursor } = readQuery(request.query, ['limit', 'cursor']);
  const size = pageLimit(readLimit(limit));
  const filter = [key, ...Object.values(params)].join(' ');
  const last = cursor === undefined ? undefined : decodeCursor(cursor, filter, ANY_ID);
  const rest = last === undefined ? items : items.filter((item) => compare(idOf(item), last) > 0);
  const page = rest.slice(0, size);
  const end = page.at(-1);
  const next = end !== undefined && rest.length > size ? { nextCursor: encodeCursor(idOf(end), filter) } : {};
  return { status: 200, json: { [key]: page, ...next } };
}

/** The order of text by its code units, as storages sort ids. */
export function byId(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
