/** The Postgres storage passes the published suite on PGlite: its SQL holds, without a server. */

import { PGlite } from '@electric-sql/pglite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { storageSuite } from '../../src/conformance/storage-suite.ts';

// PGlite takes seconds to start, so all tests share one instance, and each has its own namespace.
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

storageSuite({ name: 'postgresStorage on PGlite', create, reopen, workers: 'many', test: { describe, it } });

describe('prepared statements on PGlite', () => {
  it('are prepared again after the app has discarded them', async () => {
    const storage = create();
    await storage.kv.put('key', 1);
    await pglite.exec('DISCARD ALL');
    await storage.kv.put('key', 2);
    expect(await storage.kv.get('key', 0)).toBe(2);
  });

  it('are left out for an instance without the protocol, which runs texts', async () => {
    const { query, exec, transaction, listen } = pglite;
    const plain = {
      query: query.bind(pglite),
      exec: exec.bind(pglite),
      transaction: transaction.bind(pglite),
      listen: listen.bind(pglite),
    };
    const storage = postgresStorage({ pglite: plain, namespace: `test ${namespaces}` });
    await storage.kv.put('plain', 'text');
    expect(await storage.kv.get('plain', 0)).toBe('text');
  });
});
