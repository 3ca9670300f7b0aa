/**
 * Page cursors of listings: opaque text with the last entry of the page, the filter of the listing, and a check of both. A cursor gives no right: it
 * only says where a page begins, so its check needs no secret.
 */

import { hashText } from '../base/bytes/hash.ts';
import { OrchestratorError } from '../base/errors.ts';
import { MAX_PAGE } from '../base/read-pages.ts';

export const DEFAULT_PAGE = 100;
const CHECK_LENGTH = 12;

/** @param filter - the filter of the listing, as text. The cursor is valid for this filter only */
export function encodeCursor(last: string, filter: string): string {
  const check = hashText(`${last}\n${filter}`).slice(0, CHECK_LENGTH);
  return btoa(encodeURIComponent(JSON.stringify([last, filter, check])));
}

/**
 * @param form - the form of an entry's id in the listing. Only an id of this form reaches the storage
 * @throws INVALID_CURSOR for anything that {@link encodeCursor} did not make for this filter
 */
export function decodeCursor(cursor: string, filter: string, form: RegExp): string {
  try {
    const [last, madeFor] = JSON.parse(decodeURIComponent(atob(cursor))) as unknown[];
    const isOwn = typeof last === 'string' && madeFor === filter && form.test(last);
    // The same text again: no character of it was changed.
    if (isOwn && encodeCursor(last, filter) === cursor) return last;
  } catch {
    // Not text that `encodeCursor` made.
  }
  throw new OrchestratorError('INVALID_CURSOR', 'the cursor is not of this listing; begin again without one');
}

/** @throws INVALID_REQUEST unless it is a whole number of at least 1 */
export function pageLimit(limit: number | undefined): number {
  if (limit === undefined) return DEFAULT_PAGE;
  if (!Number.isSafeInteger(limit) || limit < 1) {
    throw new OrchestratorError('INVALID_REQUEST', `limit must be a whole number of at least 1, not ${limit}`);
  }
  return Math.min(limit, MAX_PAGE);
}

/** The form of a position: how many entries there are up to it. */
export const POSITION = /^\d{1,9}$/;

/** @returns the position after which events are wanted. @throws INVALID_REQUEST for text that is not the id of an event */
export function readEventId(after: string | undefined): number {
  if (after === undefined) return 0;
  if (POSITION.test(after)) return Number(after);
  throw new OrchestratorError('INVALID_REQUEST', 'an event id is a whole number, as the stream gave it');
}
