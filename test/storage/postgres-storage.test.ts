/** The Postgres storage passes the published suites on a real server, by each of its drivers. */

import type pg from 'pg';
import type postgres from 'postgres';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { dataSuite } from '../../src/adapters/testing/data-suite.ts';
import { storageSuite } from '../../src/adapters/testing/storage-suite.ts';
import { tokenSuite } from '../../src/adapters/testing/token-suite.ts';
import { createDatabase, findServer, type TestDatabase } from './postgres-server.ts';

const hasServer = await findServer();
let database: TestDatabase;
let pool: pg.Pool;
let sql: postgres.Sql;
let namespaces = 0;

/** Each test has a namespace of its own. */
const suites = (name: string, open: (namespace: string) => ReturnType<typeof postgresStorage>) => {
  const reopen = () => open(`test ${namespaces}`);
  const create = () => {
    namespaces += 1;
    return reopen();
  };
  storageSuite({ name, create, reopen, owners: 'many', test: { describe, it } });
  tokenSuite({ name, create, test: { describe, it } });
  dataSuite({ name, create, test: { describe, it } });
};

describe.skipIf(!hasServer)('on a server', () => {
  beforeAll(async () => {
    database = await createDatabase();
    pool = database.pool({ max: 6 });
    sql = database.sql({ max: 6 });
  });
  afterAll(() => database.drop());

  suites('postgresStorage by pg', (namespace) => postgresStorage({ pool, namespace }));
  suites('postgresStorage by postgres.js', (namespace) => postgresStorage({ sql, namespace }));
  suites('postgresStorage without sessions', (namespace) => postgresStorage({ pool, namespace, sessions: false }));
});
