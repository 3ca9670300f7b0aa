/** What the SQL database for operations needs of an open SQLite database, over the handles of each driver. */

import { OrchestratorError } from '../../../../engine/base/errors.ts';

/** A parameter. Whole numbers are bigints, because drivers bind a number as floating point. */
export type BoundValue = string | number | bigint | Uint8Array | null;

/** A column value: whole numbers are bigints where the driver can read them so. */
export type ColumnValue = string | number | bigint | Uint8Array | ArrayBuffer | null;

/** Rows of one statement, stepped one by one. */
export interface RowReader {
  /** Undefined if the driver does not know the names before the first row. */
  readonly columns: readonly string[] | undefined;
  rows(params: readonly BoundValue[]): Iterable<Readonly<Record<string, ColumnValue>>>;
}

export interface DatabaseHandle {
  read(sql: string): RowReader;
  /** Runs a statement to its end. */
  run(sql: string, params: readonly BoundValue[]): void;
  exec(sql: string): void;
  close(): void;
  /** No other statement can run while rows are stepped, as with `better-sqlite3`. */
  readonly isExclusive: boolean;
}

/** A database of `node:sqlite`, `better-sqlite3`, `libsql` or `bun:sqlite`. */
export interface SqliteHandle {
  // biome-ignore lint/suspicious/noExplicitAny: the statements of the drivers have different types
  prepare(sql: string): any;
  exec(sql: string): unknown;
  close(): unknown;
}

interface NodeStatement {
  setReadBigInts(enabled: boolean): void;
  columns?(): readonly { readonly name: string }[];
  iterate(...params: readonly BoundValue[]): Iterable<Record<string, ColumnValue>>;
  all(...params: readonly BoundValue[]): unknown;
}

/** A statement of `better-sqlite3`, and of `libsql`, which has the same interface. */
interface BetterStatement {
  readonly reader: boolean;
  raw(enabled: boolean): unknown;
  safeIntegers(enabled: boolean): unknown;
  columns(): readonly { readonly name: string }[];
  iterate(params: readonly BoundValue[]): Iterable<readonly ColumnValue[]>;
  all(params: readonly BoundValue[]): unknown;
  run(params: readonly BoundValue[]): unknown;
}

interface BunStatement {
  safeIntegers(enabled: boolean): unknown;
  readonly columnNames: readonly string[];
  iterate(...params: readonly BoundValue[]): Iterable<Record<string, ColumnValue>>;
  all(...params: readonly BoundValue[]): unknown;
  finalize(): void;
}

/** @throws TypeError if no known driver made the database */
export function toHandle(database: SqliteHandle): DatabaseHandle {
  const probe: Partial<NodeStatement & BetterStatement & BunStatement> = database.prepare('SELECT 1 AS one');
  const exec = (sql: string) => void database.exec(sql);
  const base = { exec, close: () => void database.close(), isExclusive: false };
  if (typeof probe.setReadBigInts === 'function') return { ...base, ...nodeHandle(database) };
  if (typeof probe.safeIntegers === 'function' && typeof probe.columns === 'function')
    return { ...base, ...betterHandle(database), isExclusive: isExclusive(database) };
  if (Array.isArray(probe.columnNames) && typeof probe.safeIntegers === 'function')
    return { ...base, ...bunHandle(database) };
  throw new TypeError(
    'sqliteDatabase: `database` must be an open database of node:sqlite (Node.js 22.13 or newer), better-sqlite3, libsql or bun:sqlite',
  );
}

type Reads = Pick<DatabaseHandle, 'read' | 'run'>;

function nodeHandle(database: SqliteHandle): Reads {
  return {
    read(sql) {
      const statement: NodeStatement = database.prepare(sql);
      statement.setReadBigInts(true);
      const columns = statement.columns?.().map(({ name }) => name);
      return { columns: columns && distinct(columns), rows: (params) => statement.iterate(...params) };
    },
    run(sql, params) {
      const statement: NodeStatement = database.prepare(sql);
      // What RETURNING gives is read too, and a number beyond 2^53 would be an error.
      statement.setReadBigInts(true);
      statement.all(...params);
    },
  };
}

function bunHandle(database: SqliteHandle): Reads {
  return {
    read(sql) {
      const statement: BunStatement = database.prepare(sql);
      statement.safeIntegers(true);
      return { columns: distinct(statement.columnNames), rows: (params) => finalizing(statement, params) };
    },
    run(sql, params) {
      const statement: BunStatement = database.prepare(sql);
      statement.all(...params);
      statement.finalize();
    },
  };
}

function* finalizing(statement: BunStatement, params: readonly BoundValue[]) {
  try {
    yield* statement.iterate(...params);
  } finally {
    statement.finalize();
  }
}

function isExclusive(database: SqliteHandle): boolean {
  const rows = (database.prepare('SELECT 1 UNION ALL SELECT 2') as BetterStatement).iterate([])[Symbol.iterator]();
  rows.next();
  try {
    database.exec('SELECT 1');
    return false;
  } catch {
    return true;
  } finally {
    rows.return?.();
  }
}

function betterHandle(database: SqliteHandle): Reads {
  return {
    read(sql) {
      const plain: BetterStatement = database.prepare(sql);
      const columns = distinct(plain.columns().map(({ name }) => name));
      if (columns.length === 0) return { columns, rows: (params) => plain.iterate(params) as never };
      const statement: BetterStatement = database.prepare(asLiterals(sql, columns.length));
      statement.raw(true);
      return { columns, rows: (params) => readLiterals(statement.iterate(params), columns) };
    },
    run(sql, params) {
      const statement: BetterStatement = database.prepare(sql);
      if (statement.reader) statement.all(params);
      else statement.run(params);
    },
  };
}

/**
 * Reads each row as the bytes of SQL literals, such as `12,'it''s',X'00ff',NULL`: libsql ends the process when it reads text that is not
 * UTF-8, which a table may contain. Each column appears once, because a value that is computed must not be computed twice.
 */
function asLiterals(sql: string, columns: number): string {
  const names = Array.from({ length: columns }, (_, i) => `"_${i}"`);
  const literals = names.map((name) => `quote(${name})`).join(" || ',' || ");
  return `WITH "_rows"(${names.join()}) AS (\n${sql}\n) SELECT CAST(${literals} AS BLOB) FROM "_rows"`;
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const LITERAL = /X'([0-9A-Fa-f]*)'|'((?:[^']|'')*)'|[^,]+/y;

function* readLiterals(rows: Iterable<readonly ColumnValue[]>, columns: readonly string[]) {
  for (const [bytes] of rows) {
    const text = decoder.decode(bytes as Uint8Array);
    const row: Record<string, ColumnValue> = {};
    let at = 0;
    for (const column of columns) {
      LITERAL.lastIndex = at;
      const [literal = '', hex, inner] = LITERAL.exec(text) ?? [];
      at += literal.length + 1;
      row[column] = hex !== undefined ? fromHex(hex) : inner !== undefined ? unquote(inner) : readNumber(literal);
    }
    yield row;
  }
}

function unquote(text: string): string {
  return text.includes("'") ? text.replaceAll("''", "'") : text;
}

function fromHex(hex: string): Uint8Array {
  const bytes = new Uint8Array(hex.length / 2);
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}

function readNumber(literal: string): number | bigint | null {
  if (literal === 'NULL') return null;
  if (/^-?\d+$/.test(literal)) return literal.length < 16 ? Number(literal) : BigInt(literal);
  return Number(literal.replace('Inf', 'Infinity'));
}

/** A row is an object, in which one of two columns with the same name would be lost. */
function distinct(columns: readonly string[]): readonly string[] {
  if (columns.includes('__proto__'))
    throw new OrchestratorError('INVALID_INPUT', 'SQL: a column is named __proto__; use AS');
  const twice = columns.find((column, i) => columns.indexOf(column) !== i);
  if (twice === undefined) return columns;
  const message = `SQL: two columns are named ${twice}; name one of them with AS`;
  throw new OrchestratorError('INVALID_INPUT', message);
}
