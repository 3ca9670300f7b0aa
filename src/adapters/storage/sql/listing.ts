/** How an SQL store answers a listing: it walks the entries of one index from the newest on, and filters them by the rest of the query. */

import { MAX_MATCHES } from '../../../engine/model/execution.ts';
import { tooManyMatches } from '../../../engine/model/execution-record.ts';
import type { ExecutionPosition, ExecutionQuery } from '../../../engine/ports/storage.ts';
import { firstAfter } from './tables/key-range.ts';

/** The filters that an index answers. `created` is the index of all executions. */
export type Walk = 'search' | 'parentId' | 'tag' | 'status' | 'ensemble' | 'created';

/** The part of a query that bounds every walk. */
type Bounds = { readonly [K in 'before' | 'since' | 'until']?: ExecutionQuery[K] | undefined };

/** How many entries of an index are counted to compare two filters. */
export const MAX_COUNTED = 1000;
/** Greater than every id and every tag. */
const AFTER_ALL_TEXTS = '\u{10FFFF}';

/**
 * The walks that answer a query, one of which is enough. `completed` alone has no index: most executions are completed.
 * One index answers an ensemble together with a status. An execution has at most 1,000 descendants, so no other filter
 * than `parentId` needs to be compared with.
 */
export function walksOf({ search, parentId, tag, status, ensemble }: ExecutionQuery): readonly [Walk, ...Walk[]] {
  if (search !== undefined) return ['search'];
  if (parentId !== undefined) return ['parentId'];
  const walks: Walk[] = [];
  if (tag !== undefined) walks.push('tag');
  if (ensemble !== undefined) walks.push('ensemble');
  else if (status !== undefined && status !== 'completed') walks.push('status');
  const [first = 'created', ...others] = walks;
  return [first, ...others];
}

/** Where the walk begins: after this position, or with the newest execution. Where it ends: at `since`. */
export function boundsOf({ before, since, until }: Bounds): Partial<ExecutionPosition> & { readonly since: number } {
  // No id is before the empty one, so this position is just after all executions of earlier instants.
  const end = until === undefined ? undefined : { createdAt: until, id: '' };
  const start = before && !(end && end.createdAt <= before.createdAt) ? before : end;
  return { ...(start && { createdAt: start.createdAt, id: start.id }), since: since ?? Number.MIN_SAFE_INTEGER };
}

/** The texts that begin with a prefix: from the first one to the one after the last. */
export function textRange(prefix: string): readonly [from: string, to: string] {
  return [prefix, firstAfter(prefix) ?? AFTER_ALL_TEXTS];
}

/** @param counts - of ids and of tags that begin with the text. @throws INVALID_REQUEST */
export function refuseManyMatches(search: string, ...counts: readonly number[]): void {
  if (counts.some((count) => count > MAX_MATCHES)) throw tooManyMatches(search);
}
