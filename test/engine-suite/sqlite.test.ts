/** The engine passes the published suite on the SQLite storage. Each process has its own handle on one file. */

import { afterAll, describe, it, vi } from 'vitest';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import { engineSuite } from '../../src/entries/conformance.ts';
import { newFile } from '../storage/sqlite-files.ts';

// A crash at every commit takes hundreds of runs, and each commit waits for the disk.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 60_000 });

// All stores share one file, and each has a namespace, because creating a file costs more than most tests.
const path = newFile();
const open = sqliteStorage({ path });
afterAll(() => open.close());
let stores = 0;

engineSuite({
  name: 'sqliteStorage',
  async create() {
    await open.definitions.get('-');
    stores += 1;
    const namespace = `store-${stores}`;
    return { connect: () => sqliteStorage({ path, namespace, synchronous: 'normal' }) };
  },
  test: { describe, it },
});
