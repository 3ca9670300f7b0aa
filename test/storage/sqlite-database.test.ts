/** SQL databases in SQLite: the published cases on a file, in memory and on a handle of the app, and what only SQLite can do. */

import { existsSync } from 'node:fs';
import Libsql from 'libsql';
import { describe, expect, it } from 'vitest';
import { sqlSuite } from '../../src/conformance/sql-suite.ts';
import type { SqlStatement } from '../../src/engine/storage/data.port.ts';
import { sqliteDatabase, sqliteStorage } from '../../src/entries/sqlite.ts';
import { newFile } from './sqlite-files.ts';

let file: string;
const reopen = () => {
  const sql = sqliteDatabase({ path: file });
  return { sql, close: () => sql.close() };
};
const create = () => {
  file = newFile();
  return reopen();
};
sqlSuite({ name: 'sqliteDatabase on a file', create, reopen, test: { describe, it } });
sqlSuite({
  name: 'sqliteDatabase in memory',
  create: () => ({ sql: sqliteDatabase({ path: ':memory:' }) }),
  test: { describe, it },
});
sqlSuite({
  name: 'sqliteDatabase on a handle of the app',
  create: () => ({ sql: sqliteDatabase({ database: new Libsql(':memory:') }) }),
  test: { describe, it },
});

const signal = new AbortController().signal;
const text = (sql: string): SqlStatement => ({ strings: [sql], values: [] });
const page = { limit: 100, offset: 0, signal };

describe('sqliteDatabase', () => {
  it.each([
    "SELECT readfile('/etc/passwd')",
    'SELECT "readfile"(\'/etc/passwd\')',
    "SELECT [readfile]('/etc/passwd')",
    "SELECT writefile('/tmp/x', 'x')",
    "SELECT load_extension('x')",
    "SELECT * FROM 'fsdir'('/tmp')",
    "SELECT sha3_query('DELETE FROM t')",
    'SELECT * FROM pragma_database_list',
    'SELECT * FROM sqlite_dbpage',
    'WITH a AS (SELECT 1) SELECT READFILE /* now */ (1) FROM a',
  ])('refuses %s, which reaches outside the data', async (sql) => {
    const db = sqliteDatabase({ path: ':memory:' });
    await expect(db.query(text(sql), page)).rejects.toMatchObject({ code: 'INVALID_INPUT' });
  });

  it.each([
    "ATTACH 'x.db' AS x",
    "VACUUM INTO 'x.db'",
    'PRAGMA journal_mode = OFF',
    'CREATE VIRTUAL TABLE a USING csv',
    'DETACH main',
  ])('refuses to execute %s', async (sql) => {
    const db = sqliteDatabase({ path: ':memory:' });
    await expect(db.execute(text(sql), { signal })).rejects.toMatchObject({ code: 'INVALID_INPUT' });
  });

  it('whole numbers beyond 2^53, bytes, infinity and text that is not UTF-8 become JSON', async () => {
    const db = sqliteDatabase({ path: ':memory:' });
    const sql =
      "SELECT 9007199254740993 AS big, 12 AS small, x'00ff' AS bytes, 9e999 AS huge, CAST(x'ff41' AS TEXT) AS odd, 0.1 AS real, 'it''s, so' AS said";
    expect((await db.query(text(sql), page)).rows).toEqual([
      {
        big: '9007199254740993',
        small: 12,
        bytes: 'AP8=',
        huge: 'Infinity',
        odd: '\ufffdA',
        real: 0.1,
        said: "it's, so",
      },
    ]);
  });

  it('two columns of one name are refused, because a row would lose one', async () => {
    const db = sqliteDatabase({ path: ':memory:' });
    await expect(db.query(text('SELECT 1 AS id, 2 AS id'), page)).rejects.toThrow(/two columns are named id; .* AS/);
    await expect(db.query(text('SELECT 1 AS __proto__'), page)).rejects.toThrow(/named __proto__/);
  });

  it('a file with the data of an orchestrator is refused', async () => {
    const path = newFile();
    const storage = sqliteStorage({ path });
    await storage.kv.put('k', 1);
    await storage.close();
    const db = sqliteDatabase({ path: path });
    await expect(db.query(text('SELECT * FROM ensemble_tokens'), page)).rejects.toMatchObject({
      code: 'NOT_CONFIGURED',
    });
  });

  it('a stream of a file sees one moment, and does not stop writers', async () => {
    const db = sqliteDatabase({ path: newFile() });
    await db.execute(text('CREATE TABLE t (id INTEGER PRIMARY KEY)'), { signal });
    const fill =
      'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 1500) INSERT INTO t SELECT x FROM c';
    expect(await db.execute(text(fill), { signal })).toEqual({ changes: 1500 });
    let rows = 0;
    for await (const part of db.stream(text('SELECT id FROM t'), { signal })) {
      if (rows === 0)
        expect(await db.execute(text('DELETE FROM t WHERE id > 700'), { signal })).toEqual({ changes: 800 });
      rows += part.length;
    }
    expect(rows).toBe(1500);
    await db.close();
  });

  it('on one connection a write waits for a stream, until its own signal aborts', async () => {
    const db = sqliteDatabase({ path: ':memory:' });
    await db.execute(text('CREATE TABLE t (id INTEGER PRIMARY KEY)'), { signal });
    await db.execute(text('INSERT INTO t VALUES (1)'), { signal });
    const abort = new AbortController();
    for await (const _ of db.stream(text('SELECT id FROM t'), { signal })) {
      const waiting = db.execute(text('DELETE FROM t'), { signal: abort.signal });
      abort.abort(new Error('too late'));
      await expect(waiting).rejects.toThrow('too late');
    }
    expect(await db.execute(text('DELETE FROM t'), { signal })).toEqual({ changes: 1 });
  });

  it('a handle stays open and writable for the app, also during a stream', async () => {
    const database = new Libsql(':memory:');
    database.exec('CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)');
    const db = sqliteDatabase({ database });
    for await (const _ of db.stream(text('SELECT id FROM t'), { signal })) database.exec('CREATE TABLE u (id)');
    await db.close();
    expect(database.prepare('SELECT count(*) AS n FROM t').get()).toMatchObject({ n: 1 });
  });

  it('a value of more than 16 MiB is refused before it is encoded', async () => {
    const db = sqliteDatabase({ path: ':memory:' });
    await expect(db.query(text('SELECT zeroblob(17000000) AS v'), page)).rejects.toMatchObject({
      code: 'INVALID_OUTPUT',
      message: expect.stringContaining('column v has a value of 17000000'),
    });
    await db.close();
  });

  it.each([
    [{}, /either `path` or `database`/],
    [{ path: 'a', database: new Libsql(':memory:') }, /either `path` or `database`/],
    [{ path: 'https://x' }, /not a URL/],
    [{ file: 'a' }, /did you mean `path`\?/],
    [{ path: 'a', timeout: -1 }, /timeout/],
    [{ database: {} }, /prepare and exec/],
  ])('the options %o are refused', (options, message) => {
    expect(() => sqliteDatabase(options as never)).toThrow(message);
  });

  it('a file in a folder that does not exist is NOT_CONFIGURED, and nothing is created at construction', async () => {
    const path = newFile();
    sqliteDatabase({ path: path });
    expect(existsSync(path)).toBe(false);
    const db = sqliteDatabase({ path: `${path}/no/x.db` });
    await expect(db.query(text('SELECT 1'), page)).rejects.toMatchObject({ code: 'NOT_CONFIGURED' });
  });
});
