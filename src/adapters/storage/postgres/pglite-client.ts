/** Postgres inside of the process: an instance of PGlite that was handed in. */

import type { ClientOptions } from './pg-client.ts';
import type { SqlClient, SqlParam, SqlResult, Statement } from './sql-client.ts';
import { createTimeLimit, transactInTime } from './time-limit.ts';

/** What is used of an instance of PGlite. */
export interface PgliteDatabase extends PgliteRunner {
  transaction<T>(work: (transaction: PgliteRunner) => Promise<T>): Promise<T>;
  listen(channel: string, onNotify: (payload: string) => void): Promise<() => Promise<void>>;
}

export interface PgliteRunner {
  query(text: string, params?: unknown[], options?: PgliteOptions): Promise<PgliteResult>;
  exec(text: string): Promise<unknown>;
}

export interface PgliteOptions {
  readonly parsers?: Record<number, (text: string) => string>;
}

export interface PgliteResult {
  // biome-ignore lint/suspicious/noExplicitAny: that is how PGlite types rows
  readonly rows: any[];
  readonly affectedRows?: number;
}

/** The types of what the storage selects: boolean, bigint, integer, text, oid, double precision, void. */
const TYPES = [16, 20, 23, 25, 26, 701, 2278];
const asText = (text: string) => text;
const OPTIONS: PgliteOptions = { parsers: Object.fromEntries(TYPES.map((type) => [type, asText])) };

export function pgliteClient(database: PgliteDatabase, { queryTimeoutMs }: ClientOptions): SqlClient {
  const inTime = createTimeLimit(queryTimeoutMs);
  const runOn = async (on: PgliteRunner, { text }: Statement, params: readonly SqlParam[]): Promise<SqlResult> => {
    const { rows, affectedRows = 0 } = await on.query(text, [...params], OPTIONS);
    return { rows, count: rows.length > 0 ? rows.length : affectedRows };
  };
  return {
    // There is one session, and one process that works on it: a lock would say nothing.
    sessionLocks: false,
    run: (statement, params) => inTime(runOn(database, statement, params), undefined, params),
    transaction: (work) =>
      transactInTime(
        inTime,
        (run) => database.transaction(run),
        (transaction: PgliteRunner) =>
          work({
            run: (statement, params) => runOn(transaction, statement, params),
            exec: async (text) => {
              await transaction.exec(text);
            },
          }),
      ),
    async openSession(channel, { onNotify }) {
      const unlisten = await database.listen(channel, onNotify);
      return {
        pid: undefined,
        run: (statement, params) => runOn(database, statement, params),
        close: () => unlisten(),
      };
    },
    async close() {},
  };
}
