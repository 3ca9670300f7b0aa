/** The driver for `bun:sqlite`. */

import type { SqlConnection, SqlDriver, SqlRow, SqlValue } from './driver.ts';

interface BunStatement {
  run(...params: readonly SqlValue[]): { readonly changes: number };
  all(...params: readonly SqlValue[]): readonly SqlRow[];
  finalize(): void;
}

export interface BunDatabase {
  prepare(sql: string): BunStatement;
  exec(sql: string): void;
  close(): void;
}

export interface BunSqlite {
  readonly Database: new (path: string) => BunDatabase;
}

export function bunDriver({ Database }: BunSqlite): SqlDriver {
  return (path) => bunConnection(new Database(path));
}

export function bunConnection(database: BunDatabase): SqlConnection {
  const statements: BunStatement[] = [];
  return {
    prepare(sql) {
      const statement = database.prepare(sql);
      statements.push(statement);
      return {
        run: (params) => statement.run(...params).changes,
        all: (params) => statement.all(...params),
      };
    },
    exec: (sql) => database.exec(sql),
    close() {
      // The file stays open until all its statements are finalized.
      for (const statement of statements) statement.finalize();
      database.close();
    },
  };
}
