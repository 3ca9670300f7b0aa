/** Pages of the listings that the orchestrator returns whole. */

import { decodeCursor, encodeCursor, pageLimit } from '../../engine/storage/cursor.ts';
import type { HttpCall } from '../call.ts';

const ANY_ID = /^.{1,2100}$/;

/** By their ids, or by what `compare` says: so an entry that is gone still has its place. */
export interface ListOrder<T> {
  idOf(item: T): string;
  compare?(a: string, b: string): number;
}

/** What a call gave for its page. */
interface Asked {
  readonly query: { readonly limit?: number; readonly cursor?: string };
  readonly http: HttpCall;
}

type Page<Key extends string, T> = { readonly [K in Key]: readonly T[] } & { readonly nextCursor?: string };

/**
 * @param key - of the list in the response
 * @param items - in their order
 * @throws INVALID_CURSOR
 */
export function pageOfList<Key extends string, T>(
  { query: { limit, cursor }, http: { params } }: Asked,
  key: Key,
  items: readonly T[],
  { idOf, compare = byId }: ListOrder<T>,
): Page<Key, T> {
  const size = pageLimit(limit);
  const filter = [key, ...Object.values(params)].join(' ');
  const last = cursor === undefined ? undefined : decodeCursor(cursor, filter, ANY_ID);
  const rest = last === undefined ? items : items.filter((item) => compare(idOf(item), last) > 0);
  const page = rest.slice(0, size);
  const end = page.at(-1);
  const next = end !== undefined && rest.length > size ? { nextCursor: encodeCursor(idOf(end), filter) } : {};
  return { [key]: page, ...next } as Page<Key, T>;
}

/** The order of text by its code units, as storages sort ids. */
export function byId(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
