/** The one shape in which the storage sees a SQLite driver: synchronous, with statements that are prepared once. */

/** What a column holds and a parameter may be. Numbers are whole, but for durations. Never a boolean: libsql aborts on one. */
export type SqlValue = string | number | null | Uint8Array;
export type SqlRow = Readonly<Record<string, SqlValue>>;

export interface SqlStatement {
  /** Runs it to its end. @returns how many rows it inserted, updated or deleted */
  run(params: readonly SqlValue[]): number;
  all(params: readonly SqlValue[]): readonly SqlRow[];
}

/** An open database. What it throws are the driver's own errors. */
export interface SqlConnection {
  prepare(sql: string): SqlStatement;
  /** Runs one or more statements without parameters. */
  exec(sql: string): void;
  close(): void;
}

/** Opens a file; made by loading a driver's module. */
export type SqlDriver = (path: string) => SqlConnection;

/** Runs `work` with the write lock held: all that it writes is stored when this returns, or nothing when it throws. */
export type RunTransaction = <T>(work: () => T) => T;

export function createTransaction(connection: SqlConnection): RunTransaction {
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
        // SQLite rolls back by itself after some errors, a full disk for one; then there is nothing left to undo.
      }
      throw error;
    }
  };
}
