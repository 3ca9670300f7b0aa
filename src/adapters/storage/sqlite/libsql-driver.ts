/** SQLite by the package `libsql`, for runtimes that have none of their own: Node.js 20 and 22 before 22.13. */

import type { SqlDriver, SqlRow, SqlValue } from './connection.ts';
import { CORRUPT, isBusy, isCorrupt } from './failure.ts';

interface LibsqlStatement {
  run(params: readonly SqlValue[]): { readonly changes: number };
  all(params: readonly SqlValue[]): readonly Record<string, SqlValue | ArrayBuffer>[];
  /** `column` is null for what is computed. */
  columns(): readonly { readonly name: string; readonly column: string | null }[];
}

interface LibsqlDatabase {
  prepare(sql: string): LibsqlStatement;
  exec(sql: string): void;
  close(): void;
}

export interface Libsql {
  readonly default: new (path: string) => LibsqlDatabase;
}

export function libsqlDriver({ default: Database }: Libsql): SqlDriver {
  return (path) => {
    const database = new Database(path);
    let closed = false;
    // A statement goes on working behind its database's close: here it must not.
    const check = () => {
      if (closed) throw new TypeError('the database is closed');
    };
    let isSchemaRead = false;
    return {
      prepare(sql) {
        const statement = database.prepare(sql);
        let read: LibsqlStatement['all'] = (params) => {
          if (!isSchemaRead) readSchema(database);
          isSchemaRead = true;
          read = QUERY.test(sql) ? readSafely(database, sql, statement) : (given) => statement.all(given);
          return read(params);
        };
        return {
          run(params) {
            check();
            try {
              return statement.run(params).changes;
            } catch (error) {
              if (isBusy(error) || isCorrupt(error)) release(database, statement, params);
              throw error;
            }
          },
          all(params) {
            check();
            return read(params) as readonly SqlRow[];
          },
        };
      },
      exec: (sql) => database.exec(sql),
      close() {
        closed = true;
        database.close();
      },
    };
  };
}

/**
 * A write that found the file locked, or damaged, is not reset by libsql: it counts as running, and no later transaction can commit.
 * Running it once more where nothing may be written ends it with another error, and that one resets it.
 */
function release(database: LibsqlDatabase, statement: LibsqlStatement, params: readonly SqlValue[]): void {
  database.exec('PRAGMA query_only = ON');
  try {
    statement.run(params);
  } catch {
    // It is meant to fail: the caller gets the first error.
  } finally {
    database.exec('PRAGMA query_only = OFF');
  }
}

/**
 * libsql also ends the process when a column's type in the schema is not UTF-8, and gives that type with each query.
 * @throws SQLITE_CORRUPT when the schema is damaged
 */
function readSchema(database: LibsqlDatabase): void {
  for (const { sql } of database.prepare('SELECT CAST(sql AS BLOB) AS sql FROM sqlite_master').all([])) {
    const text = typeof sql === 'object' && sql !== null ? decode(sql) : '';
    if (typeof text === 'string') continue;
    throw Object.assign(new Error('the schema is malformed'), { code: 'SQLITE_CORRUPT', rawCode: CORRUPT });
  }
}

/** Pragmas can't stand in another query; what they answer is no text that was stored. */
const QUERY = /^\s*(SELECT|WITH)\b/i;

/**
 * The same query with its texts as bytes: libsql ends the whole process when it reads text that is not UTF-8, as a damaged file
 * may hold. What was stored as bytes gets one more in front, with which no text begins. What is computed would be computed
 * twice when it is asked for its type and its value, so it comes as a literal of SQL.
 */
function readSafely(database: LibsqlDatabase, sql: string, statement: LibsqlStatement): LibsqlStatement['all'] {
  const computed = new Set<string>();
  const columns = statement.columns().map(({ name, column }) => {
    const it = `"${name}"`;
    if (column === null) {
      computed.add(name);
      return `CAST(quote(${it}) AS BLOB) AS ${it}`;
    }
    return `CASE typeof(${it}) WHEN 'text' THEN CAST(${it} AS BLOB) WHEN 'blob' THEN CAST(x'ff' || ${it} AS BLOB) ELSE ${it} END AS ${it}`;
  });
  const reading = database.prepare(`SELECT ${columns.join(', ')} FROM (${sql})`);
  return (params) => {
    const rows = reading.all(params);
    for (const row of rows) {
      for (const name in row) {
        const value = row[name];
        if (typeof value !== 'object' || value === null) continue;
        row[name] = computed.has(name) ? readLiteral(decode(value)) : decode(value);
      }
    }
    return rows;
  };
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** @returns the text; bytes for what was stored as bytes, and for text that is damaged: who needs text takes them for damaged */
function decode(bytes: ArrayBuffer | Uint8Array): string | Uint8Array {
  try {
    return decoder.decode(bytes);
  } catch {
    const whole = new Uint8Array(bytes);
    return whole[0] === 0xff ? whole.subarray(1) : whole;
  }
}

function readLiteral(literal: string | Uint8Array): SqlValue {
  if (typeof literal !== 'string') return literal;
  if (literal === 'NULL') return null;
  if (literal.startsWith("'")) return literal.slice(1, -1).replaceAll("''", "'");
  return literal.startsWith('X') ? NO_TEXT : Number(literal);
}

/** For bytes where a number or a text was to be computed. */
const NO_TEXT = new Uint8Array();
