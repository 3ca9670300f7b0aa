/** The engine passes the published suite on the Postgres storage with a real server. Each process has its own connections. */

import { afterAll, beforeAll, describe, it, vi } from 'vitest';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { engineSuite } from '../../src/entries/conformance.ts';
import { createDatabase, findServer, type TestDatabase } from '../storage/postgres-server.ts';
import { flowShare } from './share.ts';

// A crash at every commit takes hundreds of runs, and each commit waits for the disk.
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
      return { connect: () => postgresStorage({ url: database.connectionString, namespace }) };
    },
    workers: 'many',
    share: flowShare(),
    test: { describe, it },
  });
});
