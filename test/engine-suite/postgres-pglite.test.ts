/** The engine on the Postgres storage passes the published suite on PGlite: without a server, all processes on one connection. */

import { PGlite } from '@electric-sql/pglite';
import { afterAll, beforeAll, describe, it, vi } from 'vitest';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { engineSuite } from '../../src/testing.ts';
import { flowShare } from './share.ts';

// It takes seconds to start: one for all, and a namespace for each store.
// A crash at every write is hundreds of runs, each write a flush of the disk.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 60_000 });

let pglite: PGlite;
let stores = 0;

beforeAll(async () => {
  pglite = await PGlite.create();
}, 60_000);
afterAll(() => pglite.close());

engineSuite({
  name: 'postgresStorage on PGlite',
  create() {
    stores += 1;
    const namespace = `store ${stores}`;
    return { connect: () => postgresStorage({ pglite, namespace }) };
  },
  owners: 'many',
  share: flowShare(),
  test: { describe, it },
});
