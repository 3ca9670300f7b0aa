/** Opening a Postgres store: options, missing drivers, old, new and foreign schemas, and open connections. */

import pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openClient } from '../../src/adapters/storage/postgres/drivers/load-driver.ts';
import { readPostgresOptions } from '../../src/adapters/storage/postgres/options.ts';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { MIGRATIONS, migrate } from '../../src/adapters/storage/postgres/tables/migrations.ts';
import { FIRST_VERSION, newestVersion } from '../../src/adapters/storage/sql/schema.ts';
import { accept, enqueue, execution, executionId, register, T0 } from '../../src/conformance/storage-suite/context.ts';
import { createDatabase, findServer, type TestDatabase, until } from './postgres-server.ts';

const hasServer = await findServer();
const nowhere = 'postgres://nobody@127.0.0.1:1/none';

describe('options', () => {
  const pool = { connect() {}, on() {}, end: async () => {} };
  it.each<[string, object]>([
    ['one of pool, sql, pglite, url must say where the database is, not none', {}],
    ['one of pool, sql, pglite, url must say where the database is, not pool and url', { pool, url: nowhere }],
    ['`pool` must be a Pool of `pg`', { pool: {} }],
    ['`sql` must be an instance of `postgres`', { sql: {} }],
    ['`pglite` must be an instance of PGlite', { pglite: {} }],
    ['`url` must be an address that begins with postgres:// or postgresql://', { url: 'mysql://x' }],
    ['`schema` must be', { pool, schema: 'A' }],
    ['`schema` must be', { pool, schema: 'pg_x' }],
    ['`schema` must be', { pool, schema: 'a"b' }],
    ['`namespace` must be text of 1 to 128 characters', { pool, namespace: '' }],
    ['`namespace` must be text of 1 to 128 characters', { pool, namespace: 'a\u0000' }],
    ['`sessions` must be true or false', { pool, sessions: 1 }],
    ['`timeout` must be a duration', { pool, timeout: 100.5 }],
    ['`sessionGraceMs` must be a whole number from 500 to 600,000, not 100', { pool, sessionGraceMs: 100 }],
    ['`sessionGraceMs` has no effect with sessions: false', { pool, sessionGraceMs: 5000, sessions: false }],
    [
      '`timeout` must be a duration such as `30s` or `5m`, or milliseconds, from 100 to 600,000 ms, not 5',
      { pool, timeout: 5 },
    ],
    ['`pool` must have at least 2 connections, not 1', { pool: { ...pool, options: { max: 1 } } }],
  ])('%s', (message, options) => {
    expect(() => postgresStorage(options)).toThrow(
      new RegExp(`^postgresStorage: ${message.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}`),
    );
    expect(() => postgresStorage(options)).toThrow(TypeError);
  });

  it('without sessions, a pool of one connection is enough', () => {
    expect(() => postgresStorage({ pool: { ...pool, options: { max: 1 } }, sessions: false })).not.toThrow();
  });

  it('pools and instances of the drivers have the right types', () => {
    const real = new pg.Pool({ connectionString: nowhere });
    expect(readPostgresOptions({ pool: real })).toMatchObject({
      schema: 'ensemble',
      namespace: 'default',
      sessions: true,
    });
  });
});

describe('without a database', () => {
  it('a missing package is named, with the remedy', async () => {
    const settings = readPostgresOptions({ url: nowhere });
    const load = (name: string) => Promise.reject(new Error(`Cannot find package '${name}' imported from x.js`));
    await expect(openClient(settings, load)).rejects.toMatchObject({
      code: 'NOT_CONFIGURED',
      message:
        'Postgres: the package pg is not installed; `npm install pg`, or pass a pool, an instance of postgres or of PGlite',
    });
    await expect(openClient(settings, () => Promise.reject(new Error('bad binary')))).rejects.toMatchObject({
      code: 'NOT_CONFIGURED',
      message: expect.stringContaining("is there but can't be loaded (bad binary)"),
    });
  });

  it('nothing is opened before the first use, or by `close`', async () => {
    const storage = postgresStorage({ url: nowhere });
    await storage.close();
    await expect(Promise.resolve(storage.state.read('a'))).rejects.toMatchObject({ code: 'OVERLOADED' });
  });

  it.each([
    ['a url', () => ({ url: nowhere })],
    ['a pool', () => ({ pool: new pg.Pool({ host: '127.0.0.1', port: 1 }) })],
    ['an instance of postgres', () => ({ sql: postgres(nowhere) })],
  ])('the first call fails within 2 s with host, port and cause: %s', async (_, source) => {
    const storage = postgresStorage(source());
    const before = performance.now();
    await expect(Promise.resolve(storage.state.read('a'))).rejects.toMatchObject({
      code: 'NOT_CONFIGURED',
      message: expect.stringMatching(
        /^postgresStorage: Postgres was not reached at 127\.0\.0\.1:1 within 2 s \(.*ECONNREFUSED.*\); start it, or correct the address$/,
      ),
      details: { host: '127.0.0.1', port: 1 },
      retryable: false,
    });
    expect(performance.now() - before).toBeLessThan(2500);
    await storage.close();
  });
});

describe.skipIf(!hasServer)('on a server', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createDatabase();
  });
  afterAll(() => database.drop());

  const open = (options: object = {}) => postgresStorage({ url: database.connectionString, ...options });
  const tables = async (schema: string) =>
    (
      await database.query('SELECT table_name FROM information_schema.tables WHERE table_schema = $1 ORDER BY 1', [
        schema,
      ])
    ).rows.map(({ table_name }) => table_name);

  it('a connection string is enough; its connections end with the storage', async () => {
    const storage = open({ schema: 'string' });
    await accept(storage, execution(1));
    expect((await storage.executions.get(executionId(1)))?.status).toBe('running');
    await storage.close();
    await storage.close();
    const connected =
      "SELECT FROM pg_stat_activity WHERE application_name = 'ensemble-orchestrator' AND datname = current_database()";
    await until(async () => (await database.query(connected)).rowCount === 0, 'its connections to end');
  });

  it("the app's pool stays open, and all its connections are returned", async () => {
    const pool = database.pool({ max: 3 });
    const storage = postgresStorage({ pool, schema: 'pooled' });
    await register(storage);
    expect(pool.totalCount - pool.idleCount).toBe(1);
    await storage.close();
    expect(pool.totalCount - pool.idleCount).toBe(0);
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
  });

  it("the app's instance of postgres stays open", async () => {
    const sql = database.sql({ max: 1 });
    const storage = postgresStorage({ sql, schema: 'instance' });
    await register(storage);
    await storage.close();
    expect([...(await sql`SELECT 1 AS one`)]).toEqual([{ one: 1 }]);
  });

  it("an app's own types, parsers and transforms don't apply", async () => {
    const sql = database.sql({
      max: 2,
      transform: {
        column: { from: () => 'x' },
        value: { from: () => 'y' },
        row: { from: (row: object) => ({ ...row }) },
        undefined: null,
      },
    } as never);
    for (const storage of [
      postgresStorage({ sql, schema: 'own_types' }),
      postgresStorage({
        pool: database.pool({ types: { getTypeParser: () => () => 'z' } } as never),
        schema: 'own_types',
      }),
    ]) {
      await enqueue(storage, execution(1));
      expect(await storage.executions.getAccepted(executionId(1))).toEqual(execution(1));
      await storage.close();
    }
  });

  it('when many processes create a new schema at the same time, it is created once', async () => {
    const stores = Array.from({ length: 6 }, () => open({ schema: 'at_once' }));
    await Promise.all(stores.map((storage, number) => enqueue(storage, execution(number))));
    expect(await stores[0]?.executions.countQueued(10)).toBe(6);
    for (const storage of stores) await storage.close();
    expect(await tables('at_once')).toContain('schema_version');
  });

  it('a migration that fails changes nothing, and the next attempt continues where the last one ended', async () => {
    const client = await openClient(readPostgresOptions({ url: database.connectionString }));
    await expect(
      migrate(client, 'broken', [...MIGRATIONS, 'CREATE TABLE $.two (a integer); SELECT 1/0']),
    ).rejects.toThrow();
    expect(await tables('broken')).toEqual([]);
    await migrate(client, 'broken');
    await migrate(client, 'broken', [...MIGRATIONS, 'CREATE TABLE $.two (a integer)']);
    expect(await tables('broken')).toContain('two');
    await client.close();
  });

  it('a schema that is newer than the library is refused and not changed', async () => {
    const storage = open({ schema: 'newer' });
    await enqueue(storage, execution(1));
    await storage.close();
    await database.query('UPDATE newer.schema_version SET version = 99');
    const again = open({ schema: 'newer' });
    await expect(Promise.resolve(again.executions.countQueued(1))).rejects.toMatchObject({
      code: 'NOT_CONFIGURED',
      message: expect.stringContaining('was written by a newer version of ensemble-orchestrator (its version is 99'),
      details: { version: 99, supported: newestVersion(MIGRATIONS) },
    });
    await again.close();
    expect((await database.query('SELECT version FROM newer.schema_version')).rows).toEqual([{ version: 99 }]);
    expect((await database.query('SELECT count(*)::int AS n FROM newer.executions')).rows).toEqual([{ n: 1 }]);
  });

  it('a schema from before the first release is refused and not changed', async () => {
    await database.query(
      `CREATE SCHEMA older; CREATE TABLE older.schema_version (version integer); INSERT INTO older.schema_version VALUES (${FIRST_VERSION - 1})`,
    );
    const storage = open({ schema: 'older' });
    await expect(Promise.resolve(storage.executions.countQueued(1))).rejects.toMatchObject({
      code: 'NOT_CONFIGURED',
      message: expect.stringContaining(
        'the schema older was written before the first release of ensemble-orchestrator',
      ),
      details: { version: FIRST_VERSION - 1, supported: FIRST_VERSION },
    });
    await storage.close();
    expect(await tables('older')).toEqual(['schema_version']);
  });

  it('a schema without a version is refused', async () => {
    await database.query('CREATE SCHEMA unversioned; CREATE TABLE unversioned.schema_version (version integer)');
    const storage = open({ schema: 'unversioned' });
    await expect(Promise.resolve(storage.executions.countQueued(1))).rejects.toMatchObject({ code: 'NOT_CONFIGURED' });
    await storage.close();
  });

  it("an existing schema is used without the right to create one; an app's own tables in it stay", async () => {
    const role = `ensemble_test_${process.pid}`;
    await database.query(
      `CREATE ROLE ${role} LOGIN; CREATE SCHEMA given AUTHORIZATION ${role}; CREATE TABLE given.mine (a integer)`,
    );
    const connectionString = database.connectionString.replace(/\/\/[^@]*@/, `//${role}@`);
    try {
      const storage = postgresStorage({ url: connectionString, schema: 'given' });
      await enqueue(storage, execution(1));
      await storage.close();
      expect(await tables('given')).toEqual(expect.arrayContaining(['mine', 'executions']));
      const refused = postgresStorage({ url: connectionString, schema: 'not_given' });
      await expect(Promise.resolve(refused.executions.countQueued(1))).rejects.toMatchObject({
        code: 'NOT_CONFIGURED',
        message: expect.stringContaining('permission denied'),
      });
      await refused.close();
    } finally {
      await database.query(`DROP OWNED BY ${role} CASCADE; DROP ROLE ${role}`);
    }
  });

  it("a missing database, and one that can't store all text, are refused with the reason", async () => {
    const missing = open({ url: database.connectionString.replace(/[^/]*$/, 'not_there') });
    await expect(Promise.resolve(missing.executions.countQueued(1))).rejects.toMatchObject({
      code: 'NOT_CONFIGURED',
      message: expect.stringContaining('does not exist'),
    });
    await missing.close();
    const name = `ensemble_test_latin_${process.pid}`;
    await database.query(`CREATE DATABASE ${name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`);
    const latin = open({ url: database.connectionString.replace(/[^/]*$/, name) });
    await expect(Promise.resolve(latin.executions.countQueued(1))).rejects.toMatchObject({
      code: 'NOT_CONFIGURED',
      message: expect.stringContaining('LATIN1'),
    });
    await latin.close();
    await database.query(`DROP DATABASE ${name} WITH (FORCE)`);
  });

  it('namespaces of one schema, and schemas of one database, see nothing of each other', async () => {
    const stores = [open(), open({ namespace: 'other' }), open({ schema: 'elsewhere' })];
    for (const [number, storage] of stores.entries()) {
      await register(storage);
      await enqueue(storage, execution(1, { input: number }));
      await storage.kv.put('key', number);
    }
    for (const [number, storage] of stores.entries()) {
      expect((await storage.executions.get(executionId(1)))?.input).toBe(number);
      expect(await storage.executions.countQueued(10)).toBe(1);
      expect(await storage.kv.get('key', T0)).toBe(number);
      await storage.close();
    }
  });
});
