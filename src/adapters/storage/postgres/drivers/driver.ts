/** The interface of a Postgres driver to the storage: prepared statements, transactions, and a session. */

/** A parameter. An array is text (see `toArray`), and bytes are base64. Never undefined. */
export type SqlParam = string | number | boolean | null;

/** A row by column names. Each value is the text that Postgres writes; no type parser of a driver applies. */
export type SqlRow = Readonly<Record<string, string | null>>;

/** A statement, prepared once on each connection. */
export interface Statement {
  /** Equal texts have equal names, and different texts have different names. */
  readonly name: string;
  readonly text: string;
  /** The columns that it selects or returns, in order. */
  readonly columns: readonly string[];
}

export interface SqlResult {
  readonly rows: readonly SqlRow[];
  /** How many rows were inserted, updated, deleted or selected. */
  readonly count: number;
}

export interface SqlRunner {
  run(statement: Statement, params: readonly SqlParam[]): Promise<SqlResult>;
}

/** The answer to a statement whose columns are not known before. */
export interface SqlTable {
  /** `type` is the OID of the column's type. */
  readonly columns: readonly { readonly name: string; readonly type: number }[];
  /** The values in the order of the columns, as the text that Postgres writes. */
  readonly rows: readonly (readonly (string | null)[])[];
  readonly count: number;
}

export interface SqlTransaction extends SqlRunner {
  /** Runs one statement that is not prepared. Its parameters are text whose types the server derives. */
  table(text: string, params: readonly (string | null)[]): Promise<SqlTable>;
  /** Runs one or more statements without parameters. */
  exec(text: string): Promise<void>;
}

/** A connection that the storage keeps for locks and notifications. */
export interface SqlSession extends SqlRunner {
  /** The process id of the server's backend; undefined where all sessions are one. */
  readonly pid: number | undefined;
  close(): Promise<void>;
}

export interface SessionEvents {
  /** A notification arrived on the channel. */
  readonly onNotify: (payload: string) => void;
  /** The connection is lost, and its locks are free. Called at most once, and not after `close`. */
  readonly onLost: () => void;
}

/** It throws the driver's own errors, or OVERLOADED for a timeout. */
export interface SqlClient extends SqlRunner {
  /** Whether each session has its own locks. False where all sessions share one connection. */
  readonly sessionLocks: boolean;
  /**
   * Runs `work` on one connection. When it returns, all its writes are stored; when it throws, none is.
   * @param before - runs in a transaction of its own on the same connection. What it writes may be lost until `work` is stored
   */
  transaction<T>(
    work: (transaction: SqlTransaction) => Promise<T>,
    before?: (transaction: SqlTransaction) => Promise<unknown>,
  ): Promise<T>;
  /** Opens a connection that listens to a channel. */
  openSession(channel: string, events: SessionEvents): Promise<SqlSession>;
  /** Closes the connections that the storage opened. */
  close(): Promise<void>;
}

/** Makes a statement whose name depends on its text, so that two schemas or versions can share a connection. */
export function statement(text: string, columns: readonly string[] = []): Statement {
  let name: string | undefined;
  return {
    // At the first use: a transaction of a caller makes all statements, and uses few.
    get name() {
      name ??= `ensemble_${hash(text, 0x811c9dc5)}${hash(text, 0x01000193)}`;
      return name;
    },
    ...{ text, columns },
  };
}

/**
 * A limit for the planner, which takes a `LIMIT $1` as a tenth of all rows: with a million rows, the estimated cost then makes a server
 * compile the statement at each call. Statements have it inside, and their exact limit around it.
 * @returns the next power of two, so that a statement has few texts
 */
export function limitForPlanner(limit: number): string {
  return `${2 ** Math.ceil(Math.log2(Math.max(limit, 16)))}`;
}

/** Makes a statement once for each estimate of its limit. */
export function byLimit(text: (most: string) => string, columns: readonly string[]): (limit: number) => Statement {
  const made = new Map<string, Statement>();
  return (limit) => {
    const most = limitForPlanner(limit);
    const known = made.get(most) ?? statement(text(most), columns);
    made.set(most, known);
    return known;
  };
}

/** FNV-1a, 8 hexadecimal characters. */
function hash(text: string, seed: number): string {
  return hash32(text, seed).toString(16).padStart(8, '0');
}

/** @returns a whole number from 0 to 2^32 - 1 */
export function hash32(text: string, seed = 0x811c9dc5): number {
  let value = seed;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return value >>> 0;
}

/**
 * Writes an array as text for Postgres. Postgres and JSON both escape quotes and backslashes by a backslash. The values
 * contain nothing else that JSON escapes, because `toTextColumn` prevents it.
 */
export function toArray(values: readonly (string | number | null)[]): string {
  // Most columns of a batch repeat a value, which is converted once.
  if (values.length > 1 && values[0] === values[1]) return `{${writeRuns(values).join()}}`;
  return `{${JSON.stringify(values).slice(1, -1)}}`;
}

function writeRuns(values: readonly (string | number | null)[]): string[] {
  const texts = new Array<string>(values.length);
  let last: string | number | null | undefined;
  let text = '';
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as string | number | null;
    if (value !== last) {
      last = value;
      text = JSON.stringify(value);
    }
    texts[i] = text;
  }
  return texts;
}
