/** The kinds of stores under test. */

import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { loadLibrary } from './library.mjs';
import { findBinaries, startServer } from './postgres-server.mjs';

/**
 * SQLite in files of a folder, and Postgres on its own server. If the programs of Postgres are missing, Postgres is skipped with a message.
 * @param wanted - `sqlite` or `postgres`; undefined: both
 */
export async function findStores(wanted, folder) {
  if (wanted !== undefined && wanted !== 'sqlite' && wanted !== 'postgres')
    throw new Error(`--store must be sqlite or postgres, not ${wanted}`);
  const found = wanted === 'postgres' ? [] : [sqliteStores(folder)];
  if (wanted === 'sqlite') return found;
  const { postgresStorage } = await loadLibrary();
  if (!postgresStorage) throw new Error('the built library has no entry `postgres`: run `npm run build`');
  if (findBinaries()) return [...found, postgresStores(await startServer())];
  console.log('skipped: Postgres (no `initdb` and `postgres` on this machine)');
  return found;
}

function sqliteStores(folder) {
  return {
    kind: 'sqlite',
    /** A new and empty store. */
    newStore: () => ({ kind: 'sqlite', path: join(folder, `${newName()}.db`) }),
    async remove({ path }) {
      for (const end of ['', '-wal', '-shm', '-owner']) rmSync(path + end, { force: true });
    },
    async close() {},
  };
}

function postgresStores(server) {
  const { url } = server;
  return {
    kind: 'postgres',
    server,
    newStore: () => ({ kind: 'postgres', url, schema: `t${newName()}` }),
    async remove({ schema }) {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
      await client.end();
    },
    close: () => server.remove(),
  };
}

const newName = () => randomBytes(4).toString('hex');
