/** SQLite by the package `libsql`, for runtimes that have none of their own: Node.js 20 and 22 before 22.13. */

import type { SqlDriver, SqlRow, SqlValue } from './connection.ts';

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
            return statement.run(params).changes;
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
