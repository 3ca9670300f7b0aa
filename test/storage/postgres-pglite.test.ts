/** The Postgres storage passes the published suites on PGlite: its SQL holds, without a server. */

import { PGlite } from '@electric-sql/pglite';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { dataSuite } from '../../src/adapters/testing/data-suite.ts';
import { storageSuite } from '../../src/adapters/testing/storage-suite.ts';
import { tokenSuite } from '../../src/adapters/testing/token-suite.ts';

// It takes seconds to start: one for all, and a namespace for each test.
let pglite: PGlite;
let namespaces = 0;

beforeAll(async () => {
  pglite = await PGlite.create();
}, 60_000);
afterAll(() => pglite.close());

const reopen = () => postgresStorage({ pglite, namespace: `test ${namespaces}` });
const create = () => {
  namespaces += 1;
  return reopen();
};

storageSuite({ name: 'postgresStorage on PGlite', create, reopen, owners: 'many', test: { describe, it } });
tokenSuite({ name: 'postgresStorage on PGlite', create, test: { describe, it } });
dataSuite({ name: 'postgresStorage on PGlite', create, test: { describe, it } });
