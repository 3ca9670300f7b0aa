/** The conformance cases of the port `SqlDatabase`: the rules that every database for `type: sql` (or `d1`) must follow. */

import { isOrchestratorError } from '../engine/base/errors.ts';
import type { Json, JsonObject } from '../engine/base/json/json.ts';
import type { SqlDatabase, SqlStatement } from '../engine/storage/data.port.ts';
import { type DeclareCase, declareCases, declareOnPart, type StoreOptions } from './declare-cases.ts';
import { refuses, same } from './storage-suite/context.ts';

/** The database under test. */
export interface SqlDatabases {
  readonly sql: SqlDatabase;
  close?(): Promise<void> | void;
}

export interface SqlSuiteOptions extends StoreOptions<SqlDatabases> {
  readonly name: string;
}

/**
 * Declares the cases in a group of their own.
 *
 * @param options - `create` opens an empty database, once per case, and `reopen` another handle on the same data
 */
export function sqlSuite(options: SqlSuiteOptions): void {
  options.test.describe(`${options.name} as an SqlDatabase`, () => {
    const it = declareOnPart(declareCases(options), ({ sql }: SqlDatabases) => sql);
    sqlDatabaseCases(it);
    if (options.reopen) reopenedSqlCases(it);
  });
}

/** Declares one case for each rule of the port, by `it` of `declareCases`. Each case needs an empty database. */
export function sqlDatabaseCases(it: DeclareCase<SqlDatabase>): void {
  readCases(it);
  valueCases(it);
  refusalCases(it);
}

/** Declares the cases that open the database again. */
export function reopenedSqlCases(it: DeclareCase<SqlDatabase>): void {
  it('reopen: what `execute` changed is stored', async (db, reopen) => {
    await fill(db, 2);
    same(await all(await reopen(), sql`SELECT id FROM items ORDER BY id`), [{ id: 1 }, { id: 2 }], 'rows');
  });
}

/** A statement with its values apart. */
function sql(strings: TemplateStringsArray, ...values: readonly Json[]): SqlStatement {
  return { strings: [...strings], values };
}

/** A signal that nobody aborts. A Worker may not create one when it is loaded. */
const open = () => new AbortController().signal;

async function all(db: SqlDatabase, statement: SqlStatement): Promise<readonly JsonObject[]> {
  return (await db.query(statement, { limit: 1000, offset: 0, signal: open() })).rows;
}

async function change(db: SqlDatabase, statement: SqlStatement): Promise<number> {
  return (await db.execute(statement, { signal: open() })).changes;
}

async function fill(db: SqlDatabase, rows: number): Promise<void> {
  await change(db, sql`CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT UNIQUE, price FLOAT)`);
  for (let id = 1; id <= rows; id++) {
    await change(db, sql`INSERT INTO items (id, name, price) VALUES (${id}, ${`name ${id}`}, ${id / 2})`);
  }
}

function readCases(it: DeclareCase<SqlDatabase>): void {
  it('kind: is `sql`', async (db) => same(db.kind, 'sql', 'kind'));

  it('query: gives the rows after the first `offset`, at most `limit`, and says whether there are more', async (db) => {
    await fill(db, 5);
    const page = async (limit: number, offset: number) => {
      const { rows, hasMore } = await db.query(sql`SELECT id FROM items ORDER BY id`, {
        limit,
        offset,
        signal: open(),
      });
      return [rows.map(({ id }) => id), hasMore];
    };
    same(await page(2, 0), [[1, 2], true], 'first page');
    same(await page(2, 2), [[3, 4], true], 'second page');
    same(await page(2, 4), [[5], false], 'last page');
    same(await page(5, 0), [[1, 2, 3, 4, 5], false], 'a page of all rows');
    same(await page(2, 9), [[], false], 'a page after the end');
  });

  it('query: a column has the name that the statement gives it', async (db) => {
    await fill(db, 1);
    same(await all(db, sql`SELECT id AS "Order No", name FROM items`), [{ 'Order No': 1, name: 'name 1' }], 'rows');
  });

  it('stream: gives all rows in parts, in their order', async (db) => {
    await change(db, sql`CREATE TABLE items (id INTEGER PRIMARY KEY)`);
    const ids = Array.from({ length: 2500 }, (_, i) => i + 1);
    for (let from = 0; from < ids.length; from += 50) {
      const rows = ids.slice(from, from + 50).map((id) => `(${id})`);
      await change(db, { strings: [`INSERT INTO items (id) VALUES ${rows.join()}`], values: [] });
    }
    const parts: (readonly JsonObject[])[] = [];
    for await (const part of db.stream(sql`SELECT id FROM items ORDER BY id`, { signal: open() })) parts.push(part);
    same(parts.flat().length, ids.length, 'number of rows');
    same(
      parts.flat().map(({ id }) => id),
      ids,
      'rows',
    );
  });

  it('stream: stops when its reader stops, and the database continues to work', async (db) => {
    await fill(db, 3);
    for await (const _ of db.stream(sql`SELECT id FROM items`, { signal: open() })) break;
    same(await change(db, sql`DELETE FROM items WHERE id = ${1}`), 1, 'changes');
  });

  it('query, execute and stream: do nothing for a signal that is aborted', async (db) => {
    await fill(db, 1);
    const gone = AbortSignal.abort(new Error('gone'));
    const calls = [
      () => db.query(sql`SELECT id FROM items`, { limit: 1, offset: 0, signal: gone }),
      () => db.execute(sql`DELETE FROM items`, { signal: gone }),
    ];
    for (const call of calls) same(await messageOfFailure(call), 'gone', 'message');
    same(await all(db, sql`SELECT id FROM items`), [{ id: 1 }], 'rows');
  });
}

function valueCases(it: DeclareCase<SqlDatabase>): void {
  it('execute: returns the number of changed rows', async (db) => {
    await fill(db, 3);
    same(await change(db, sql`UPDATE items SET price = 1 WHERE id > ${1}`), 2, 'updated');
    same(await change(db, sql`DELETE FROM items WHERE id = ${99}`), 0, 'deleted');
    same(await change(db, sql`DROP TABLE items`), 0, 'dropped');
  });

  it('values: come back as they were, and are never part of the text', async (db) => {
    await fill(db, 0);
    const names = ["' OR 1=1 --", "'; DROP TABLE items; --", '?', '$1', ':id', '\\', '"', '👍ä\u2028', ''];
    for (const [i, name] of names.entries()) {
      await change(db, sql`INSERT INTO items (id, name, price) VALUES (${i}, ${name}, ${null})`);
    }
    same(
      (await all(db, sql`SELECT name FROM items ORDER BY id`)).map(({ name }) => name),
      names,
      'names',
    );
    for (const [i, name] of names.entries()) {
      same(await all(db, sql`SELECT id, price FROM items WHERE name = ${name}`), [{ id: i, price: null }], name);
    }
    same(await all(db, sql`SELECT id FROM items WHERE name = ${"x' OR '1'='1"}`), [], 'an injection');
  });

  it('values: whole numbers are whole, and arrays and objects are JSON text', async (db) => {
    await fill(db, 2);
    same(await all(db, sql`SELECT id FROM items ORDER BY id LIMIT ${1} OFFSET ${1}`), [{ id: 2 }], 'limit');
    const value: JsonObject = { a: [1, "it's"] };
    await change(db, sql`INSERT INTO items (id, name) VALUES (${3}, ${value})`);
    same(await all(db, sql`SELECT name FROM items WHERE id = ${3}`), [{ name: JSON.stringify(value) }], 'JSON');
  });

  it('values: each kind of value comes back as JSON, also from a statement that returns what it wrote', async (db) => {
    const isSqlite = await all(db, sql`SELECT typeof(1) AS kind`).then(Boolean, () => false);
    const bytes = isSqlite ? 'BLOB' : 'BYTEA';
    const columns = `id INTEGER PRIMARY KEY, whole BIGINT, fraction DOUBLE PRECISION, ok BOOLEAN, word TEXT, day DATE, bytes ${bytes}`;
    await change(db, { strings: [`CREATE TABLE samples (${columns})`], values: [] });
    const samples: readonly (readonly [column: string, given: Json, found: Json])[] = [
      ...['whole', 'fraction', 'ok', 'word', 'day', 'bytes'].map((column) => [column, null, null] as const),
      ...[0, -7, Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER].map((n) => ['whole', n, n] as const),
      // A whole number beyond 2^53 is text, given and found.
      ...['9007199254740992', '9007199254740993', '-9007199254740993'].map((n) => ['whole', n, n] as const),
      ...['9223372036854775807', '-9223372036854775808'].map((n) => ['whole', n, n] as const),
      ...[0.1, -2.5, 1e300, 5e-324].map((n) => ['fraction', n, n] as const),
      // SQLite has no booleans.
      ...[true, false].map((given) => ['ok', given, isSqlite ? Number(given) : given] as const),
      ...['', '9007199254740993', '1e5', 'null', "it's", 'Łódź 👍'].map((text) => ['word', text, text] as const),
      ['day', '2026-03-01', '2026-03-01'],
    ];
    for (const [id, [column, given, found]] of samples.entries()) {
      const insert = [`INSERT INTO samples (id, ${column}) VALUES (`, ', ', `) RETURNING id, ${column}`];
      same(await change(db, { strings: insert, values: [id, given] }), 1, `written: ${column} ${given}`);
      const update = [`UPDATE samples SET ${column} = `, ' WHERE id = ', ` RETURNING ${column}`];
      same(await change(db, { strings: update, values: [given, id] }), 1, `changed: ${column} ${given}`);
      const select = [`SELECT ${column} AS found FROM samples WHERE id = `, ''];
      same(await all(db, { strings: select, values: [id] }), [{ found }], `read: ${column} ${given}`);
    }
    const raw = isSqlite ? "X'00FF'" : "'\\x00ff'";
    await change(db, { strings: [`INSERT INTO samples (id, bytes) VALUES (100, ${raw}) RETURNING bytes`], values: [] });
    same(await all(db, sql`SELECT bytes FROM samples WHERE id = 100`), [{ bytes: 'AP8=' }], 'bytes');
    const streamed: Json[] = [];
    for await (const part of db.stream(sql`SELECT whole FROM samples WHERE whole IS NOT NULL ORDER BY id`, {
      signal: open(),
    }))
      streamed.push(...part.map(({ whole }) => whole as Json));
    const wholes = samples.filter(([column, given]) => column === 'whole' && given !== null);
    same(
      streamed,
      wholes.map(([, , found]) => found),
      'a stream',
    );
  });

  it('values: a text that drivers would change is refused', async (db) => {
    await fill(db, 0);
    for (const name of ['a\u0000b', 'half \ud83d'])
      await refuses('INVALID_INPUT', () =>
        db.execute(sql`INSERT INTO items (id, name) VALUES (1, ${name})`, { signal: open() }),
      );
  });
}

const TWO = [
  'SELECT 1; DELETE FROM items',
  'SELECT id FROM items; SELECT 1',
  'SELECT 1 /* ; */ ; DROP TABLE items --',
  "SELECT ';' ; DELETE FROM items",
];
const OUTSIDE = [
  'PRAGMA user_version',
  "ATTACH 'x.db' AS x",
  'BEGIN',
  'COMMIT',
  'ROLLBACK',
  'VACUUM',
  'EXPLAIN SELECT 1',
  '',
];

function refusalCases(it: DeclareCase<SqlDatabase>): void {
  it('query, execute and stream: take one statement', async (db) => {
    await fill(db, 1);
    for (const text of TWO) await refusesText(db, text);
    same(await all(db, sql`SELECT id FROM items;`), [{ id: 1 }], 'rows, with a semicolon at the end');
  });

  it('query, execute and stream: refuse statements that are not about data', async (db) => {
    for (const text of OUTSIDE) await refusesText(db, text);
  });

  it('query and stream: change nothing', async (db) => {
    await fill(db, 1);
    const changes = ['DELETE FROM items', 'DROP TABLE items', 'WITH a AS (SELECT 1) DELETE FROM items'];
    for (const text of changes) {
      await refuses('INVALID_INPUT', () =>
        db.query({ strings: [text], values: [] }, { limit: 1, offset: 0, signal: open() }),
      );
      await refuses('INVALID_INPUT', () => read(db, text));
    }
    same(await all(db, sql`SELECT id FROM items`), [{ id: 1 }], 'rows');
  });

  it('query, execute and stream: refuse a value inside quotes, and a placeholder without a value', async (db) => {
    await fill(db, 1);
    const given: SqlStatement = { strings: ["SELECT id FROM items WHERE name = '", "'"], values: ['x'] };
    await refuses('INVALID_INPUT', () => db.query(given, { limit: 1, offset: 0, signal: open() }));
    await refuses('INVALID_INPUT', () => db.execute(sql`DELETE FROM items WHERE id = $1`, { signal: open() }));
  });

  it('a statement that the database refuses fails without a retry, in its words, and without the values', async (db) => {
    await fill(db, 1);
    const secret = 'hunter2-hunter2';
    const failing = [
      sql`INSERT INTO nowhere (id) VALUES (${secret})`,
      sql`INSERT INTO items (id, name) VALUES (${2}, ${'name 1'})`,
      sql`INSERT INTO items (id, name) VALUES (${1}, ${secret})`,
    ];
    for (const statement of failing) {
      const thrown = await failureOf(() => db.execute(statement, { signal: open() }));
      same(isOrchestratorError(thrown) && [thrown.code, thrown.retryable], ['AGENT_FAILED', false], 'error');
      same((thrown as Error).message.includes(secret), false, 'the value is in the message');
    }
    same(
      (await messageOfFailure(() => db.execute(failing[0] as SqlStatement, { signal: open() }))).includes('nowhere'),
      true,
      'name',
    );
    same(await all(db, sql`SELECT id, name FROM items`), [{ id: 1, name: 'name 1' }], 'rows');
  });

  it('execute: a statement that fails changes nothing', async (db) => {
    await fill(db, 3);
    await refuses('AGENT_FAILED', () =>
      db.execute(sql`INSERT INTO items (id) VALUES (7), (8), (${1})`, { signal: open() }),
    );
    same(await all(db, sql`SELECT id FROM items ORDER BY id`), [{ id: 1 }, { id: 2 }, { id: 3 }], 'rows');
  });
}

async function refusesText(db: SqlDatabase, text: string): Promise<void> {
  const statement = { strings: [text], values: [] };
  await refuses('INVALID_INPUT', () => db.query(statement, { limit: 1, offset: 0, signal: open() }));
  await refuses('INVALID_INPUT', () => db.execute(statement, { signal: open() }));
  await refuses('INVALID_INPUT', () => read(db, text));
}

async function read(db: SqlDatabase, text: string): Promise<void> {
  for await (const _ of db.stream({ strings: [text], values: [] }, { signal: open() }));
}

async function failureOf(call: () => unknown): Promise<unknown> {
  try {
    await call();
  } catch (thrown) {
    return thrown;
  }
  throw new Error('the call did not fail');
}

async function messageOfFailure(call: () => unknown): Promise<string> {
  return ((await failureOf(call)) as Error).message;
}
