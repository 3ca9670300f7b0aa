/** Reads a request's query: known parameters only, each at most once. */

import { OrchestratorError } from '../engine/base/errors.ts';
import { readInstant } from '../engine/base/read-instant.ts';
import { suggestName } from '../engine/base/suggest-name.ts';

/** @throws INVALID_REQUEST for a parameter that is unknown, occurs twice, or is empty */
export function readQuery<K extends string>(query: string, known: readonly K[]): { readonly [P in K]?: string } {
  const values: { [P in K]?: string } = {};
  if (query === '') return values;
  for (const [name, value] of new URLSearchParams(query)) {
    const key = known.find((one) => one === name);
    if (key === undefined) {
      const near = suggestName(name, known);
      throw wrong(`the query parameter ${quote(name)} is not known${near ? `; did you mean \`${near}\`?` : ''}`);
    }
    if (Object.hasOwn(values, key)) throw wrong(`the query parameter \`${key}\` must occur only once`);
    if (value === '') throw wrong(`the query parameter \`${key}\` is empty; leave it out`);
    values[key] = value;
  }
  return values;
}

/** A page size: a whole number of at least 1. A larger number than the largest page means the largest page. @throws INVALID_REQUEST */
export function readLimit(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const limit = /^\d{1,15}$/.test(text) ? Number(text) : 0;
  if (limit < 1) throw wrong(`\`limit\` must be a whole number of at least 1, not ${quote(text)}`);
  // Every page is smaller than this, so a larger number need not be exact.
  return Math.min(limit, Number.MAX_SAFE_INTEGER);
}

/** A whole number. @throws INVALID_REQUEST */
export function readCount(text: string | undefined, name: string): number | undefined {
  if (text === undefined || /^\d{1,15}$/.test(text)) return text === undefined ? undefined : Number(text);
  throw wrong(`\`${name}\` must be a whole number, not ${quote(text)}`);
}

/** `true` or `false`. @throws INVALID_REQUEST */
export function readFlag(text: string | undefined, name: string): boolean | undefined {
  if (text === undefined || text === 'true' || text === 'false')
    return text === undefined ? undefined : text === 'true';
  throw wrong(`\`${name}\` must be true or false, not ${quote(text)}`);
}

/** An instant: Unix ms, or ISO 8601 with an offset. @returns Unix ms. @throws INVALID_REQUEST */
export function readInstantParameter(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined;
  const instant = readInstant(text);
  if (instant !== undefined) return instant;
  // A query decodes the + of an offset as a space.
  const help = readInstant(text.replace(' ', '+')) === undefined ? '' : '; write the + as %2B';
  throw wrong(`\`${name}\` must be Unix ms or ISO 8601 such as 2026-01-31T09:00:00Z, not ${quote(text)}${help}`);
}

function quote(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}...` : text);
}

function wrong(message: string): OrchestratorError {
  return new OrchestratorError('INVALID_REQUEST', message);
}
