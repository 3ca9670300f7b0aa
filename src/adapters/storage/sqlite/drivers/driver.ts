/** The interface of a SQLite driver to the storage: synchronous, with statements that are prepared once. */

/**
 * A column value or a parameter. Numbers are whole, except durations. Never a boolean: libsql aborts the process on
 * one.
 */
export type SqlValue = string | number | null | Uint8Array;
export type SqlRow = Readonly<Record<string, SqlValue>>;

export interface SqlStatement {
  /** @returns how many rows the statement inserted, updated or deleted */
  run(params: readonly SqlValue[]): number;
  all(params: readonly SqlValue[]): readonly SqlRow[];
}

/** An open database. It throws the driver's own errors. */
export interface SqlConnection {
  prepare(sql: string): SqlStatement;
  /** Runs one or more statements without parameters. */
  exec(sql: string): void;
  /** Where SQL can't begin and end a transaction. */
  readonly transaction?: RunTransaction;
  /** How many rows one statement may write. Default 16. */
  readonly maxRows?: number;
  close(): void;
}

/** Opens a file. */
export type SqlDriver = (path: string) => SqlConnection;

/** Prepares each statement at its first use, for statements whose text depends on the call. */
export function prepareOnUse(connection: SqlConnection): (sql: string) => SqlStatement {
  const statements = new Map<string, SqlStatement>();
  return (sql) => {
    const statement = statements.get(sql) ?? connection.prepare(sql);
    statements.set(sql, statement);
    return statement;
  };
}

/** Runs `work` under the write lock. When it returns, all its writes are stored; when it throws, none is. */
export type RunTransaction = <T>(work: () => T) => T;

export function createTransaction(connection: SqlConnection): RunTransaction {
  if (connection.transaction) return connection.transaction;
  const begin = connection.prepare('BEGIN IMMEDIATE');
  const commit = connection.prepare('COMMIT');
  const rollback = connection.prepare('ROLLBACK');
  return (work) => {
    begin.run([]);
    try {
      const result = work();
      commit.run([]);
      return result;
    } catch (error) {
      try {
        rollback.run([]);
      } catch {
        // SQLite rolls back by itself after some errors, such as a full disk. Then nothing is left to undo.
      }
      throw error;
    }
  };
}
