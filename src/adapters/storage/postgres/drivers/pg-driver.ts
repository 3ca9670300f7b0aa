/** The driver for the package `pg`: a pool that the app provides, or one that the storage opens. */

import type {
  SessionEvents,
  SqlClient,
  SqlParam,
  SqlResult,
  SqlRow,
  SqlSession,
  SqlTable,
  SqlTransaction,
  Statement,
} from './driver.ts';
import { leavesConnection, ofDriver } from './failure.ts';
import { begin, createTimeout, type WithTimeout } from './query-timeout.ts';

/** What the storage uses of a `Pool` of `pg`, or of a compatible pool. */
export interface PgPool {
  connect(callback: (error: Error | undefined, client: PgPoolClient | undefined) => void): void;
  on(event: 'error', listener: (error: Error) => void): unknown;
  listenerCount?(event: 'error'): number;
  end(): Promise<void>;
  readonly options?: { readonly max?: number };
}

export interface PgPoolClient {
  query(config: PgQuery, callback: (error: Error, result: PgResult) => void): void;
  // biome-ignore lint/suspicious/noExplicitAny: the arguments of a listener depend on the event
  on(event: string, listener: (...given: any[]) => void): unknown;
  removeListener(event: string, listener: () => void): unknown;
  release(destroy?: boolean): void;
}

export interface PgQuery {
  readonly name?: string;
  readonly text: string;
  readonly values?: unknown[];
  readonly types?: { getTypeParser(): (text: string) => string };
  readonly rowMode?: string;
  /** `extended`: the server takes one statement only. */
  readonly queryMode?: string;
}

export interface PgResult {
  // biome-ignore lint/suspicious/noExplicitAny: `pg` types rows this way
  readonly rows: any[];
  readonly rowCount: number | null;
  readonly fields?: readonly { readonly name: string; readonly dataTypeID: number }[];
}

export interface ClientOptions {
  /** Whether statements are prepared: only where a connection keeps them. */
  readonly prepares: boolean;
  readonly queryTimeoutMs: number;
}

/** Every value stays the text that Postgres wrote, whatever parsers the app has set. */
export const AS_TEXT = { getTypeParser: () => (text: string) => text };
const nothing = () => {};

/** @param owned - whether the storage opened the pool, and closes it */
export function pgDriver(pool: PgPool, owned: boolean, { prepares, queryTimeoutMs }: ClientOptions): SqlClient {
  // Without a listener, a connection that breaks while it is idle would end the process.
  if (owned || pool.listenerCount?.('error') === 0) pool.on('error', nothing);

  const withTimeout = createTimeout(queryTimeoutMs);
  const toQuery = ({ name, text }: Statement, params: readonly SqlParam[]): PgQuery => {
    const values = params as unknown[];
    return prepares ? { name, text, values, types: AS_TEXT } : { text, values, types: AS_TEXT };
  };

  /** The caller must return the connection by `release`. */
  const acquire = (): Promise<PgPoolClient> => {
    let late = false;
    const connecting = new Promise<PgPoolClient>((resolve, reject) => {
      pool.connect((error, client) => {
        if (!client) return reject(ofDriver(error));
        if (late) return client.release();
        // Without a listener, a connection that is lost between two queries would end the process.
        client.on('error', nothing);
        resolve(client);
      });
    });
    return withTimeout(connecting, () => {
      late = true;
    });
  };

  /** Uses callbacks only: this runs for every write, and promises in between would cost a tenth of its time. */
  const run = (statement: Statement, params: readonly SqlParam[]): Promise<SqlResult> => {
    let held: PgPoolClient | undefined;
    let isOver = false;
    const end = (destroy: boolean) => {
      if (held) release(held, destroy);
      held = undefined;
    };
    const result = new Promise<SqlResult>((resolve, reject) => {
      pool.connect((failure, client) => {
        if (!client) return reject(ofDriver(failure));
        if (isOver) return client.release();
        held = client;
        client.on('error', nothing);
        client.query(toQuery(statement, params), (error, found) => {
          end(error ? !leavesConnection(error) : false);
          if (error) reject(ofDriver(error));
          else resolve(toResult(found));
        });
      });
    });
    const onTimeout = () => {
      isOver = true;
      end(true);
    };
    return withTimeout(result, onTimeout, params);
  };

  return {
    sessionLocks: true,
    run,
    async transaction(work, before) {
      const client = await acquire();
      const on: SqlTransaction = {
        run: async (statement, params) =>
          toResult(await queryOn(client, toQuery(statement, params), withTimeout, nothing, params)),
        table: async (text, params) => {
          const query = { text, values: [...params], rowMode: 'array', queryMode: 'extended', types: AS_TEXT };
          return toTable(await queryOn(client, query, withTimeout, nothing, params));
        },
        // Without a timeout, because a migration may take long.
        exec: async (text) => {
          await queryOn(client, { text });
        },
      };
      const control = (text: string) => queryOn(client, { text }, withTimeout);
      try {
        await begin(control, queryTimeoutMs, before && (() => before(on)));
        const result = await work(on);
        await control('COMMIT');
        release(client, false);
        return result;
      } catch (error) {
        // Closing the connection rolls back what was written, in every case.
        release(client, true);
        throw error;
      }
    },
    openSession: async (channel, events) => openPgSession(await acquire(), channel, events, toQuery, withTimeout),
    close: async () => {
      if (owned) await pool.end();
    },
  };
}

function release(client: PgPoolClient, destroy: boolean): void {
  client.removeListener('error', nothing);
  client.release(destroy);
}

function queryOn(
  client: PgPoolClient,
  query: PgQuery,
  withTimeout: WithTimeout = (work) => work,
  onTimeout: () => void = nothing,
  sent?: readonly SqlParam[],
): Promise<PgResult> {
  const result = new Promise<PgResult>((resolve, reject) => {
    client.query(query, (error, found) => (error ? reject(ofDriver(error)) : resolve(found)));
  });
  return withTimeout(result, onTimeout, sent);
}

async function openPgSession(
  client: PgPoolClient,
  channel: string,
  { onNotify, onLost }: SessionEvents,
  toQuery: (statement: Statement, params: readonly SqlParam[]) => PgQuery,
  withTimeout: WithTimeout,
): Promise<SqlSession> {
  let open = true;
  const end = (): boolean => {
    if (!open) return false;
    open = false;
    release(client, true);
    return true;
  };
  const lose = () => {
    if (end()) onLost();
  };
  /** The queries run one after the other. */
  let last: Promise<unknown> = Promise.resolve();
  client.on('error', lose);
  client.on('end', lose);
  client.on('notification', ({ channel: from, payload = '' }: { channel: string; payload?: string }) => {
    if (open && from === channel) onNotify(payload);
  });
  try {
    await queryOn(client, { text: `LISTEN "${channel}"` }, withTimeout);
    const { rows } = await queryOn(client, { text: 'SELECT pg_backend_pid() AS pid', types: AS_TEXT }, withTimeout);
    return {
      pid: Number(rows[0]?.pid),
      // A connection that does not answer is lost, even if no error reported it.
      run(statement, params) {
        const result = last.then(() => queryOn(client, toQuery(statement, params), withTimeout, lose)).then(toResult);
        last = result.catch(nothing);
        return result;
      },
      close: async () => void end(),
    };
  } catch (error) {
    end();
    throw error;
  }
}

export function toResult({ rows, rowCount }: PgResult): SqlResult {
  return { rows: rows as readonly SqlRow[], count: rowCount ?? 0 };
}

function toTable({ fields = [], rows, rowCount }: PgResult): SqlTable {
  return { columns: fields.map(({ name, dataTypeID: type }) => ({ name, type })), rows, count: rowCount ?? 0 };
}
