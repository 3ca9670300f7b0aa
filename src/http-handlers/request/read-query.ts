/** Reads a request's query: known parameters only, each at most once. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { suggestName } from '../../engine/base/suggest-name.ts';
import { readInstant } from '../../engine/base/time/read-instant.ts';
import { readExecutionId } from './read-id.ts';

/** One parameter of a query: how its text is read, and its schema in the OpenAPI document. */
export interface QueryReader<T> {
  read(text: string, name: string): T;
  readonly schema?: Readonly<Record<string, unknown>>;
}

/** @throws INVALID_REQUEST for a parameter that is unknown, occurs twice, is empty or has no fitting value */
export function readQuery(query: string, readers: Readonly<Record<string, QueryReader<unknown>>>) {
  const values: Record<string, unknown> = {};
  if (query === '') return values;
  for (const [name, value] of new URLSearchParams(query)) {
    const key = Object.hasOwn(readers, name) ? name : undefined;
    if (key === undefined) {
      const near = suggestName(name, Object.keys(readers));
      throw wrong(`the query parameter ${quote(name)} is not known${near ? `; did you mean \`${near}\`?` : ''}`);
    }
    if (Object.hasOwn(values, key)) throw wrong(`the query parameter \`${key}\` must occur only once`);
    if (value === '') throw wrong(`the query parameter \`${key}\` is empty; leave it out`);
    values[key] = value;
  }
  for (const [name, text] of Object.entries(values)) values[name] = readers[name]?.read(text as string, name);
  return values;
}

const TEXT = { type: 'string' } as const;
export const text: QueryReader<string> = { read: (given) => given, schema: TEXT };
export const flag: QueryReader<boolean | undefined> = { read: readFlag, schema: { type: 'boolean' } };
export const count: QueryReader<number | undefined> = { read: readCount, schema: TEXT };
export const executionId: QueryReader<string | undefined> = { read: readExecutionId, schema: TEXT };
export const instant: QueryReader<number | undefined> = {
  read: readInstantParameter,
  schema: { type: ['integer', 'string'], description: 'Unix ms, or ISO 8601' },
};
/** One of these words. The orchestrator refuses others. */
export const word = <T extends string>(words: readonly T[], more = {}): QueryReader<T> => ({
  read: (given) => given as T,
  schema: { type: 'string', enum: words, ...more },
});
const limit: QueryReader<number | undefined> = {
  read: readLimit,
  schema: {
    ...{ type: 'integer', minimum: 1, default: 100 },
    description: 'a larger number than 250 counts as 250',
  },
};
const cursor: QueryReader<string> = {
  read: (given) => given,
  schema: { type: 'string', description: '`nextCursor` of the page before, with the same filter' },
};
/** The parameters of every listing. */
export const page = { limit, cursor };

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
