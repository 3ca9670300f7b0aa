/** The SQLite storage passes the published suite: in a file and in memory, before it is open and after. */

import { describe, it } from 'vitest';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import { storageSuite } from '../../src/adapters/testing/storage-suite.ts';
import { newFile } from './sqlite-files.ts';

// Several owners may work by one handle. Those of several handles exclude each other: sqlite-owners.test.ts.
storageSuite({
  name: 'sqliteStorage',
  create: () => sqliteStorage({ path: ':memory:' }),
  owners: 'many',
  test: { describe, it },
});
storageSuite({
  name: 'sqliteStorage in a file, already open',
  async create() {
    const storage = sqliteStorage({ path: newFile(), synchronous: 'normal' });
    await storage.readState('nobody');
    return storage;
  },
  owners: 'many',
  test: { describe, it },
});
