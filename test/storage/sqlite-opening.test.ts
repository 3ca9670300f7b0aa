/** Opening a SQLite file: lazily, durably, by any process, and without changes to a file that is refused. */

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FIRST_VERSION, newestVersion } from '../../src/adapters/storage/sql/schema.ts';
import type { SqlDriver } from '../../src/adapters/storage/sqlite/drivers/driver.ts';
import { loadDriver } from '../../src/adapters/storage/sqlite/drivers/load-driver.ts';
import { openDatabase } from '../../src/adapters/storage/sqlite/drivers/open-database.ts';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import { MIGRATIONS, migrate, readVersion } from '../../src/adapters/storage/sqlite/tables/migrations.ts';
import {
  accept,
  change,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  LEASE,
  starting,
  step,
  T0,
  WORKER,
} from '../../src/conformance/storage-suite/context.ts';
import { newFile, withFile } from './sqlite-files.ts';

const pragma = (path: string, name: string) =>
  withFile(path, (connection) => Object.values(connection.prepare(`PRAGMA ${name}`).all([])[0] ?? {})[0]);
const options = (path: string) => ({ path, busyTimeoutMs: 5000, synchronous: 'full' as const });
const filesBeside = (path: string) => readdirSync(dirname(path)).filter((name) => name.startsWith(basename(path)));

describe('sqliteStorage opens its file', () => {
  it('at the first use and not before; after that it answers at once', async () => {
    const path = newFile();
    const storage = sqliteStorage({ path });
    expect(existsSync(path)).toBe(false);
    const first = storage.workers.register(WORKER, { now: T0, leaseUntil: T0 + LEASE });
    expect(first).toBeInstanceOf(Promise);
    await first;
    expect(storage.commit(WORKER, [starting(execution(1))])).toEqual(['stored']);
    expect(storage.commit(WORKER, [entry(1, { steps: [step('flow[0]')] })])).toEqual(['stored']);
    expect(storage.state.read('orders')).toBeUndefined();
    await storage.close();
  });

  it('never, when it is closed before the first use', async () => {
    const path = newFile();
    const storage = sqliteStorage({ path });
    await storage.close();
    await expect(storage.executions.get(executionId(1))).rejects.toMatchObject({
      code: 'OVERLOADED',
      message: expect.stringContaining('closed'),
    });
    expect(existsSync(path)).toBe(false);
  });

  it('`close` waits for earlier calls and refuses later ones', async () => {
    const path = newFile();
    const storage = sqliteStorage({ path });
    let accepted = false;
    const queued = starting(execution(1), { release: { status: 'queued', dueAt: T0 } });
    void Promise.resolve(storage.commit(WORKER, [queued])).then(() => {
      accepted = true;
    });
    const closed = storage.close();
    await expect(enqueue(storage, execution(2))).rejects.toMatchObject({ code: 'OVERLOADED' });
    await closed;
    expect(accepted).toBe(true);
    const again = sqliteStorage({ path });
    expect((await again.executions.list({ limit: 10 })).map(({ id }) => id)).toEqual([executionId(1)]);
    await again.close();
    await expect(Promise.resolve().then(() => again.executions.list({ limit: 10 }))).rejects.toMatchObject({
      code: 'OVERLOADED',
    });
  });

  it('again at the next use, after the cause of the failure is gone', async () => {
    const path = newFile();
    writeFileSync(path, 'no database, for now');
    const storage = sqliteStorage({ path });
    await expect(storage.state.read('orders')).rejects.toMatchObject({ code: 'NOT_CONFIGURED' });
    writeFileSync(path, '');
    await enqueue(storage, execution(1));
    await storage.close();
  });

  it('while another process writes to it for the first time: it waits, and has its write-ahead log', async () => {
    const path = newFile();
    const driver = await loadDriver(undefined);
    const other = driver(path);
    other.exec('CREATE TABLE app (a); BEGIN IMMEDIATE; INSERT INTO app VALUES (1)');
    const waiting: SqlDriver = (file) => {
      const connection = driver(file);
      // The time in which the other process ends its write.
      const exec = (sql: string) => {
        if (sql.startsWith('BEGIN IMMEDIATE')) other.exec('COMMIT');
        connection.exec(sql);
      };
      return { ...connection, exec };
    };
    const connection = openDatabase(waiting, { ...options(path), busyTimeoutMs: 0 });
    expect(connection.prepare('PRAGMA journal_mode').all([])).toMatchObject([{ journal_mode: 'wal' }]);
    expect(connection.prepare('SELECT a FROM app').all([])).toMatchObject([{ a: 1 }]);
    connection.close();
    other.close();
  });

  it('the next storage reads what the previous one wrote', async () => {
    const path = newFile();
    const first = sqliteStorage({ path });
    await first.definitions.put({ version: 'v', definition: { name: 'orders' }, needs: ['script:a'] });
    await accept(first, execution(1));
    await first.commit(WORKER, [entry(1, { steps: [step('flow[0]')], state: change(0, { a: 1 }), end: end() })]);
    await first.kv.put('k', { a: 1 });
    await first.objects.put('o', { content: new Uint8Array([1, 2]), contentType: 'text/plain', updatedAt: 5 });
    const before = await first.executions.get(executionId(1));
    await first.close();
    const second = sqliteStorage({ path });
    expect(await second.executions.get(executionId(1))).toEqual(before);
    expect(await second.state.read('orders')).toMatchObject({ value: { a: 1 }, version: 1 });
    expect(await second.definitions.get('v')).toEqual({
      version: 'v',
      definition: { name: 'orders' },
      needs: ['script:a'],
    });
    expect(await second.kv.get('k', 0)).toEqual({ a: 1 });
    expect(Array.from((await second.objects.get('o'))?.content ?? [])).toEqual([1, 2]);
    await second.close();
  });
});

describe('durability is set and checked', () => {
  it('a write-ahead log and synchronous=FULL, at each opening', async () => {
    const path = newFile();
    const driver = await loadDriver(undefined);
    for (let opening = 0; opening < 2; opening++) {
      const connection = openDatabase(driver, options(path));
      expect(connection.prepare('PRAGMA journal_mode').all([])).toMatchObject([{ journal_mode: 'wal' }]);
      expect(connection.prepare('PRAGMA synchronous').all([])).toMatchObject([{ synchronous: 2 }]);
      connection.close();
    }
  });

  it('synchronous: normal is set on request', async () => {
    const connection = openDatabase(await loadDriver(undefined), { ...options(newFile()), synchronous: 'normal' });
    expect(connection.prepare('PRAGMA synchronous').all([])).toMatchObject([{ synchronous: 1 }]);
    connection.close();
  });

  it.each([
    ['PRAGMA synchronous', { synchronous: 1 }, 'does not keep `synchronous=full`'],
    ['PRAGMA journal_mode = WAL', { journal_mode: 'delete' }, "can't have a write-ahead log"],
  ])('a driver that answers differently to %s is refused', async (asked, answer, message) => {
    const driver = await loadDriver(undefined);
    const lying: SqlDriver = (path) => {
      const connection = driver(path);
      return {
        ...connection,
        prepare: (sql) => (sql === asked ? { run: () => 0, all: () => [answer] } : connection.prepare(sql)),
      };
    };
    const opening = () => openDatabase(lying, options(newFile()));
    expect(opening).toThrow(
      expect.objectContaining({ code: 'NOT_CONFIGURED', message: expect.stringContaining(message) }),
    );
  });
});

describe('a refused file is not changed', () => {
  const refused = async (path: string, message: string) => {
    const before = readFileSync(path);
    const storage = sqliteStorage({ path });
    const opening = enqueue(storage, execution(1));
    await expect(opening).rejects.toMatchObject({ code: 'NOT_CONFIGURED', message: expect.stringContaining(message) });
    await storage.close();
    expect(readFileSync(path).equals(before)).toBe(true);
  };

  it('a store written by a newer version', async () => {
    const path = newFile();
    const storage = sqliteStorage({ path });
    await enqueue(storage, execution(1));
    await storage.close();
    await withFile(path, (connection) =>
      connection.exec('UPDATE ensemble_schema SET version = 99; PRAGMA wal_checkpoint(TRUNCATE)'),
    );
    await refused(
      path,
      `was written by a newer version of ensemble-orchestrator (its schema is 99, this version knows up to ${newestVersion(MIGRATIONS)})`,
    );
  });

  it('a store from before the first release', async () => {
    const path = newFile();
    await withFile(path, (connection) =>
      connection.exec(
        `CREATE TABLE ensemble_schema (version INTEGER); INSERT INTO ensemble_schema VALUES (${FIRST_VERSION - 1})`,
      ),
    );
    await refused(
      path,
      `was written before the first release of ensemble-orchestrator (its version is ${FIRST_VERSION - 1}`,
    );
  });

  it('a newer store without a write-ahead log: none is created', async () => {
    const path = newFile();
    await withFile(path, (connection) =>
      connection.exec('CREATE TABLE ensemble_schema (version INTEGER); INSERT INTO ensemble_schema VALUES (2000)'),
    );
    await refused(path, 'its schema is 2000');
    expect(filesBeside(path)).toEqual([basename(path)]);
  });

  it('a store without a version', async () => {
    const path = newFile();
    await withFile(path, (connection) => connection.exec('CREATE TABLE ensemble_schema (version INTEGER)'));
    await refused(path, 'holds no schema version');
  });

  it('a file that is not a database', async () => {
    const path = newFile();
    writeFileSync(path, `name: hello\n${'#'.repeat(5000)}`);
    await refused(path, 'is not a SQLite database');
    expect(filesBeside(path)).toEqual([basename(path)]);
  });

  it('a missing folder, and a folder instead of a file', async () => {
    for (const path of [`${newFile()}/missing/store.db`, dirname(newFile())]) {
      const storage = sqliteStorage({ path });
      await expect(storage.state.read('orders')).rejects.toMatchObject({
        code: 'NOT_CONFIGURED',
        message: expect.stringContaining(path),
      });
      await storage.close();
    }
  });
});

describe('migrations', () => {
  it("work in an app's own file: its tables and its user_version stay", async () => {
    const path = newFile();
    await withFile(path, (connection) =>
      connection.exec("CREATE TABLE executions (a); INSERT INTO executions VALUES ('mine'); PRAGMA user_version = 77"),
    );
    const storage = sqliteStorage({ path });
    await enqueue(storage, execution(1));
    await storage.close();
    expect(await pragma(path, 'user_version')).toBe(77);
    expect(await withFile(path, (connection) => connection.prepare('SELECT a FROM executions').all([]))).toMatchObject([
      { a: 'mine' },
    ]);
  });

  it('a store of an older version is brought up to date and keeps its data', async () => {
    const path = newFile();
    const storage = sqliteStorage({ path });
    await enqueue(storage, execution(1));
    await storage.close();
    const later = [
      ...MIGRATIONS,
      'ALTER TABLE ensemble_executions ADD COLUMN later INTEGER',
      'CREATE TABLE ensemble_waits (a)',
    ];
    await withFile(path, (connection) => {
      migrate(connection, path, later);
      expect(readVersion(connection, path, later)).toBe(newestVersion(MIGRATIONS) + 2);
      expect(connection.prepare('SELECT id, later FROM ensemble_executions').all([])).toMatchObject([
        { id: executionId(1), later: null },
      ]);
      expect(connection.prepare('SELECT count(*) AS n FROM ensemble_waits').all([])).toMatchObject([{ n: 0 }]);
    });
  });

  it('a migration that fails leaves the file at the previous version, and can be repeated', async () => {
    const path = newFile();
    await withFile(path, (connection) => {
      const broken = ['CREATE TABLE ensemble_a (a)', 'CREATE TABLE ensemble_b (b); CREATE TABLE ensemble_a (a)'];
      expect(() => migrate(connection, path, broken)).toThrow('already exists');
      expect(readVersion(connection, path, broken)).toBe(newestVersion([broken[0] as string]));
      const mended = [broken[0] as string, 'CREATE TABLE ensemble_b (b)'];
      migrate(connection, path, mended);
      expect(readVersion(connection, path, mended)).toBe(newestVersion(mended));
    });
  });
});

describe('the driver', () => {
  const failing = (message: string) => (name: string) => Promise.reject(new Error(message.replace('NAME', name)));

  it("is the runtime's own driver if there is one, bun:sqlite on Bun, and libsql otherwise", async () => {
    const asked: string[] = [];
    const load = (present: readonly string[]) => async (name: string) => {
      asked.push(name);
      if (!present.includes(name)) throw new Error(`No such built-in module: ${name}`);
      return {};
    };
    await loadDriver(undefined, load(['node:sqlite', 'libsql']), false);
    await loadDriver(undefined, load(['libsql']), false);
    await loadDriver(undefined, load(['node:sqlite', 'bun:sqlite', 'libsql']), true);
    await loadDriver('libsql', load(['node:sqlite', 'libsql']), false);
    expect(asked).toEqual(['node:sqlite', 'node:sqlite', 'libsql', 'bun:sqlite', 'libsql']);
  });

  it.each([
    "Cannot find package 'NAME' imported from /app/index.js",
    "Cannot find module 'NAME'\nRequire stack:\n- /app/index.js",
  ])('a missing driver is named, with what to install: %s', async (message) => {
    const expected = { code: 'NOT_CONFIGURED', message: expect.stringContaining('npm install libsql') };
    await expect(loadDriver(undefined, failing(message), false)).rejects.toMatchObject(expected);
  });

  it('a driver without a build for this platform is reported', async () => {
    const load = failing("Cannot find module '@libsql/linux-riscv64-gnu'");
    const expected = {
      code: 'NOT_CONFIGURED',
      message: expect.stringContaining("can't be loaded (Cannot find module '@libsql/linux-riscv64-gnu')"),
    };
    await expect(loadDriver('libsql', load, false)).rejects.toMatchObject(expected);
  });

  it('a driver that is requested by name and missing is refused, not replaced', async () => {
    const storage = sqliteStorage({ path: newFile(), driver: 'bun:sqlite' });
    await expect(storage.state.read('orders')).rejects.toMatchObject({
      code: 'NOT_CONFIGURED',
      message: expect.stringContaining('no bun:sqlite'),
    });
  });
});

const PATH_RULE = '`path` must be the name of a file, or `:memory:`, and not a URL';

it.each([
  [{ path: '' }, PATH_RULE],
  [{ path: 'a\u0000b' }, PATH_RULE],
  [{ path: undefined }, PATH_RULE],
  [{ path: 'libsql://db.example' }, PATH_RULE],
  [{ path: 'file:store.db' }, PATH_RULE],
  [{ path: 'a.db', namespace: '' }, '`namespace` must be text of 1 to 128 characters'],
  [{ path: 'a.db', namespace: 'x'.repeat(129) }, '`namespace` must be text of 1 to 128 characters'],
  [
    { path: 'a.db', timeout: -1 },
    '`timeout` must be a duration such as `30s` or `5m`, or milliseconds, from 1 to 600,000 ms, not -1',
  ],
  [
    { path: 'a.db', timeout: '5; DROP TABLE x' },
    "`timeout` must be a duration such as `30s` or `5m`, or milliseconds, from 1 to 600,000 ms, not '5; DROP TABLE x'",
  ],
  [{ path: 'a.db', synchronous: 'off' }, "`synchronous` must be 'full' or 'normal', not 'off'"],
  [{ path: 'a.db', driver: 'sqlite3' }, "`driver` must be 'node:sqlite' or 'bun:sqlite' or 'libsql', not 'sqlite3'"],
])('sqliteStorage(%o) is a TypeError', (wrong, message) => {
  expect(() => sqliteStorage(wrong as never)).toThrow(TypeError(`sqliteStorage: ${message}`));
});
