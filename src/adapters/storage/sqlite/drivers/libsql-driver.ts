/** The driver for the package `libsql`, for runtimes without SQLite: Node.js 20, and Node.js 22 before 22.13. */

import type { SqlConnection, SqlDriver, SqlRow, SqlValue } from './driver.ts';
import { CORRUPT, isBusy, isCorrupt } from './failure.ts';

interface LibsqlStatement {
  run(params: readonly SqlValue[]): { readonly changes: number };
  all(params: readonly SqlValue[]): readonly Record<string, SqlValue | ArrayBuffer>[];
  /** `column` is null for a computed value. */
  columns(): readonly { readonly name: string; readonly column: string | null }[];
}

export interface LibsqlDatabase {
  prepare(sql: string): LibsqlStatement;
  exec(sql: string): void;
  close(): void;
}

export interface Libsql {
  readonly default: new (path: string) => LibsqlDatabase;
}

export function libsqlDriver({ default: Database }: Libsql): SqlDriver {
  return (path) => libsqlConnection(new Database(path));
}

export function libsqlConnection(database: LibsqlDatabase): SqlConnection {
  let closed = false;
  // In libsql a statement still works after its database was closed. This driver prevents that.
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
}

/**
 * Resets a write that found the file locked or damaged. libsql does not: the statement still counts as running, and no
 * later transaction can commit. Running the statement again while writes are forbidden gives another error, which
 * resets the statement.
 */
function release(database: LibsqlDatabase, statement: LibsqlStatement, params: readonly SqlValue[]): void {
  database.exec('PRAGMA query_only = ON');
  try {
    statement.run(params);
  } catch {
    // This error is expected; the caller gets the first one.
  } finally {
    database.exec('PRAGMA query_only = OFF');
  }
}

/**
 * Checks that the schema is UTF-8. libsql gives a column's type with each query, and ends the process when the type is
 * not UTF-8.
 * @throws SQLITE_CORRUPT when the schema is damaged
 */
function readSchema(database: LibsqlDatabase): void {
  for (const { sql } of database.prepare('SELECT CAST(sql AS BLOB) AS sql FROM sqlite_master').all([])) {
    const text = typeof sql === 'object' && sql !== null ? decode(sql) : '';
    if (typeof text === 'string') continue;
    throw Object.assign(new Error('the schema is malformed'), { code: 'SQLITE_CORRUPT', rawCode: CORRUPT });
  }
}

/** Statements that can be read through another query. A pragma can't, and its answer contains no stored text. */
const QUERY = /^\s*(SELECT|WITH)\b/i;

/**
 * Runs the same query but reads text as bytes, because libsql ends the process when it reads text that is not UTF-8,
 * which a damaged file may contain. Values stored as bytes get the byte 0xff in front, with which no text begins. A
 * computed value would be computed twice, for its type and for its value, so it is read as an SQL literal.
 */
function readSafely(database: LibsqlDatabase, sql: string, statement: LibsqlStatement): LibsqlStatement['all'] {
  const computed = new Set<string>();
  const columns = statement.columns().map(({ name, column }) => {
    const quoted = `"${name}"`;
    if (column === null) {
      computed.add(name);
      return `CAST(quote(${quoted}) AS BLOB) AS ${quoted}`;
    }
    return `CASE typeof(${quoted}) WHEN 'text' THEN CAST(${quoted} AS BLOB) WHEN 'blob' THEN CAST(x'ff' || ${quoted} AS BLOB) ELSE ${quoted} END AS ${quoted}`;
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

/**
 * @returns the text; bytes for a value stored as bytes and for damaged text, which a reader that expects text reports
 *   as damaged
 */
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

/** Stands for bytes where a computed number or text was expected. */
const NO_TEXT = new Uint8Array();
