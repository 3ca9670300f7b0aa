/** Reads an instant from text: Unix ms, or ISO 8601 with an offset. */

const ISO = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d))?$/;

/** @returns Unix ms; a date without a time is its beginning in UTC. Undefined for any other text, also for a local time */
export function readInstant(text: string): number | undefined {
  const instant = /^-?\d{1,15}$/.test(text) ? Number(text) : ISO.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(instant) ? undefined : instant;
}
