/** Every source of components passes the published suite: memory, SQLite, Postgres and git. */

import type pg from 'pg';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { storageComponents } from '../../src/adapters/components/storage-components.ts';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import { componentSuite } from '../../src/conformance/component-suite.ts';
import type { Storage } from '../../src/entries/adapter.ts';
import { gitComponents } from '../../src/entries/git.ts';
import { manualClock } from '../../src/entries/testing.ts';
import { memoryStorage } from '../../src/index.ts';
import { createDatabase, findServer, type TestDatabase } from '../storage/postgres-server.ts';
import { newFile } from '../storage/sqlite-files.ts';
import { hasGit, newRepository } from './repositories.ts';

function suite(name: string, make: () => { readonly open: () => Storage; readonly close?: () => Promise<void> }) {
  let made: ReturnType<typeof make>;
  const holder = () => {
    const storage = made.open();
    return {
      components: storageComponents(storage.documents, manualClock()),
      close: () => made.close?.() ?? storage.close(),
    };
  };
  const create = () => {
    made = make();
    return holder();
  };
  componentSuite({ name, create, reopen: holder, test: { describe, it } });
}

suite('memoryStorage', () => {
  const storage = memoryStorage();
  // Its data ends with it, so another handle is the same one.
  return { open: () => storage, close: async () => undefined };
});

suite('sqliteStorage', () => {
  const path = newFile();
  return { open: () => sqliteStorage({ path, synchronous: 'normal' }) };
});

for (const bare of hasGit ? [false, true] : []) {
  let path: string;
  const open = () => ({ components: gitComponents({ path }) });
  const create = () => {
    path = newRepository({ bare });
    return open();
  };
  const name = bare ? 'gitComponents, bare' : 'gitComponents';
  componentSuite({ name, create, reopen: open, keepsTimes: false, test: { describe, it } });
}

const hasServer = await findServer();
describe.skipIf(!hasServer)('on a server', () => {
  let database: TestDatabase;
  let pool: pg.Pool;
  let namespaces = 0;
  beforeAll(async () => {
    database = await createDatabase();
    pool = database.pool({ max: 6 });
  });
  afterAll(() => database.drop());

  suite('postgresStorage', () => {
    namespaces += 1;
    const namespace = `test ${namespaces}`;
    return { open: () => postgresStorage({ pool, namespace }) };
  });
});
