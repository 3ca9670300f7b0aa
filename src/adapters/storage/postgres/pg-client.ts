/** Postgres by the package `pg`: a pool that was handed in, or one of our own. */

import { leavesConnection, ofDriver } from './failure.ts';
import type { SessionEvents, SqlClient, SqlParam, SqlResult, SqlRow, SqlSession, Statement } from './sql-client.ts';
import { createTimeLimit, endIdleAfter, type TimeLimit } from './time-limit.ts';

/** What is used of a `Pool` of `pg`, and of those that look like one. */
export interface PgPool {
  connect(callback: (error: Error | undefined, client: PgPoolClient | undefined) => void): void;
  on(event: 'error', listener: (error: Error) => void): unknown;
  listenerCount?(event: 'error'): number;
  end(): Promise<void>;
  readonly options?: { readonly max?: number };
}

export interface PgPoolClient {
  query(config: PgQuery, callback: (error: Error, result: PgResult) => void): void;
  // biome-ignore lint/suspicious/noExplicitAny: what a listener is given depends on the event
  on(event: string, listener: (...given: any[]) => void): unknown;
  removeListener(event: string, listener: () => void): unknown;
  release(destroy?: boolean): void;
}

export interface PgQuery {
  readonly name?: string;
  readonly text: string;
  readonly values?: unknown[];
  readonly types?: { getTypeParser(): (text: string) => string };
}

export interface PgResult {
  // biome-ignore lint/suspicious/noExplicitAny: that is how `pg` types rows
  readonly rows: any[];
  readonly rowCount: number | null;
}

export interface ClientOptions {
  /** Prepared statements stay on their connection. */
  readonly prepares: boolean;
  readonly queryTimeoutMs: number;
}

/** Every value stays the text that Postgres wrote, whatever parsers an app has set. */
const AS_TEXT = { getTypeParser: () => (text: string) => text };
const nothing = () => {};

/** @param owned - whether the pool is ours, and ends with the storage */
export function pgClient(pool: PgPool, owned: boolean, { prepares, queryTimeoutMs }: ClientOptions): SqlClient {
  // Without a listener, a connection that breaks while it is idle would end the process.
  if (owned || pool.listenerCount?.('error') === 0) pool.on('error', nothing);

  const inTime = createTimeLimit(queryTimeoutMs);
  const toQuery = ({ name, text }: Statement, params: readonly SqlParam[]): PgQuery => {
    const values = params as unknown[];
    return prepares ? { name, text, values, types: AS_TEXT } : { text, values, types: AS_TEXT };
  };

  /** Whoever gets it gives it back by `giveBack`. */
  const checkOut = (): Promise<PgPoolClient> => {
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
    return inTime(connecting, () => {
      late = true;
    });
  };

  /** Callbacks all the way: this is run for every write, and promises in between cost a tenth of it. */
  const run = (statement: Statement, params: readonly SqlParam[]): Promise<SqlResult> => {
    let held: PgPoolClient | undefined;
    let isOver = false;
    const end = (destroy: boolean) => {
      if (held) giveBack(held, destroy);
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
    const giveUp = () => {
      isOver = true;
      end(true);
    };
    return inTime(result, giveUp, params);
  };

  return {
    sessionLocks: true,
    run,
    async transaction(work) {
      const client = await checkOut();
      try {
        await queryOn(client, { text: `BEGIN; ${endIdleAfter(queryTimeoutMs)}` }, inTime);
        const result = await work({
          run: async (statement, params) =>
            toResult(await queryOn(client, toQuery(statement, params), inTime, nothing, params)),
          // What it runs is a migration, which takes as long as it takes.
          exec: async (text) => {
            await queryOn(client, { text });
          },
        });
        await queryOn(client, { text: 'COMMIT' }, inTime);
        giveBack(client, false);
        return result;
      } catch (error) {
        // Its end rolls back what was written, and is sure to do so.
        giveBack(client, true);
        throw error;
      }
    },
    openSession: async (channel, events) => openPgSession(await checkOut(), channel, events, toQuery, inTime),
    close: async () => {
      if (owned) await pool.end();
    },
  };
}

function giveBack(client: PgPoolClient, destroy: boolean): void {
  client.removeListener('error', nothing);
  client.release(destroy);
}

function queryOn(
  client: PgPoolClient,
  query: PgQuery,
  inTime: TimeLimit = (work) => work,
  onTimeout: () => void = nothing,
  sent?: readonly SqlParam[],
): Promise<PgResult> {
  const result = new Promise<PgResult>((resolve, reject) => {
    client.query(query, (error, found) => (error ? reject(ofDriver(error)) : resolve(found)));
  });
  return inTime(result, onTimeout, sent);
}

async function openPgSession(
  client: PgPoolClient,
  channel: string,
  { onNotify, onLost }: SessionEvents,
  toQuery: (statement: Statement, params: readonly SqlParam[]) => PgQuery,
  inTime: TimeLimit,
): Promise<SqlSession> {
  let open = true;
  const end = (): boolean => {
    if (!open) return false;
    open = false;
    giveBack(client, true);
    return true;
  };
  const lose = () => {
    if (end()) onLost();
  };
  /** One query at a time. */
  let last: Promise<unknown> = Promise.resolve();
  client.on('error', lose);
  client.on('end', lose);
  client.on('notification', ({ channel: from, payload = '' }: { channel: string; payload?: string }) => {
    if (open && from === channel) onNotify(payload);
  });
  try {
    await queryOn(client, { text: `LISTEN "${channel}"` }, inTime);
    const { rows } = await queryOn(client, { text: 'SELECT pg_backend_pid() AS pid', types: AS_TEXT }, inTime);
    return {
      pid: Number(rows[0]?.pid),
      // What gets no answer here is a connection that is lost, though nobody said so.
      run(statement, params) {
        const result = last.then(() => queryOn(client, toQuery(statement, params), inTime, lose)).then(toResult);
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

function toResult({ rows, rowCount }: PgResult): SqlResult {
  return { rows: rows as readonly SqlRow[], count: rowCount ?? 0 };
}
