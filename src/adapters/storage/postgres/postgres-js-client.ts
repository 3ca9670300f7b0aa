/** Postgres by the package `postgres` (postgres.js): an instance that was handed in. */

import { messageOf, OrchestratorError } from '../../../engine/errors.ts';
import { ofDriver } from './failure.ts';
import type { ClientOptions } from './pg-client.ts';
import type { SqlClient, SqlParam, SqlResult, SqlRow, SqlRunner, Statement } from './sql-client.ts';
import { createTimeLimit, endIdleAfter } from './time-limit.ts';

/** What is used of an instance of postgres.js. */
export interface PostgresJsSql {
  // biome-ignore lint/suspicious/noExplicitAny: postgres.js types parameters by what the instance was given
  unsafe(text: string, params?: any[], options?: any): any;
  // biome-ignore lint/suspicious/noExplicitAny: they are handed on as they are
  readonly options: any;
}

export type ImportModule = (name: string) => Promise<unknown>;

interface PostgresJsModule {
  readonly default: (options: Readonly<Record<string, unknown>>) => PostgresJsSql & {
    end(options: { readonly timeout: number }): Promise<void>;
  };
}

interface Pending extends Promise<readonly (readonly (Uint8Array | null)[])[] & { readonly count: number | null }> {
  raw(): Pending;
  /** Null until it is sent. */
  readonly state?: unknown;
  /** What `cancel()` calls, which drops the promise that this gives. */
  canceller?: ((query: Pending) => Promise<unknown> | undefined) | null;
}

/** A connection of our own. */
interface OwnConnection extends SqlRunner {
  exec(text: string): Promise<void>;
  close(): Promise<void>;
}

interface OwnEvents {
  readonly onNotify?: (channel: string, payload: string) => void;
  readonly onLost?: () => void;
}

const nothing = () => {};
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const PID: Statement = { name: '', text: 'SELECT pg_backend_pid()', columns: ['pid'] };

export function postgresJsClient(
  sql: PostgresJsSql,
  { prepares, queryTimeoutMs }: ClientOptions,
  load: ImportModule,
): SqlClient {
  const inTime = createTimeLimit(queryTimeoutMs);
  const runOn = async (
    on: Pick<PostgresJsSql, 'unsafe'>,
    { text, columns }: Statement,
    params: readonly SqlParam[],
    onTimeout = nothing,
  ): Promise<SqlResult> => {
    // Bytes as they came: neither an app's types nor its transforms take part.
    const pending = (on.unsafe(text, [...params], { prepare: prepares }) as Pending).raw();
    const giveUp = () => {
      cancel(pending);
      onTimeout();
    };
    const rows = await inTime(pending, giveUp, params).catch((error: unknown) => {
      throw ofDriver(error);
    });
    return { rows: rows.map((row) => toRow(row, columns)), count: rows.count ?? 0 };
  };

  /**
   * An instance of one connection beside the app's, with the same options. A reserved connection of the app's, or one in a
   * transaction, would not do: nobody is told when it is lost, and whoever uses it then ends the process.
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
      onclose: lose,
      onnotify: (channel: string, payload: string) => {
        if (!isClosed) onNotify(channel, payload);
      },
    });
    /** A query would open another connection, without what stands on this one. */
    const whileOpen = <T>(query: () => Promise<T>): Promise<T> =>
      isClosed
        ? Promise.reject(
            new OrchestratorError('OVERLOADED', 'the connection to Postgres was lost', { retryable: true }),
          )
        : query();
    return {
      run: (statement, params) => whileOpen(() => runOn(own, statement, params, lose)),
      exec: (text) => whileOpen(async () => void (await own.unsafe(text))),
      close,
    };
  };

  return {
    sessionLocks: true,
    run: (statement, params) => runOn(sql, statement, params),
    async transaction(work) {
      const own = await connectOwn({});
      const control = (text: string) => own.run({ name: '', text, columns: [] }, []);
      try {
        await control(`BEGIN; ${endIdleAfter(queryTimeoutMs)}`);
        const result = await work(own);
        await control('COMMIT');
        return result;
      } finally {
        // Its end rolls back what was not stored, and is sure to do so.
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
    // The instance is the app's.
    async close() {},
  };
}

/**
 * Asks the server to stop what had no answer in time. One that was not sent yet is left alone: a connection that opens with a
 * query that was cancelled is never used again. And where the server can't be reached to be asked, nobody else would catch that.
 */
function cancel(pending: Pending): void {
  const { canceller, state } = pending;
  if (!state || typeof canceller !== 'function') return;
  pending.canceller = null;
  Promise.resolve(canceller(pending)).catch(nothing);
}

/** @throws NOT_CONFIGURED when it can't be loaded */
async function loadPostgresJs(load: ImportModule): Promise<PostgresJsModule> {
  try {
    return (await load('postgres')) as PostgresJsModule;
  } catch (cause) {
    const message = `postgresStorage: the package postgres can't be loaded (${messageOf(cause)}), by which connections for locks and transactions are opened beside \`sql\`; install it where this library is installed, or hand in a pool of \`pg\``;
    throw new OrchestratorError('NOT_CONFIGURED', message, { cause, details: { driver: 'postgres' } });
  }
}

function toRow(values: readonly (Uint8Array | null)[], columns: readonly string[]): SqlRow {
  const row: Record<string, string | null> = {};
  for (let i = 0; i < columns.length; i++) {
    const value = values[i];
    row[columns[i] as string] = value == null ? null : decoder.decode(value);
  }
  return row;
}
