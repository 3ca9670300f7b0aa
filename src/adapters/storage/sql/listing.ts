/** How an SQL store answers a listing: it walks the entries of one index from one end, and filters them by the rest of the query. */

import { MAX_MATCHES } from '../../../engine/execution/execution.ts';
import { tooManyMatches } from '../../../engine/execution/execution-record.ts';
import type { ExecutionQuery } from '../../../engine/storage/storage.port.ts';
import { firstAfter } from './tables/key-range.ts';

/** The filters that an index answers. `created` is the index of all executions. */
export type Walk = 'search' | 'parentId' | 'tag' | 'status' | 'ensemble' | 'error' | 'unresolved' | 'created';

/** The part of a query that bounds every walk. */
type Bounds = { readonly [K in 'before' | 'since' | 'until' | 'order']?: ExecutionQuery[K] | undefined };

/** How many entries of an index are counted to compare two filters. */
export const MAX_COUNTED = 1000;
/** Greater than every id and every tag. */
const AFTER_ALL_TEXTS = '\u{10FFFF}';

/**
 * The walks that answer a query, one of which is enough. `completed` alone has no index: most executions are completed.
 * One index answers an ensemble together with a status. An execution has at most 1,000 descendants, so no other filter
 * than `parentId` needs to be compared with. An execution with an error has ended badly, so the index by error is at most as long as that
 * by status; so is that of unresolved executions.
 */
export function walksOf({
  search,
  parentId,
  tag,
  status,
  ensemble,
  errorCode,
  unresolved,
}: ExecutionQuery): readonly [Walk, ...Walk[]] {
  if (search !== undefined) return ['search'];
  if (parentId !== undefined) return ['parentId'];
  const walks: Walk[] = [];
  if (tag !== undefined) walks.push('tag');
  if (ensemble !== undefined) walks.push('ensemble');
  if (errorCode !== undefined) walks.push('error');
  if (unresolved) walks.push('unresolved');
  else if (errorCode === undefined && ensemble === undefined && status !== undefined && status !== 'completed')
    walks.push('status');
  const [first = 'created', ...others] = walks;
  return [first, ...others];
}

/** How a walk goes: the comparison that finds what follows a position, the one that an instant ends, and the order. */
interface Direction {
  readonly follows: '<' | '>';
  readonly until: '>=' | '<';
  readonly sorts: 'DESC' | 'ASC';
}

const NEWEST: Direction = { follows: '<', until: '>=', sorts: 'DESC' };
const OLDEST: Direction = { follows: '>', until: '<', sorts: 'ASC' };

function directionOf({ order }: Bounds): Direction {
  return order === 'oldest' ? OLDEST : NEWEST;
}

/** The order of a listing, as SQL writes it. */
export function sortsOf(query: Bounds): Direction['sorts'] {
  return directionOf(query).sorts;
}

export interface WalkBounds<Extreme> extends Direction {
  /** The walk begins after this position. */
  readonly createdAt: number | Extreme;
  readonly id: string;
  /** The instant that ends the walk. */
  readonly end: number | Extreme;
}

/**
 * Where a walk begins: after `before`, or at one of the two instants. It ends at the other one.
 * @param least - before all instants
 * @param greatest - after all instants
 */
export function boundsOf<Extreme>(query: Bounds, least: Extreme, greatest: Extreme): WalkBounds<Extreme> {
  const { before, since, until } = query;
  const direction = directionOf(query);
  const isOldest = direction === OLDEST;
  const [from, to] = [since ?? least, until ?? greatest];
  const [start, end] = isOldest ? [from, to] : [to, from];
  const isBegun =
    before && (typeof start !== 'number' || (isOldest ? before.createdAt >= start : before.createdAt < start));
  // No id is before the empty one, so this position is between an instant and those before it.
  const { createdAt, id } = isBegun ? before : { createdAt: start, id: '' };
  return { ...direction, createdAt, id, end };
}

/** The texts that begin with a prefix: from the first one to the one after the last. */
export function textRange(prefix: string): readonly [from: string, to: string] {
  return [prefix, firstAfter(prefix) ?? AFTER_ALL_TEXTS];
}

/** @param counts - of ids and of tags that begin with the text. @throws INVALID_REQUEST */
export function refuseManyMatches(search: string, ...counts: readonly number[]): void {
  if (counts.some((count) => count > MAX_MATCHES)) throw tooManyMatches(search);
}
