/** The engine on the SQLite storage passes the published suite: each process has a handle of its own on one file. */

import { afterAll, describe, it, vi } from 'vitest';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import { engineSuite } from '../../src/testing.ts';
import { newFile } from '../storage/sqlite-files.ts';

// A crash at every write is hundreds of runs, each write a flush of the disk.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 60_000 });

// One file, and a namespace for each store: to make a file costs more than most of the tests.
const path = newFile();
const open = sqliteStorage({ path });
afterAll(() => open.close());
let stores = 0;

engineSuite({
  name: 'sqliteStorage',
  async create() {
    await open.getDefinition('-');
    stores += 1;
    const namespace = `store-${stores}`;
    return { connect: () => sqliteStorage({ path, namespace, synchronous: 'normal' }) };
  },
  test: { describe, it },
});
