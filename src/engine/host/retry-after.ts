/** What the answer of an HTTP server says about a repeated call. */

const MAX_RETRY_AFTER_MS = 24 * 60 * 60 * 1000;

/** Whether the same call may succeed later: 408, 425, 429 and 5xx. */
export function isRetryableStatus(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || status >= 500;
}

/** `retryAfterMs` for the details of a failure. A date in `Retry-After` counts from the date of the answer itself. */
export function retryAfterOf(headers: Readonly<Record<string, string>>): { readonly retryAfterMs?: number } {
  const retryAfterMs = parseRetryAfter(headers['retry-after'], Date.parse(headers.date ?? ''));
  return retryAfterMs === undefined ? {} : { retryAfterMs };
}

/**
 * The wait that a `Retry-After` header asks for, in ms from 0 to 24 h. Undefined if the header can't be read.
 *
 * @param value - whole seconds or an HTTP date
 * @param now - Unix ms
 */
export function parseRetryAfter(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  const text = value.trim();
  const date = /^[A-Za-z]{3,9},? .{10,40}$/.test(text) ? Date.parse(text) : Number.NaN;
  const ms = /^\d{1,15}$/.test(text) ? Number(text) * 1000 : date - now;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS);
}
