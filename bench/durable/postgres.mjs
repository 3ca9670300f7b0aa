/** The Postgres server that is measured: POSTGRES_URL, or the server at 127.0.0.1:5432. Each run creates its own database. */

import { userInfo } from 'node:os';
import pg from 'pg';

const user = process.env.PGUSER ?? userInfo().username;
const server = process.env.POSTGRES_URL ?? `postgres://${encodeURIComponent(user)}@127.0.0.1:5432/postgres`;
const SETTINGS = ['server_version', 'synchronous_commit', 'fsync', 'full_page_writes', 'wal_sync_method'];

/** The URL of another database on the same server. */
function urlOf(database) {
  const url = new URL(server);
  url.pathname = `/${database}`;
  return url.href;
}

/**
 * @param name - the database of the run
 * @returns `problem` if no server can be used; otherwise the `settings` of the server, `fresh()`, which creates the database again
 *   and returns its URL, and `drop()`
 */
export async function openPostgres(name) {
  const client = new pg.Client({ connectionString: server, connectionTimeoutMillis: 5000 });
  try {
    await client.connect();
  } catch (error) {
    return { problem: `no Postgres server can be reached (${reasonOf(error)}); name one in POSTGRES_URL` };
  }
  // If the server ends, the next statement fails.
  client.on('error', () => {});
  const settings = {};
  for (const setting of SETTINGS) settings[setting] = (await client.query(`SHOW ${setting}`)).rows[0][setting];
  if (settings.synchronous_commit !== 'on' || settings.fsync !== 'on') {
    await client.end();
    return {
      problem: `the server is not durable: synchronous_commit is ${settings.synchronous_commit}, fsync is ${settings.fsync}; both must be on`,
    };
  }
  const dropped = () => client.query(`DROP DATABASE IF EXISTS "${name}" WITH (FORCE)`);
  return {
    settings,
    async fresh() {
      await dropped();
      await client.query(`CREATE DATABASE "${name}"`);
      // Without a checkpoint, a case would pay for the writes of the previous case. Only an administrator may request it.
      await client.query('CHECKPOINT').catch(() => {});
      return urlOf(name);
    },
    async drop() {
      await dropped();
      await client.end();
    },
  };
}

/** @throws when the sessions of this pool do not wait for the disk */
export async function checkSynchronousCommit(pool) {
  const { rows } = await pool.query('SHOW synchronous_commit');
  if (rows[0].synchronous_commit !== 'on') throw new Error(`synchronous_commit is ${rows[0].synchronous_commit}`);
}

function reasonOf(error) {
  return error.message || error.errors?.map(({ message }) => message).join('; ') || error.code || String(error);
}
