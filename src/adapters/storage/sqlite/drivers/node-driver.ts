/** The driver for `node:sqlite`, which Deno and Node.js 22.13 or newer have. */

import type { SqlConnection, SqlDriver, SqlRow, SqlValue } from './driver.ts';

interface NodeStatement {
  run(...params: readonly SqlValue[]): { readonly changes: number | bigint };
  all(...params: readonly SqlValue[]): readonly SqlRow[];
}

/** `better-sqlite3` has the same methods. */
export interface NodeDatabase {
  prepare(sql: string): NodeStatement;
  exec(sql: string): void;
  close(): void;
}

export interface NodeSqlite {
  readonly DatabaseSync: new (path: string) => NodeDatabase;
}

export function nodeDriver({ DatabaseSync }: NodeSqlite): SqlDriver {
  return (path) => nodeConnection(new DatabaseSync(path));
}

export function nodeConnection(database: NodeDatabase): SqlConnection {
  return {
    prepare(sql) {
      const statement = database.prepare(sql);
      return {
        run: (params) => Number(statement.run(...params).changes),
        all: (params) => statement.all(...params),
      };
    },
    exec: (sql) => database.exec(sql),
    close: () => database.close(),
  };
}
