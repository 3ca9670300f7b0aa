/** The engine on the Postgres storage passes the published suite on a real server: each process has connections of its own. */

import { afterAll, beforeAll, describe, it, vi } from 'vitest';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { engineSuite } from '../../src/testing.ts';
import { createDatabase, findServer, type TestDatabase } from '../storage/postgres-server.ts';
import { flowShare } from './share.ts';

// A crash at every write is hundreds of runs, each write a flush of the disk.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 60_000 });

const hasServer = await findServer();
let database: TestDatabase;
let stores = 0;

describe.skipIf(!hasServer)('on a server', () => {
  beforeAll(async () => {
    database = await createDatabase();
  });
  afterAll(() => database.drop());

  engineSuite({
    name: 'postgresStorage',
    create() {
      stores += 1;
      const namespace = `store ${stores}`;
      return { connect: () => postgresStorage({ connectionString: database.connectionString, namespace }) };
    },
    owners: 'many',
    share: flowShare(),
    test: { describe, it },
  });
});
