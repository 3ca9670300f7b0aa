/** SQL databases in Postgres: the published cases on a real server over both drivers and on PGlite, and what only Postgres can do. */

import { PGlite } from '@electric-sql/pglite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sqlSuite } from '../../src/conformance/sql-suite.ts';
import type { SqlDatabase, SqlStatement } from '../../src/engine/storage/data.port.ts';
import { postgresDatabase } from '../../src/entries/postgres.ts';
import { runConfigs } from '../operations/storage-run.ts';
import { createDatabase, findServer, type TestDatabase, until } from './postgres-server.ts';

const hasServer = await findServer();
const signal = new AbortController().signal;
const page = { limit: 100, offset: 0, signal };
const sql = (strings: TemplateStringsArray, ...values: number[]): SqlStatement => ({ strings: [...strings], values });
const text = (statement: string): SqlStatement => ({ strings: [statement], values: [] });

const EMPTY = 'DROP SCHEMA public CASCADE; CREATE SCHEMA public';

describe.runIf(hasServer)('on a server', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createDatabase();
  });
  afterAll(() => database.drop());

  const onServer = (open: () => ReturnType<typeof postgresDatabase>) => ({
    create: async () => {
      await database.query(EMPTY);
      return withClose(open());
    },
    reopen: () => withClose(open()),
    test: { describe, it },
  });
  const withClose = (db: ReturnType<typeof postgresDatabase>) => ({ sql: db, close: () => db.close() });
  const byAddress = () => postgresDatabase({ url: database.connectionString });
  sqlSuite({ name: 'postgresDatabase with pg', ...onServer(byAddress) });
  let instance: ReturnType<TestDatabase['sql']> | undefined;
  sqlSuite({
    name: 'postgresDatabase with postgres.js',
    ...onServer(() => {
      instance ??= database.sql({ max: 2 });
      return postgresDatabase({ sql: instance });
    }),
  });

  describe('postgresDatabase', () => {
    let db: ReturnType<typeof postgresDatabase>;
    beforeAll(async () => {
      await database.query(EMPTY);
      db = byAddress();
    });
    afterAll(() => db.close());

    it.each(['pg', 'postgres.js'])('values of each type become JSON, with %s', async (driver) => {
      const on: SqlDatabase = driver === 'pg' ? db : postgresDatabase({ sql: database.sql({ max: 1 }) });
      const { rows } = await on.query(
        text(`SELECT 9007199254740993::bigint AS big, 12::bigint AS small, 12.50::numeric AS price, true AS yes,
          '\\x00ff'::bytea AS bytes, '2026-03-01 02:00:00.25+02'::timestamptz AS at, '2026-03-01 02:00'::timestamp AS local,
          '2026-03-01'::date AS day, '{"a":[1]}'::jsonb AS doc, '{"n":[9007199254740993,-1e3],"9007199254740993":"\\"9007199254740993"}'::json AS large, 'NaN'::float8 AS nan, 0.1::float8 AS real, ARRAY[1,2] AS list, NULL AS none`),
        page,
      );
      expect(rows).toEqual([
        {
          ...{ big: '9007199254740993', small: 12, price: '12.50', yes: true, bytes: 'AP8=' },
          ...{ at: '2026-03-01T00:00:00.250Z', local: '2026-03-01T02:00:00', day: '2026-03-01', doc: { a: [1] } },
          large: { n: ['9007199254740993', -1000], '9007199254740993': '"9007199254740993' },
          ...{ nan: 'NaN', real: 0.1, list: '{1,2}', none: null },
        },
      ]);
    });

    it('a large number beside a text of 12,000,000 characters, and one within a text, are read', async () => {
      const made = `json_build_object('t', repeat('x', 12000000), 'n', 9007199254740993, 'q', '\\" 9007199254740993')`;
      const [row] = (await db.query(text(`SELECT ${made} AS doc`), page)).rows;
      const doc = row?.doc as Readonly<Record<string, string>>;
      expect([doc.t?.length, doc.n, doc.q]).toEqual([12_000_000, '9007199254740993', '\\" 9007199254740993']);
    });

    it.each(['pg', 'postgres.js'])(
      'values of each type are bound as their column needs them, with %s',
      async (driver) => {
        const on: SqlDatabase = driver === 'pg' ? db : postgresDatabase({ sql: database.sql({ max: 1 }) });
        await on.execute(text('CREATE TABLE kinds (n int, b boolean, j jsonb, t timestamptz, d date, f float8)'), {
          signal,
        });
        const values = [7, true, { a: 'x' }, '2026-01-01T00:00:00.5Z', '2026-02-03', 0.5];
        await on.execute({ strings: ['INSERT INTO kinds VALUES (', ',', ',', ',', ',', ',', ')'], values }, { signal });
        expect((await on.query(text('SELECT * FROM kinds'), page)).rows).toEqual([
          { n: 7, b: true, j: { a: 'x' }, t: '2026-01-01T00:00:00.500Z', d: '2026-02-03', f: 0.5 },
        ]);
        await on.execute(text('DROP TABLE kinds'), { signal });
      },
    );

    it.each([
      "SELECT pg_read_file('/etc/passwd')",
      'SELECT "pg_read_file"(\'/etc/passwd\')',
      "SELECT ('/etc/passwd'::text).pg_read_binary_file",
      'SELECT U&"pg\\005fread_file"(\'/etc/passwd\')',
      "SELECT lo_import('/etc/passwd')",
      "SELECT set_config('transaction_read_only', 'off', false)",
      "SELECT query_to_xml('SELECT 1', true, true, '')",
      "SELECT * FROM dblink('x', 'SELECT 1')",
      'SELECT * FROM pg_authid',
      'SELECT * FROM ensemble.tokens',
      'SELECT * FROM "ensemble" /* x */ . tokens',
      'SELECT pg_advisory_lock(1)',
      "COPY users FROM PROGRAM 'id'",
    ])('refuses %s', async (statement) => {
      await expect(db.query(text(statement), page)).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    });

    it.each([
      "COPY users TO '/tmp/x'",
      'DO $$ BEGIN END $$',
      'SET ROLE postgres',
      'LISTEN x',
      'CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1; SELECT 2 $$',
      'CREATE EXTENSION dblink',
      'DROP SCHEMA ensemble',
      'GRANT ALL ON users TO public',
      'ALTER SYSTEM SET x = 1',
      'CALL f()',
    ])('refuses to execute %s', async (statement) => {
      await expect(db.execute(text(statement), { signal })).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    });

    it('the server refuses a query that changes data in a way that its text does not show', async () => {
      await database.query(
        'CREATE TABLE log (id int); CREATE FUNCTION note() RETURNS int LANGUAGE sql AS $$ INSERT INTO log VALUES (1) RETURNING 1 $$',
      );
      for (const statement of [
        'SELECT note()',
        'WITH a AS (INSERT INTO log VALUES (1) RETURNING 1) SELECT * FROM a',
        'SELECT 1 INTO copy',
      ]) {
        await expect(db.query(text(statement), page), statement).rejects.toMatchObject({
          code: 'AGENT_FAILED',
          retryable: false,
        });
      }
      expect((await database.query('SELECT * FROM log')).rows).toEqual([]);
    });

    it('a value of a wrong form is not in the message', async () => {
      const given: SqlStatement = { strings: ['SELECT 1 AS a WHERE 1 = CAST(', ' || $$x$$ AS int)'], values: ['pw'] };
      await expect(db.query(given, page)).rejects.toMatchObject({
        code: 'AGENT_FAILED',
        message: 'SQL: invalid input syntax for type integer: "..."',
      });
    });

    it('a value whose type Postgres can not derive is refused with the cast that is missing', async () => {
      for (const given of [sql`SELECT ${1} + ${2} AS sum`, sql`SELECT concat('a', ${1}) AS a`]) {
        await expect(db.query(given, page)).rejects.toMatchObject({
          message: expect.stringMatching(/^SQL: .*; write a cast at the value, such as CAST\(\$\{\.\.\.\} AS int\)$/),
        });
      }
      await expect(db.query(text('SELECT 1 + now()'), page)).rejects.toThrow(/^(?!.*write a cast)/);
    });

    it('a statement that takes too long is a TIMEOUT that is retried, and one that is aborted stops on the server', async () => {
      const quick = postgresDatabase({ url: database.connectionString, timeout: 200 });
      await expect(quick.query(text('SELECT pg_sleep(60)'), page)).rejects.toMatchObject({
        code: 'TIMEOUT',
        retryable: true,
      });
      await quick.close();
      const abort = new AbortController();
      const running = db.query(text('SELECT pg_sleep(50) AS long_sleep'), { ...page, signal: abort.signal });
      Promise.resolve(running).catch(() => undefined);
      const asleep = async () =>
        (
          await database.query(
            "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND wait_event = 'PgSleep' AND datname = current_database()",
          )
        ).rowCount;
      await until(asleep, 'the statement runs');
      abort.abort(new Error('gone'));
      await expect(running).rejects.toThrow('gone');
      await until(async () => !(await asleep()), 'the statement was stopped');
    });

    it('a stream sees one moment, and its connection is free afterwards', async () => {
      await database.query('CREATE TABLE many AS SELECT g AS id FROM generate_series(1, 5000) g');
      const one = postgresDatabase({ pool: database.pool({ max: 2 }) });
      let rows = 0;
      for await (const part of one.stream(text('SELECT id FROM many ORDER BY id'), { signal })) {
        if (rows === 0) await database.query('DELETE FROM many WHERE id > 100');
        rows += part.length;
      }
      expect(rows).toBe(5000);
      for (let i = 0; i < 4; i++) for await (const _ of one.stream(text('SELECT id FROM many'), { signal })) break;
      expect((await one.query(text('SELECT count(*) AS n FROM many'), page)).rows).toEqual([{ n: 100 }]);
    });

    it('a value never becomes part of a statement of an agent', async () => {
      await database.query("CREATE TABLE users (id int, name text); INSERT INTO users VALUES (1, 'Ada')");
      const query = { type: 'sql', action: 'query' };
      const outputs = await runConfigs(
        [
          { ...query, query: 'SELECT * FROM users WHERE name = ${input.name}' },
          { ...query, query: 'SELECT * FROM users WHERE name = $1', params: ['${input.name}'] },
          { ...query, query: 'SELECT * FROM users WHERE name = :name::text', params: { name: '${input.name}' } },
          { ...query, action: 'execute', query: 'DELETE FROM users WHERE name = ${input.name}' },
        ],
        { bindings: { sql: db }, input: { name: "' OR 1=1; DROP TABLE users; --" } },
      );
      expect(outputs.slice(0, 3)).toEqual(Array.from({ length: 3 }, () => ({ results: [], count: 0 })));
      expect(outputs[3]).toEqual({ changes: 0, success: true });
    });
  });
});

describe('on PGlite', () => {
  let pglite: PGlite;
  beforeAll(async () => {
    pglite = await PGlite.create();
  }, 60_000);
  afterAll(() => pglite.close());
  sqlSuite({
    name: 'postgresDatabase with PGlite',
    create: async () => {
      await pglite.exec(EMPTY);
      return { sql: postgresDatabase({ pglite }) };
    },
    test: { describe, it },
  });

  it('values of each type are bound and become JSON', async () => {
    const db = postgresDatabase({ pglite });
    await db.execute(text('CREATE TABLE pairs (b boolean, j jsonb, t timestamptz, n numeric)'), { signal });
    const values = [false, { a: 1 }, '2026-01-01T00:00:00Z', '1.50'];
    await db.execute({ strings: ['INSERT INTO pairs VALUES (', ',', ',', ',', ')'], values }, { signal });
    expect((await db.query(sql`SELECT * FROM pairs`, page)).rows).toEqual([
      { b: false, j: { a: 1 }, t: '2026-01-01T00:00:00.000Z', n: '1.50' },
    ]);
  });
});

describe('options of postgresDatabase', () => {
  it.each([
    [{}, /one of pool, sql, pglite, url/],
    [{ url: 'mysql://x' }, /postgres:\/\//],
    [{ connectionString: 'postgres://x' }, /did you mean `url`\?/],
    [{ url: 'postgres://x', schema: 'x' }, /`schema` is not an option/],
    [{ url: 'postgres://x', timeout: 1 }, /timeout/],
  ])('%o is refused', (options, message) => {
    expect(() => postgresDatabase(options as never)).toThrow(message);
  });
});
