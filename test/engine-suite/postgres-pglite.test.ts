/** The engine passes the published suite on the Postgres storage with PGlite: without a server, on one connection. */

import { PGlite } from '@electric-sql/pglite';
import { afterAll, beforeAll, describe, it, vi } from 'vitest';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { engineSuite } from '../../src/entries/conformance.ts';
import { flowShare } from './share.ts';

// PGlite takes seconds to start, so all stores share one instance and each has a namespace.
// A crash at every commit takes hundreds of runs, and each commit waits for the disk.
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
  workers: 'many',
  share: flowShare(),
  test: { describe, it },
});
