/** The driver for PGlite, Postgres inside the process: an instance that the app provides. */

import { joinBytes } from '../../../../engine/base/bytes/join-bytes.ts';
import type { SqlClient, SqlParam, SqlResult, SqlTable, SqlTransaction, Statement } from './driver.ts';
import type { ClientOptions } from './pg-driver.ts';
import { executeMessages, prepareMessages } from './pglite-messages.ts';
import { createTimeout, transactWithTimeout } from './query-timeout.ts';

/** What the storage uses of an instance of PGlite. */
export interface PgliteDatabase extends PgliteRunner {
  transaction<T>(work: (transaction: PgliteRunner) => Promise<T>): Promise<T>;
  listen(channel: string, onNotify: (payload: string) => void): Promise<() => Promise<void>>;
  /** With these three methods, each statement is prepared once. Without them, PGlite prepares it again for each call. */
  execProtocol?(messages: Uint8Array, options: { readonly syncToFs: boolean }): Promise<PgliteAnswer>;
  /** No other message is sent while `work` runs. */
  runExclusive?<T>(work: () => Promise<T>): Promise<T>;
  /** No transaction and no other query runs while `work` runs. */
  _runExclusiveTransaction?<T>(work: () => Promise<T>): Promise<T>;
}

/** The messages that the database answers with. */
export interface PgliteAnswer {
  // biome-ignore lint/suspicious/noExplicitAny: each kind of message has its own properties
  readonly messages: readonly any[];
}

export interface PgliteRunner {
  query(text: string, params?: unknown[], options?: PgliteOptions): Promise<PgliteResult>;
  exec(text: string): Promise<unknown>;
}

export interface PgliteOptions {
  readonly parsers?: Record<number, (text: string) => string> | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: PGlite passes parameters of any type
  readonly serializers?: Record<number, (value: any) => string> | undefined;
  readonly rowMode?: 'array' | 'object' | undefined;
}

export interface PgliteResult {
  // biome-ignore lint/suspicious/noExplicitAny: PGlite types rows this way
  readonly rows: any[];
  readonly affectedRows?: number;
  readonly fields?: readonly { readonly name: string; readonly dataTypeID: number }[];
}

/** The column types that the storage selects: boolean, bigint, integer, text, oid, double precision, void. */
const TYPES = [16, 20, 23, 25, 26, 701, 2278];
const asText = (text: string) => text;
const OPTIONS: PgliteOptions = { parsers: Object.fromEntries(TYPES.map((type) => [type, asText])) };

/** The types that PGlite reads and writes in its own way: scalars, and arrays of them. */
const OWN_TYPES = [
  ...[16, 17, 18, 20, 21, 23, 25, 26, 114, 700, 701, 1042, 1043, 1082, 1083, 1114, 1184, 1186, 1700, 2950, 3802],
  ...[143, 199, 651, 719, 791, 1000, 1001, 1002, 1003, 1005, 1007, 1009, 1014, 1015, 1016, 1021, 1022, 1028],
  ...[1040, 1041, 1115, 1182, 1183, 1185, 1187, 1231, 1270, 2951, 3807],
];
const TABLE_OPTIONS: PgliteOptions = {
  rowMode: 'array',
  parsers: Object.fromEntries(OWN_TYPES.map((type) => [type, asText])),
  serializers: Object.fromEntries(OWN_TYPES.map((type) => [type, asText])),
};

/** Runs a statement. @param transaction - the transaction that it belongs to, if there is one */
type Run = (statement: Statement, params: readonly SqlParam[], transaction?: PgliteRunner) => Promise<SqlResult>;

export function pgliteDriver(database: PgliteDatabase, { prepares, queryTimeoutMs }: ClientOptions): SqlClient {
  const withTimeout = createTimeout(queryTimeoutMs);
  const run = (prepares ? runPrepared(database) : undefined) ?? runText(database);
  const transact = <T>(work: (transaction: SqlTransaction) => Promise<T>): Promise<T> =>
    transactWithTimeout(
      withTimeout,
      (body) => database.transaction(body),
      (transaction: PgliteRunner) =>
        work({
          run: (statement, params) => run(statement, params, transaction),
          table: (text, params) => withTimeout(runTable(transaction, text, params)),
          exec: async (text) => {
            await transaction.exec(text);
          },
        }),
    );
  return {
    // All sessions are one, used by one process, so a lock can't show whether another process lives.
    sessionLocks: false,
    run: (statement, params) => withTimeout(run(statement, params), undefined, params),
    async transaction(work, before) {
      if (before) await transact(before);
      return transact(work);
    },
    async openSession(channel, { onNotify }) {
      const unlisten = await database.listen(channel, onNotify);
      return {
        pid: undefined,
        run: (statement, params) => run(statement, params),
        close: () => unlisten(),
      };
    },
    async close() {},
  };
}

async function runTable(
  transaction: PgliteRunner,
  text: string,
  params: readonly (string | null)[],
): Promise<SqlTable> {
  const { rows, fields = [], affectedRows = 0 } = await transaction.query(text, [...params], TABLE_OPTIONS);
  const columns = fields.map(({ name, dataTypeID: type }) => ({ name, type }));
  return { columns, rows, count: affectedRows };
}

export function runText(database: PgliteRunner): Run {
  return async ({ text }, params, transaction) => {
    const { rows, affectedRows = 0 } = await (transaction ?? database).query(text, [...params], OPTIONS);
    return { rows, count: rows.length > 0 ? rows.length : affectedRows };
  };
}

/** The app has closed the statement, for example by `DISCARD ALL`. */
const NO_SUCH_STATEMENT = '26000';

/** @returns undefined if this PGlite has no access to the protocol */
function runPrepared(given: PgliteDatabase): Run | undefined {
  if (!given.execProtocol || !given.runExclusive || !given._runExclusiveTransaction) return undefined;
  const database = given as Required<PgliteDatabase>;
  // Another storage on the same database may prepare a statement again: a name belongs to one text, so both stay valid.
  const prepared = new Set<string>();

  const send = (statement: Statement, params: readonly SqlParam[], syncToFs: boolean): Promise<SqlResult> =>
    database.runExclusive(async () => {
      const prepare = prepared.has(statement.name) ? [] : prepareMessages(statement);
      const bytes = joinBytes([...prepare, ...executeMessages(statement, params)]);
      const { messages } = await database.execProtocol(bytes, { syncToFs });
      prepared.add(statement.name);
      return toResult(statement, messages);
    });

  return async (statement, params, transaction) => {
    if (transaction) return send(statement, params, false);
    return database._runExclusiveTransaction(async () => {
      try {
        return await send(statement, params, true);
      } catch (error) {
        if ((error as { code?: unknown }).code !== NO_SUCH_STATEMENT) throw error;
        prepared.clear();
        return send(statement, params, true);
      }
    });
  };
}

function toResult({ columns }: Statement, messages: PgliteAnswer['messages']): SqlResult {
  const rows: Record<string, string | null>[] = [];
  let count = 0;
  for (const { name, fields, text } of messages) {
    if (name === 'dataRow') rows.push(Object.fromEntries(columns.map((column, i) => [column, fields[i]])));
    // `INSERT 0 2`, `UPDATE 2`, `SELECT 2`
    else if (name === 'commandComplete') count = Number(/\d+$/.exec(text)?.[0] ?? 0);
  }
  return { rows, count };
}
