/** The driver for the package `postgres` (postgres.js): an instance that the app provides. */

import { messageOf, OrchestratorError } from '../../../../engine/base/errors.ts';
import type { SqlClient, SqlParam, SqlResult, SqlRow, SqlTable, SqlTransaction, Statement } from './driver.ts';
import { ofDriver } from './failure.ts';
import type { ClientOptions } from './pg-driver.ts';
import { begin, createTimeout } from './query-timeout.ts';

/** What the storage uses of an instance of postgres.js. */
export interface PostgresJsSql {
  // biome-ignore lint/suspicious/noExplicitAny: postgres.js types parameters by the options of the instance
  unsafe(text: string, params?: any[], options?: any): any;
  // biome-ignore lint/suspicious/noExplicitAny: the options are passed on unchanged
  readonly options: any;
}

export type ImportModule = (name: string) => Promise<unknown>;

interface PostgresJsModule {
  readonly default: (options: Readonly<Record<string, unknown>>) => PostgresJsSql & {
    end(options: { readonly timeout: number }): Promise<void>;
  };
}

export type RawRows = readonly (readonly (Uint8Array | null)[])[] & {
  readonly count: number | null;
  readonly columns?: SqlTable['columns'];
};

interface Pending extends Promise<RawRows> {
  raw(): Pending;
  /** Null until the query is sent. */
  readonly state?: unknown;
  /** The function that `cancel()` calls. `cancel()` drops the promise that the function returns. */
  canceller?: ((query: Pending) => Promise<unknown> | undefined) | null;
}

/** A connection that the storage opened. */
interface OwnConnection extends SqlTransaction {
  close(): Promise<void>;
}

interface OwnEvents {
  readonly onNotify?: (channel: string, payload: string) => void;
  readonly onLost?: () => void;
}

const nothing = () => {};
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const PID: Statement = { name: '', text: 'SELECT pg_backend_pid()', columns: ['pid'] };

export function postgresJsDriver(
  sql: PostgresJsSql,
  { prepares, queryTimeoutMs }: ClientOptions,
  load: ImportModule,
): SqlClient {
  const withTimeout = createTimeout(queryTimeoutMs);
  const rawRows = async (
    on: Pick<PostgresJsSql, 'unsafe'>,
    text: string,
    params: readonly SqlParam[],
    onTimeout: () => void,
    prepare = prepares,
  ): Promise<RawRows> => {
    // Raw bytes, so that the app's types and transforms don't apply.
    const pending = (on.unsafe(text, [...params], { prepare }) as Pending).raw();
    const cancelAndReport = () => {
      cancel(pending);
      onTimeout();
    };
    return withTimeout(pending, cancelAndReport, params).catch((error: unknown) => {
      throw ofDriver(error);
    });
  };
  const runOn = async (
    on: Pick<PostgresJsSql, 'unsafe'>,
    { text, columns }: Statement,
    params: readonly SqlParam[],
    onTimeout = nothing,
  ): Promise<SqlResult> => {
    const rows = await rawRows(on, text, params, onTimeout);
    return { rows: rows.map((row) => toRow(row, columns)), count: rows.count ?? 0 };
  };

  /**
   * Opens an instance with one connection and the options of the app's instance. A connection of the app's instance,
   * reserved or in a transaction, is not enough: nothing reports its loss, and a query on a lost connection ends the
   * process.
   */
  const connectOwn = async ({ onNotify = nothing, onLost = nothing }: OwnEvents): Promise<OwnConnection> => {
    const { default: create } = await loadPostgresJs(load);
    let isClosed = false;
    const close = async () => {
      isClosed = true;
      await own.end({ timeout: 0 });
    };
    const lose = () => {
      if (isClosed) return;
      close().catch(nothing);
      onLost();
    };
    const own = create({
      ...sql.options,
      ...{ max: 1, idle_timeout: null, max_lifetime: null, fetch_types: false },
      // Parameters are sent as the text that they are: the package would write dates and JSON texts again.
      serializers: {},
      onclose: lose,
      onnotify: (channel: string, payload: string) => {
        if (!isClosed) onNotify(channel, payload);
      },
    });
    /** After a loss, a query would open another connection, without the locks and the transaction of this one. */
    const whileOpen = <T>(query: () => Promise<T>): Promise<T> =>
      isClosed
        ? Promise.reject(
            new OrchestratorError('OVERLOADED', 'the connection to Postgres was lost', { retryable: true }),
          )
        : query();
    return {
      run: (statement, params) => whileOpen(() => runOn(own, statement, params, lose)),
      table: (text, params) => whileOpen(async () => toTable(await rawRows(own, text, params, lose, false))),
      exec: (text) => whileOpen(async () => void (await own.unsafe(text))),
      close,
    };
  };

  return {
    sessionLocks: true,
    run: (statement, params) => runOn(sql, statement, params),
    async transaction(work, before) {
      const own = await connectOwn({});
      const control = (text: string) => own.run({ name: '', text, columns: [] }, []);
      try {
        await begin(control, queryTimeoutMs, before && (() => before(own)));
        const result = await work(own);
        await control('COMMIT');
        return result;
      } finally {
        // Closing the connection rolls back what was not committed, in every case.
        own.close().catch(nothing);
      }
    },
    async openSession(channel, { onNotify, onLost }) {
      let isOpen = false;
      const own = await connectOwn({
        onNotify: (from, payload) => {
          if (from === channel) onNotify(payload);
        },
        onLost: () => {
          if (isOpen) onLost();
        },
      });
      try {
        const [row] = (await own.run(PID, [])).rows;
        await own.run({ name: '', text: `LISTEN "${channel}"`, columns: [] }, []);
        isOpen = true;
        return { ...own, pid: Number(row?.pid) };
      } catch (error) {
        await own.close().catch(nothing);
        throw error;
      }
    },
    // The instance belongs to the app.
    async close() {},
  };
}

/**
 * Asks the server to stop a query that timed out. A query that was not sent yet is not cancelled, because postgres.js
 * never uses a connection again that opens with a cancelled query. The returned promise is handled here, because
 * `cancel()` would drop it.
 */
function cancel(pending: Pending): void {
  const { canceller, state } = pending;
  if (!state || typeof canceller !== 'function') return;
  pending.canceller = null;
  Promise.resolve(canceller(pending)).catch(nothing);
}

/** @throws NOT_CONFIGURED when the package can't be loaded */
async function loadPostgresJs(load: ImportModule): Promise<PostgresJsModule> {
  try {
    return (await load('postgres')) as PostgresJsModule;
  } catch (cause) {
    const message = `postgresStorage: the package postgres can't be loaded (${messageOf(cause)}); the storage needs it to open connections for locks and transactions besides \`sql\`. Install it where this library is installed, or pass a pool of \`pg\``;
    throw new OrchestratorError('NOT_CONFIGURED', message, { cause, details: { driver: 'postgres' } });
  }
}

export function toRow(values: readonly (Uint8Array | null)[], columns: readonly string[]): SqlRow {
  const row: Record<string, string | null> = {};
  for (let i = 0; i < columns.length; i++) {
    const value = values[i];
    row[columns[i] as string] = value == null ? null : decoder.decode(value);
  }
  return row;
}

function toTable(rows: RawRows): SqlTable {
  return {
    columns: (rows.columns ?? []).map(({ name, type }) => ({ name, type })),
    rows: rows.map((values) => values.map((value) => (value == null ? null : decoder.decode(value)))),
    count: rows.count ?? 0,
  };
}
