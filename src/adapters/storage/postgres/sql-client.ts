/** The one shape in which the storage sees a Postgres driver: prepared statements, transactions, a connection of its own. */

/** A parameter. Arrays are written as text, see `toArray`; bytes as base64. Never undefined. */
export type SqlParam = string | number | boolean | null;

/** A row by column names, each value as Postgres writes it: no driver's type parser takes part. */
export type SqlRow = Readonly<Record<string, string | null>>;

/** One statement, prepared once on each connection. */
export interface Statement {
  /** The same for the same text, and for no other. */
  readonly name: string;
  readonly text: string;
  /** What it selects or returns, in order. */
  readonly columns: readonly string[];
}

export interface SqlResult {
  readonly rows: readonly SqlRow[];
  /** How many rows it inserted, updated, deleted or selected. */
  readonly count: number;
}

export interface SqlRunner {
  run(statement: Statement, params: readonly SqlParam[]): Promise<SqlResult>;
}

export interface SqlTransaction extends SqlRunner {
  /** Runs one or more statements without parameters. */
  exec(text: string): Promise<void>;
}

/** A connection that is kept for what belongs to a session: locks, and listening. */
export interface SqlSession extends SqlRunner {
  /** The process id of its backend; undefined where every session has the same one. */
  readonly pid: number | undefined;
  close(): Promise<void>;
}

export interface SessionEvents {
  /** Somebody notified the channel. */
  readonly onNotify: (payload: string) => void;
  /** The connection is gone, and with it its locks. Called once at most, and not by `close`. */
  readonly onLost: () => void;
}

/** What it throws are the driver's own errors, or that of a timeout. */
export interface SqlClient extends SqlRunner {
  /** Whether each session has locks of its own; not so where all share one connection. */
  readonly sessionLocks: boolean;
  /** Runs `work` on one connection: all that it writes is stored when this returns, or nothing when it throws. */
  transaction<T>(work: (transaction: SqlTransaction) => Promise<T>): Promise<T>;
  /** Opens a connection that listens to a channel. */
  openSession(channel: string, events: SessionEvents): Promise<SqlSession>;
  /** Closes the connections that the library opened. */
  close(): Promise<void>;
}

/** A statement under a name that is made of its text: two schemas or versions on one connection don't get in each other's way. */
export function statement(text: string, columns: readonly string[] = []): Statement {
  return { name: `ensemble_${hash(text, 0x811c9dc5)}${hash(text, 0x01000193)}`, text, columns };
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
 * An array as Postgres reads it from text. Both it and JSON write a backslash before quotes and backslashes; nothing else that
 * JSON escapes may stand in it, which `toText` sees to.
 */
export function toArray(values: readonly (string | number | null)[]): string {
  // Most columns of a batch hold the same value over and over: it is written once.
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
