/** A Postgres database as an SQL database for `operation: storage`. */

import { isOrchestratorError, messageOf, OrchestratorError } from '../../../../engine/base/errors.ts';
import type { Json, JsonObject } from '../../../../engine/base/json/json.ts';
import { isTextList, optional, readOptions } from '../../../../engine/base/read-options.ts';
import { type Duration, toMs } from '../../../../engine/base/time/duration.ts';
import type { SqlDatabase, SqlStatement } from '../../../../engine/storage/data.port.ts';
import { VALUE_MARK } from '../../../../engine/storage/sql-text.ts';
import { checkSql, type SqlUse, toBound, withoutValues } from '../../sql/sql-rules.ts';
import { type SqlClient, type SqlTransaction, statement } from '../drivers/driver.ts';
import { codeOf, toStorageError } from '../drivers/failure.ts';
import { openClient } from '../drivers/load-driver.ts';
import { type PostgresStorageOptions, readSource, SOURCE_CHECKS } from '../options.ts';
import { toRows } from './database-rows.ts';
import { readSent } from './part-stream.ts';

/** Exactly one of `pool`, `sql`, `pglite` and `url` says where the data is. */
export interface PostgresDatabaseOptions extends Pick<PostgresStorageOptions, 'pool' | 'sql' | 'pglite' | 'url'> {
  /** How long a statement may take: milliseconds, or text. After that, it fails with TIMEOUT. Default `30s`. */
  readonly timeout?: Duration | undefined;
  /** Schemas that no statement may name. Name those of `postgresStorage` if they are in the same database. Default `['ensemble']`. */
  readonly hiddenSchemas?: readonly string[] | undefined;
}

/** An SQL database that keeps connections. */
export interface PostgresDatabase extends SqlDatabase {
  /** Closes the connections that it opened. */
  close(): Promise<void>;
}

/** How much longer the driver waits than the server. */
const GRACE_MS = 2000;
/** How long the reader of a stream may take for a part before the server ends the stream. */
const IDLE_MS = 120_000;
/** The first part of a stream, and the most rows and about the most characters of a part. */
const FIRST_ROWS = 100;
const PART_ROWS = 1000;
const PART_CHARACTERS = 1_000_000;

interface Prepared {
  readonly text: string;
  readonly params: readonly (string | null)[];
}

/**
 * Makes a Postgres database available to `operation: storage`, with `type: sql` (or `d1`). Queries run in a transaction that only reads.
 * The database user should have no rights on the schema of `postgresStorage`.
 *
 * @param options - see {@link PostgresDatabaseOptions}
 * @throws TypeError for an invalid option. The first use throws NOT_CONFIGURED if the package `pg` is needed and missing
 */
export function postgresDatabase(options: PostgresDatabaseOptions): PostgresDatabase {
  const { source, queryTimeoutMs, hiddenSchemas } = settingsOf(options);
  let opening: Promise<SqlClient> | undefined;
  const open = () => {
    opening ??= openClient({ source, sessions: false, queryTimeoutMs: queryTimeoutMs + GRACE_MS });
    return opening;
  };

  const prepare = (given: SqlStatement, use: SqlUse) => toText(given, use, hiddenSchemas);

  const transact = async <T>(
    { values }: SqlStatement,
    mode: 'READ ONLY' | 'READ WRITE',
    signal: AbortSignal,
    work: (on: SqlTransaction) => Promise<T>,
  ): Promise<T> => {
    signal.throwIfAborted();
    try {
      const client = await open();
      return await client.transaction(async (on) => {
        await on.exec(settings(mode, queryTimeoutMs));
        return withAbort(client, on, signal, () => work(on));
      });
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      throw toFailure(error, values, queryTimeoutMs);
    }
  };

  return {
    kind: 'sql',
    async query(given, { limit, offset, signal }) {
      const prepared = prepare(given, 'read');
      return transact(given, 'READ ONLY', signal, async (on) => {
        await declareCursor(on, prepared);
        if (offset > 0) await on.exec(`MOVE FORWARD ${offset} IN ensemble_rows`);
        const rows = toRows(await on.table(`FETCH FORWARD ${limit + 1} FROM ensemble_rows`, []));
        return { rows: rows.slice(0, limit), hasMore: rows.length > limit };
      });
    },
    async execute(given, { signal }) {
      const { text, params } = prepare(given, 'write');
      return transact(given, 'READ WRITE', signal, async (on) => ({ changes: (await on.table(text, params)).count }));
    },
    async *stream(given, { signal }) {
      const prepared = prepare(given, 'read');
      yield* readSent<readonly JsonObject[]>((send) =>
        transact(given, 'READ ONLY', signal, (on) => sendParts(on, prepared, send)),
      );
    },
    async close() {
      const client = await opening?.catch(() => undefined);
      await client?.close();
    },
  };
}

/** The text with `$1`, `$2`, ... for its values. */
function toText(given: SqlStatement, use: SqlUse, hiddenSchemas: readonly string[]): Prepared {
  const [first = '', ...rest] = checkSql(given, use, 'postgres', hiddenSchemas).text.split(VALUE_MARK);
  const params = given.values.map((value) => {
    const bound = toBound(value);
    return bound === null ? null : String(bound);
  });
  return { text: rest.reduce((text, next, i) => `${text}$${i + 1}${next}`, first), params };
}

function settings(mode: string, timeoutMs: number): string {
  return [
    `SET TRANSACTION ${mode}`,
    `SET LOCAL statement_timeout = ${timeoutMs}`,
    `SET LOCAL idle_in_transaction_session_timeout = ${IDLE_MS}`,
    // How the rules for statements and the readers of rows expect texts to be written.
    'SET LOCAL standard_conforming_strings = on',
    'SET LOCAL bytea_output = hex',
    'SET LOCAL datestyle = ISO',
  ].join('; ');
}

async function declareCursor(on: SqlTransaction, { text, params }: Prepared): Promise<void> {
  await on.table(`DECLARE ensemble_rows NO SCROLL CURSOR FOR ${text}`, params);
}

async function sendParts(
  on: SqlTransaction,
  prepared: Prepared,
  send: (part: readonly JsonObject[]) => Promise<void>,
): Promise<void> {
  await declareCursor(on, prepared);
  for (let count = FIRST_ROWS; ; ) {
    const table = await on.table(`FETCH FORWARD ${count} FROM ensemble_rows`, []);
    if (table.rows.length > 0) await send(toRows(table));
    if (table.rows.length < count) return;
    const characters = table.rows.flat().reduce((sum, value) => sum + (value?.length ?? 0), 1);
    count = Math.max(1, Math.min(PART_ROWS, Math.floor((PART_CHARACTERS * count) / characters)));
  }
}

const PID = 'SELECT pg_backend_pid() AS pid';
const CANCEL = statement('SELECT pg_cancel_backend($1::int) AS cancelled', ['cancelled']);

/** When the signal aborts, `work` counts as failed, and the server is asked to stop its statement. */
async function withAbort<T>(
  client: SqlClient,
  on: SqlTransaction,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  // Where all sessions are one, a statement can't be stopped from another one.
  const pid = client.sessionLocks ? Number((await on.table(PID, [])).rows[0]?.[0]) : undefined;
  let stop = () => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => {
      if (pid !== undefined) client.run(CANCEL, [pid]).catch(() => undefined);
      reject(signal.reason);
    };
  });
  signal.addEventListener('abort', stop, { once: true });
  try {
    if (signal.aborted) throw signal.reason;
    const working = work();
    working.catch(() => undefined);
    return await Promise.race([working, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** A type that can't be derived or does not fit, a call that is ambiguous, and no function or operator for the types. */
const UNTYPED = /^42(P08|P18|725|804|883)$/;
const CAST = 'write a cast at the value, such as CAST(${...} AS int)';

/** The error of a statement, without the values that were bound. */
function toFailure(error: unknown, values: readonly Json[], timeoutMs: number): unknown {
  if (isOrchestratorError(error)) return error;
  const code = codeOf(error);
  const fail = (message: string) => {
    const options = { cause: error, retryable: false, ...(code !== undefined && { details: { postgres: code } }) };
    return new OrchestratorError('AGENT_FAILED', `SQL: ${message}`, options);
  };
  if (code === '57014') {
    const message = `SQL: the statement took longer than ${timeoutMs} ms, or the server cancelled it`;
    return new OrchestratorError('TIMEOUT', message, { cause: error, retryable: true, details: { timeoutMs } });
  }
  if (code === '25006')
    return fail('the statement changes data, or the server only reads; `action: execute` changes data');
  // A class of errors that the statement itself caused.
  const isOfStatement =
    code !== undefined && /^(0[9A-Z]|2[0-7]|2[B-F]|3[89B-F]|4[24]|54|55000|P0|[F-O]\w|XX)...$|^42501$/.test(`${code}`);
  if (!isOfStatement) return toStorageError(error);
  // Such an error quotes the value that has the wrong form.
  const words = withoutValues(
    code.startsWith('22') ? messageOf(error).replace(/"[\s\S]*"/, '"..."') : messageOf(error),
    values,
  );
  return fail(UNTYPED.test(code) && values.length > 0 ? `${words}; ${CAST}` : words);
}

function settingsOf(options: PostgresDatabaseOptions) {
  const { timeout = '30s', hiddenSchemas = ['ensemble'] } = readOptions('postgresDatabase', options, {
    ...SOURCE_CHECKS,
    hiddenSchemas: optional('a list of names', isTextList),
  });
  return { source: readSource('postgresDatabase', options), queryTimeoutMs: toMs(timeout), hiddenSchemas };
}
