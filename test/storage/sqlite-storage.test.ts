/** The SQLite storage passes the published suite: in a file and in memory, before it is open and after. */

import { describe, it } from 'vitest';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import { storageSuite } from '../../src/conformance/storage-suite.ts';
import { newFile } from './sqlite-files.ts';

// Several workers may use one handle. Workers of several handles exclude each other: sqlite-workers.test.ts.
storageSuite({
  name: 'sqliteStorage',
  create: () => sqliteStorage({ path: ':memory:' }),
  workers: 'many',
  test: { describe, it },
});
let file: string;
const open = () => sqliteStorage({ path: file, synchronous: 'normal' });
storageSuite({
  name: 'sqliteStorage in a file, already open',
  async create() {
    file = newFile();
    const storage = open();
    await storage.state.read('nobody');
    return storage;
  },
  reopen: open,
  workers: 'many',
  handles: 'one',
  test: { describe, it },
});
