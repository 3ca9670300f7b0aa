/** The Postgres storage passes the published suite on a real server, by each of its drivers. */

import type pg from 'pg';
import type postgres from 'postgres';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { storageSuite } from '../../src/conformance/storage-suite.ts';
import { createDatabase, findServer, type TestDatabase } from './postgres-server.ts';

const hasServer = await findServer();
let database: TestDatabase;
let pool: pg.Pool;
let sql: postgres.Sql;
let namespaces = 0;

/** Each test has its own namespace. */
const suite = (name: string, open: (namespace: string) => ReturnType<typeof postgresStorage>) => {
  const reopen = () => open(`test ${namespaces}`);
  const create = () => {
    namespaces += 1;
    return reopen();
  };
  storageSuite({ name, create, reopen, workers: 'many', test: { describe, it } });
};

describe.skipIf(!hasServer)('on a server', () => {
  beforeAll(async () => {
    database = await createDatabase();
    pool = database.pool({ max: 6 });
    sql = database.sql({ max: 6 });
  });
  afterAll(() => database.drop());

  suite('postgresStorage by pg', (namespace) => postgresStorage({ pool, namespace }));
  suite('postgresStorage by postgres.js', (namespace) => postgresStorage({ sql, namespace }));
  suite('postgresStorage without sessions', (namespace) => postgresStorage({ pool, namespace, sessions: false }));
});
