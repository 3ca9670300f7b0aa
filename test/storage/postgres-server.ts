/** For tests on a real Postgres: whether there is a server, and a database for each test file. */

import pg from 'pg';
import postgres from 'postgres';

/** The address of the server. Its user may create databases. */
export const SERVER = process.env.TEST_POSTGRES ?? 'postgres://root@127.0.0.1:5432/test';

/** @returns whether a server answers; logs it when none does, because its tests are then skipped */
export async function findServer(): Promise<boolean> {
  const client = new pg.Client({ connectionString: SERVER, connectionTimeoutMillis: 2000 });
  try {
    await client.connect();
    await client.end();
    return true;
  } catch (error) {
    console.log(`no Postgres at ${new URL(SERVER).host} (${(error as Error).message}): its tests are skipped`);
    return false;
  }
}

export interface TestDatabase {
  readonly connectionString: string;
  /** Runs a statement on a connection of its own. */
  query(text: string, values?: unknown[]): Promise<pg.QueryResult>;
  pool(options?: pg.PoolConfig): pg.Pool;
  sql(options?: postgres.Options<Record<string, never>>): postgres.Sql;
  /** Closes all pools and instances, and drops the database. */
  drop(): Promise<void>;
}

let databases = 0;

export async function createDatabase(): Promise<TestDatabase> {
  databases += 1;
  const name = `ensemble_test_${process.pid}_${databases}`;
  const admin = new pg.Client({ connectionString: SERVER });
  await admin.connect();
  await admin.query(`CREATE DATABASE ${name}`);
  const connectionString = Object.assign(new URL(SERVER), { pathname: `/${name}` }).href;
  const own = new pg.Client({ connectionString });
  own.on('error', () => undefined);
  await own.connect();
  const closers: (() => Promise<unknown>)[] = [];
  return {
    connectionString,
    query: (text, values) => own.query(text, values),
    pool(options) {
      const pool = new pg.Pool({ connectionString, ...options });
      closers.push(() => {
        // `end` resolves before the server has closed the connections, and dropping the database then breaks them.
        pool.on('error', () => undefined);
        return pool.end();
      });
      return pool;
    },
    sql(options) {
      // A connection that ends while postgres.js reads the types would end the process: it rejects a promise that nobody has.
      const sql = postgres(connectionString, { connect_timeout: 10, fetch_types: false, ...options });
      closers.push(() => sql.end({ timeout: 1 }));
      return sql;
    },
    async drop() {
      await Promise.all(closers.map((close) => close()));
      await own.end();
      await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
      await admin.end();
    },
  };
}

/** Long enough for a machine that is ten times slower. */
const MAX_MS = 50_000;

/** Waits until a condition holds. @throws Error after 50 s */
export async function until(holds: () => unknown, what: string): Promise<void> {
  for (const end = performance.now() + MAX_MS; performance.now() < end; ) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`it did not happen within ${MAX_MS} ms: ${what}`);
}
