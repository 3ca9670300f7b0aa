/** Reads of servers that never come to an end, or are larger than what is wanted. */

import { OrchestratorError } from '../../engine/base/errors.ts';

/** An object that is larger than its reader takes. */
export function objectTooLarge(maxBytes: number): OrchestratorError {
  const message = `the object is larger than ${maxBytes} bytes, which is all that its reader takes`;
  return new OrchestratorError('INVALID_OUTPUT', message, { details: { reason: 'too-large', limit: maxBytes } });
}

/** How many answers without a key a store takes, one after the other. Then the list fails. */
const MAX_EMPTY_PAGES = 20;

/**
 * Reads a list page by page from a server that says itself whether there is more.
 *
 * @param next - reads the next page: its keys, and where it continues. Without a place, the list is complete
 * @throws OVERLOADED if the server says again and again that there is more, and has no keys or no other place; the signal's reason
 */
export async function readPages<Place>(
  signal: AbortSignal | undefined,
  next: (place: Place | undefined) => Promise<{ readonly found: number; readonly place: Place | undefined }>,
): Promise<void> {
  let place: Place | undefined;
  for (let empty = 0; ; ) {
    signal?.throwIfAborted();
    const page = await next(place);
    if (page.place === undefined) return;
    empty = page.found === 0 || page.place === place ? empty + 1 : 0;
    if (empty > MAX_EMPTY_PAGES) {
      const message = `the server of the store says again and again that there is more to list, and lists nothing; it was asked ${empty} times`;
      throw new OrchestratorError('OVERLOADED', message, { retryable: true });
    }
    place = page.place;
  }
}
