/** SQL databases in D1, through the binding of a Worker. */

import { toBase64 } from '../../../engine/base/bytes/base64.ts';
import { messageOf, OrchestratorError } from '../../../engine/base/errors.ts';
import type { Json, JsonObject } from '../../../engine/base/json/json.ts';
import type { SqlDatabase, SqlStatement } from '../../../engine/storage/data.port.ts';
import { VALUE_MARK } from '../../../engine/storage/sql-text.ts';
import { checkSql, type SqlUse, toBound, withoutValues } from '../sql/sql-rules.ts';
import { toCloudflareFailure } from './failure.ts';

/** What the store needs of a database. The binding of a Worker has it. */
export interface D1DatabaseBinding {
  prepare(sql: string): D1Statement;
}

export interface D1Statement {
  bind(...values: (string | number | null)[]): D1Statement;
  all(): Promise<{ readonly results: readonly unknown[] }>;
  run(): Promise<{ readonly meta: { readonly changes?: number } }>;
}

/** The most rows of `stream`. D1 gives the rows of one statement all at once, and a Worker has 128 MB of memory. */
const MAX_STREAMED = 10_000;
const PART_ROWS = 500;

/**
 * Makes a D1 database available to `operation: storage`, with `type: sql` (or `d1`). Whole numbers are bound as whole numbers, although
 * D1 binds numbers as floating point. D1 gives whole numbers beyond 2^53 without their last digits: a page that has one is read a second
 * time, with such numbers as text.
 * A statement that runs can't be cancelled.
 *
 * @param database - the binding of the Worker, such as `env.DB`
 * @throws TypeError if it is not a database
 * @example
 * ```ts no-run
 * import { createOrchestrator } from 'ensemble-orchestrator';
 * import { d1Database, type D1DatabaseBinding } from 'ensemble-orchestrator/cloudflare';
 *
 * const create = (env: { DB: D1DatabaseBinding }) => createOrchestrator({ bindings: { sql: d1Database(env.DB) } });
 * ```
 */
export function d1Database(database: D1DatabaseBinding): SqlDatabase {
  if (typeof database?.prepare !== 'function' || !('batch' in database)) {
    throw new TypeError('d1Database: pass the D1 database of the Worker, such as `env.DB`');
  }
  const read = async (statement: SqlStatement, limit: number, offset: number, signal: AbortSignal) => {
    const { sql, params } = prepare(statement, 'read');
    signal.throwIfAborted();
    // The line break ends a comment at the end of the statement.
    const page = `SELECT * FROM (\n${sql}\n) LIMIT ${limit + 1} OFFSET ${offset}`;
    let { results } = await attempt(statement, () => bound(database, page, params).all());
    const rounded = columnsOf(results, isLarge);
    if (rounded.length > 0) {
      const exact = withText(page, columnsOf(results), rounded);
      ({ results } = await attempt(statement, () => bound(database, exact, params).all()));
    }
    signal.throwIfAborted();
    return { rows: results.slice(0, limit).map(toRow), hasMore: results.length > limit };
  };
  return {
    kind: 'sql',
    query: (statement, { limit, offset, signal }) => read(statement, limit, offset, signal),
    async execute(statement, { signal }) {
      const { sql, params, isChange } = prepare(statement, 'write');
      signal.throwIfAborted();
      const { meta } = await attempt(statement, () => bound(database, sql, params).run());
      // CREATE and its kin leave the count of an earlier statement.
      return { changes: isChange ? (meta.changes ?? 0) : 0 };
    },
    async *stream(statement, { signal }) {
      // Several statements would read several moments, because D1 has no transactions that last.
      const { rows, hasMore } = await read(statement, MAX_STREAMED, 0, signal);
      if (hasMore) {
        const message = `d1Database: D1 can't give more than ${MAX_STREAMED} rows as of one moment; export parts, with a condition on the key`;
        throw new OrchestratorError('INVALID_INPUT', message, { details: { limit: MAX_STREAMED } });
      }
      for (let at = 0; at < rows.length; at += PART_ROWS) {
        signal.throwIfAborted();
        yield rows.slice(at, at + PART_ROWS);
      }
    },
  };
}

interface Prepared {
  readonly sql: string;
  readonly params: readonly (string | number | null)[];
  readonly isChange: boolean;
}

function prepare(statement: SqlStatement, use: SqlUse): Prepared {
  const { text, verb } = checkSql(statement, use, 'sqlite');
  const params = statement.values.map((value) => {
    const given = toBound(value);
    return typeof given === 'boolean' ? Number(given) : given;
  });
  let value = 0;
  const sql = text.replaceAll(VALUE_MARK, () => placeholder(params[value++]));
  return { sql, params, isChange: ['INSERT', 'UPDATE', 'DELETE', 'REPLACE'].includes(verb) };
}

// D1 binds each number as floating point, for which `7 / 2` is 3.5.
function placeholder(value: string | number | null | undefined): string {
  return Number.isSafeInteger(value) ? 'CAST(? AS INTEGER)' : '?';
}

/** The names of the columns in which a row has a value of a kind. */
function columnsOf(rows: readonly unknown[], isKind: (value: unknown) => boolean = () => true): readonly string[] {
  const names = new Set<string>();
  for (const row of rows) {
    for (const [name, value] of Object.entries(row as object)) if (isKind(value)) names.add(name);
  }
  return [...names];
}

function isLarge(value: unknown): boolean {
  return Number.isInteger(value) && !Number.isSafeInteger(value);
}

/** The page with the whole numbers of some columns as text, if they are beyond 2^53. Floating-point numbers stay. */
function withText(page: string, columns: readonly string[], large: readonly string[]): string {
  const texts = columns.map((name) => {
    const column = `"${name.replaceAll('"', '""')}"`;
    if (!large.includes(name)) return column;
    const isWhole = `typeof(${column}) = 'integer' AND ${column} NOT BETWEEN ${Number.MIN_SAFE_INTEGER} AND ${Number.MAX_SAFE_INTEGER}`;
    return `CASE WHEN ${isWhole} THEN CAST(${column} AS TEXT) ELSE ${column} END AS ${column}`;
  });
  return `SELECT ${texts.join()} FROM (\n${page}\n)`;
}

function bound(database: D1DatabaseBinding, sql: string, params: Prepared['params']): D1Statement {
  return database.prepare(sql).bind(...params);
}

/** Failures of the statement itself, by the names of SQLite. Others are those of the connection. */
const OF_STATEMENT = /SQLITE_(ERROR|CONSTRAINT|MISMATCH|AUTH|RANGE|TOOBIG|READONLY)|D1_(TYPE|COLUMN)|not authorized/;

async function attempt<T>({ values }: SqlStatement, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (thrown) {
    const text = messageOf(thrown);
    if (!OF_STATEMENT.test(text)) throw toCloudflareFailure('d1Database', thrown);
    const words = withoutValues(text.replace(/^D1_\w+: /, '').replace(/: SQLITE_\w+.*$/s, ''), values);
    throw new OrchestratorError('AGENT_FAILED', `SQL: ${words}`, { cause: thrown, retryable: false });
  }
}

function toRow(row: unknown): JsonObject {
  const made: Record<string, Json> = {};
  for (const [name, value] of Object.entries(row as object)) made[name] = toJson(value);
  return made;
}

/** Bytes come as a list of numbers. */
function toJson(value: unknown): Json {
  if (Array.isArray(value)) return toBase64(Uint8Array.from(value as number[]));
  if (value instanceof ArrayBuffer) return toBase64(new Uint8Array(value));
  return value as Json;
}
