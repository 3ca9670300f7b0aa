/** SQLite by the package `libsql`, for runtimes that have none of their own: Node.js 20 and 22 before 22.13. */

import type { SqlDriver, SqlRow, SqlValue } from './connection.ts';
import { isBusy } from './failure.ts';

interface LibsqlStatement {
  run(params: readonly SqlValue[]): { readonly changes: number };
  all(params: readonly SqlValue[]): readonly SqlRow[];
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
    return {
      prepare(sql) {
        const statement = database.prepare(sql);
        return {
          run(params) {
            check();
            try {
              return statement.run(params).changes;
            } catch (error) {
              if (isBusy(error)) release(database, statement, params);
              throw error;
            }
          },
          all(params) {
            check();
            return statement.all(params);
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
 * A write that found the file locked is not reset by libsql: it counts as running, and no later transaction can commit.
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
