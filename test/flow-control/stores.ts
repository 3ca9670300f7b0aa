/** Stores for tests with several processes. */

import { afterAll } from 'vitest';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import { memoryStorage, type Storage } from '../../src/index.ts';
import { createDatabase, findServer, type TestDatabase } from '../storage/postgres-server.ts';
import { newFile } from '../storage/sqlite-files.ts';

const isThere = await findServer();
const databases: TestDatabase[] = [];
afterAll(() => Promise.all(databases.map((database) => database.drop())));

/** For each process, a storage over the same data: one process, and two on Postgres. */
export const STORES: Readonly<Record<string, () => Promise<Storage[]>>> = {
  memory: async () => [memoryStorage()],
  SQLite: async () => [sqliteStorage({ path: newFile() })],
  ...(isThere && {
    async Postgres() {
      const database = await createDatabase();
      databases.push(database);
      return [1, 2].map(() => postgresStorage({ pool: database.pool({ max: 4 }) }));
    },
  }),
};
