/** Page cursors of listings: opaque text that holds where the page ended and for which filter. */

import { OrchestratorError } from '../errors.ts';

/** Largest page; a larger `limit` is taken as this. */
export const MAX_PAGE = 250;
export const DEFAULT_PAGE = 100;

/** @param filter - the filter of the listing, as text; a cursor is good for that one only */
export function encodeCursor(last: string, filter: string): string {
  return btoa(encodeURIComponent(JSON.stringify([last, filter])));
}

/**
 * @param form - what the listing's pages end with: nothing else gets as far as a store
 * @throws INVALID_CURSOR for anything that {@link encodeCursor} did not make for this filter
 */
export function decodeCursor(cursor: string, filter: string, form: RegExp): string {
  try {
    const [last, madeFor] = JSON.parse(decodeURIComponent(atob(cursor))) as unknown[];
    if (typeof last === 'string' && madeFor === filter && form.test(last)) return last;
  } catch {
    // Whatever it is, it is no cursor of ours.
  }
  throw new OrchestratorError('INVALID_CURSOR', 'the cursor is not of this listing; begin again without one');
}

/** @throws INVALID_REQUEST when it is no whole number of at least 1 */
export function pageLimit(limit: number | undefined): number {
  if (limit === undefined) return DEFAULT_PAGE;
  if (!Number.isSafeInteger(limit) || limit < 1) {
    throw new OrchestratorError('INVALID_REQUEST', `limit must be a whole number of at least 1, not ${limit}`);
  }
  return Math.min(limit, MAX_PAGE);
}

/** A place in what is counted from the first on: how many there are up to it. */
export const POSITION = /^\d{1,9}$/;

/** @returns the place behind which events are wanted. @throws INVALID_REQUEST for what is no id of an event */
export function readEventId(after: string | undefined): number {
  if (after === undefined) return 0;
  if (POSITION.test(after)) return Number(after);
  throw new OrchestratorError('INVALID_REQUEST', 'an event id is a whole number, as the stream gave it');
}
