/** Postgres and workers that are dead or seem to be: when they are considered dead, and which calls do not wait for them. */

import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { SqlClient } from '../../src/adapters/storage/postgres/drivers/driver.ts';
import { openClient } from '../../src/adapters/storage/postgres/drivers/load-driver.ts';
import { readPostgresOptions } from '../../src/adapters/storage/postgres/options.ts';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { lockKey } from '../../src/adapters/storage/postgres/tables/migrations.ts';
import { tableNames } from '../../src/adapters/storage/postgres/tables/names.ts';
import { type Processes, readProcesses } from '../../src/adapters/storage/postgres/tables/this-process.ts';
import { workersTable } from '../../src/adapters/storage/postgres/tables/workers-table.ts';
import {
  accept,
  enqueue,
  execution,
  executionId,
  OTHER,
  register,
  T0,
  WORKER,
} from '../../src/conformance/storage-suite/context.ts';
import type { Storage, WorkerStore } from '../../src/engine/storage/storage.port.ts';
import { scaled } from '../slowdown.ts';
import { createDatabase, findServer, type TestDatabase, until } from './postgres-server.ts';

const hasServer = await findServer();
/** Knows nothing about any process. */
const unknown: Processes = { own: undefined, look: () => undefined };

describe.skipIf(!hasServer)('workers that are dead or seem to be', () => {
  let database: TestDatabase;
  let client: SqlClient;
  let namespaces = 0;
  let namespace = 'dead-workers';
  const opened: Storage[] = [];

  beforeAll(async () => {
    database = await createDatabase();
    client = await openClient(readPostgresOptions({ url: database.connectionString }));
    await Promise.resolve(open().definitions.get('-'));
  });
  beforeEach(() => {
    namespaces += 1;
    namespace = `dead-workers ${namespaces}`;
  });
  afterEach(async () => {
    await database.query('SELECT pg_advisory_unlock_all()');
    for (const storage of opened.splice(0)) await storage.close();
  });
  afterAll(async () => {
    await client.close();
    await database.drop();
  });

  const open = (): Storage => {
    const storage = postgresStorage({ pool: database.pool({ max: 4 }), namespace });
    opened.push(storage);
    return storage;
  };
  /** A connection that a test can make hang. */
  const connect = async () => {
    const connection = await database.pool({ max: 1 }).connect();
    connection.on('error', () => undefined);
    return connection;
  };
  /** A process that checks the other workers and has seen nothing before. */
  const watcher = (processes = unknown, sessionGraceMs = 1500): WorkerStore =>
    workersTable({
      sessionGraceMs,
      client,
      names: tableNames('ensemble'),
      namespace,
      sessions: undefined,
      processes,
      onFreed: () => undefined,
    });
  const look = async (by: WorkerStore = watcher(), now = T0) => (await by.reclaimFromDead(OTHER, now)).againInMs;
  const known = async (): Promise<string[]> => {
    const text = 'SELECT id FROM ensemble.owners WHERE namespace = $1 ORDER BY id';
    return (await database.query(text, [namespace])).rows.map(({ id }) => id);
  };
  /** Registers a worker whose lock the test itself takes and releases. */
  const add = async (id: string, { locks = true, process = null as string | null } = {}): Promise<number> => {
    const text = `INSERT INTO ensemble.owners (namespace, id, lease_until, locks, process)
      VALUES ($1, $2, $3, $4, $5) RETURNING ref`;
    return (await database.query(text, [namespace, id, T0 + 1, locks, process])).rows[0].ref;
  };
  const lock = (how: 'lock' | 'unlock', ref: number) =>
    database.query(`SELECT pg_advisory_${how}($1::integer, $2::integer)`, [lockKey('ensemble'), ref]);
  /** Moves the time since when a lock was seen free back by a number of ms. */
  const elapse = (ms: number) =>
    database.query("UPDATE ensemble.owners SET unlocked_at = unlocked_at - $2 * interval '1 ms' WHERE namespace = $1", [
      namespace,
      ms,
    ]);
  const unlockedAt = async () =>
    (await database.query('SELECT unlocked_at FROM ensemble.owners WHERE namespace = $1', [namespace])).rows[0]
      ?.unlocked_at;

  it('a worker is considered dead only if its lock is free at every check for 1.5 s', async () => {
    const ref = await add('a');
    await add('b', { locks: false });
    await lock('lock', ref);
    expect(await look()).toBeUndefined();
    await lock('unlock', ref);
    expect(await look()).toBe(1500);
    await elapse(1000);
    const left = await look();
    expect(left).toBeLessThanOrEqual(500);
    expect(left).toBeGreaterThan(300);
    await lock('lock', ref);
    expect(await look()).toBeUndefined();
    await lock('unlock', ref);
    await elapse(10_000);
    expect(await look()).toBe(1500);
    await elapse(1300);
    await look();
    expect(await known()).toEqual(['a', 'b']);
    await elapse(200);
    await look();
    expect(await known()).toEqual(['b']);
  });

  it("what one process saw counts for all; what was seen before the server's start counts for none", async () => {
    await add('a');
    expect(await look(watcher())).toBe(1500);
    await database.query('UPDATE ensemble.owners SET unlocked_at = pg_postmaster_start_time() - interval $$1 s$$');
    expect(await look(watcher())).toBe(1500);
    await database.query("UPDATE ensemble.owners SET unlocked_at = now() + interval '1 h'");
    expect(await look(watcher())).toBe(1500);
    await elapse(1500);
    await look(watcher());
    expect(await known()).toEqual([]);
  });

  it('a worker that renews its lease or takes its lock again was not dead: it is observed anew', async () => {
    const storage = open();
    await register(storage);
    const seen = () =>
      database.query("UPDATE ensemble.owners SET unlocked_at = now() - interval '1 h' WHERE namespace = $1", [
        namespace,
      ]);
    await seen();
    await storage.workers.renew(WORKER, T0 + 60_000);
    expect(await unlockedAt()).toBeNull();
    await seen();
    await database.query(
      'SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = $1 AND objid > 0 AND pid <> pg_backend_pid()',
      ['advisory'],
    );
    await until(async () => (await unlockedAt()) === null, 'the lock to be taken again');
    expect(await known()).toEqual([WORKER]);
  });

  it('a process that is known to be gone is not waited for, unless its lock is held', async () => {
    const gone: Processes = { own: 'this', look: (name) => (name === 'gone' ? 'gone' : undefined) };
    const ref = await add('a', { process: 'gone' });
    await add('b', { process: 'other' });
    await add('c');
    await lock('lock', ref);
    await look(watcher(gone));
    expect(await known()).toEqual(['a', 'b', 'c']);
    await lock('unlock', ref);
    await look(watcher(gone));
    expect(await known()).toEqual(['b', 'c']);
  });

  it('a process that is known to live is not considered dead for a free lock before its lease has expired', async () => {
    const alive: Processes = { own: 'this', look: (name) => (name === 'alive' ? 'alive' : undefined) };
    await add('a', { process: 'alive' });
    await add('b', { process: 'other' });
    expect(await look(watcher(alive))).toBe(1500);
    await elapse(60_000);
    await look(watcher(alive));
    expect(await known()).toEqual(['a']);
    await look(watcher(alive), T0 + 1);
    expect(await known()).toEqual([]);
  });

  it('a longer grace period is waited for, and a shorter one is not', async () => {
    await add('a');
    expect(await look(watcher(unknown, 20_000))).toBe(20_000);
    await elapse(10_000);
    expect(await look(watcher(unknown, 20_000))).toBeGreaterThan(9000);
    expect(await known()).toEqual(['a']);
    await look(watcher(unknown, 5000));
    expect(await known()).toEqual([]);
  });

  it("a storage stores the name of its worker's process", async () => {
    const { own } = readProcesses();
    await register(open());
    const { rows } = await database.query('SELECT process FROM ensemble.owners WHERE namespace = $1', [namespace]);
    expect(rows).toEqual([{ process: own ?? null }]);
  });

  it('a removal that hangs delays neither other removals nor new work, and is done later', async () => {
    const storage = open();
    for (const [number, worker] of [WORKER, `own_${'0'.repeat(25)}3`].entries()) {
      await storage.workers.register(worker, { now: T0, leaseUntil: T0 + 1 });
      await accept(storage, execution(number), worker);
    }
    await register(storage, OTHER);
    const hanging = await connect();
    await hanging.query('BEGIN');
    await hanging.query('DELETE FROM ensemble.owners WHERE namespace = $1 AND id = $2', [namespace, WORKER]);
    const began = performance.now();
    const recovered = storage.workers.reclaimFromDead(OTHER, T0 + 1);
    await enqueue(storage, execution(5));
    expect(performance.now() - began).toBeLessThan(scaled(1000));
    expect((await recovered).freed).toBe(1);
    const took = performance.now() - began;
    expect(took).toBeGreaterThan(1500);
    expect(took).toBeLessThan(scaled(4000));
    const { rows } = await database.query(
      'SELECT id FROM ensemble.executions WHERE namespace = $1 AND due_at IS NOT NULL ORDER BY id',
      [namespace],
    );
    expect(rows.map(({ id }) => id)).toEqual([executionId(1), executionId(5)]);
    await hanging.query('ROLLBACK');
    hanging.release();
    expect((await storage.workers.reclaimFromDead(OTHER, T0 + 1)).freed).toBe(1);
  });

  it('a check does not wait for a process that hangs', async () => {
    await add('a');
    const hanging = await connect();
    await hanging.query('BEGIN');
    await hanging.query('DELETE FROM ensemble.owners WHERE namespace = $1', [namespace]);
    const began = performance.now();
    await look();
    expect(performance.now() - began).toBeLessThan(scaled(1000));
    await hanging.query('ROLLBACK');
    hanging.release();
  });

  it("`workers.unregister` waits while the worker's row is locked, and fails when that takes too long", async () => {
    const storage = open();
    await register(storage);
    await accept(storage, execution(1));
    const hanging = await connect();
    const hang = async () => {
      await hanging.query('BEGIN');
      await hanging.query('SELECT FROM ensemble.owners WHERE namespace = $1 FOR UPDATE', [namespace]);
    };
    await hang();
    const leaving = Promise.resolve(storage.workers.unregister(WORKER, T0));
    setTimeout(() => void hanging.query('ROLLBACK'), 2500);
    await leaving;
    expect(await known()).toEqual([]);
    await register(storage);
    await hang();
    await expect(Promise.resolve(storage.workers.unregister(WORKER, T0))).rejects.toMatchObject({ code: 'OVERLOADED' });
    await hanging.query('ROLLBACK');
    hanging.release();
    // Without its lock, it is soon considered dead.
    expect(await look()).toBe(1500);
  }, 15_000);
});

describe('this process', () => {
  const isLinux = process.platform === 'linux';
  const processes = readProcesses();

  it('has the same name each time on Linux, and is not gone', () => {
    expect(processes.own === undefined).toBe(!isLinux);
    expect(readProcesses().own).toBe(processes.own);
    expect(processes.look(processes.own ?? '')).toBe(isLinux ? 'alive' : undefined);
  });

  it('sees that another process has ended, or that its process id was reused', async () => {
    if (!isLinux) return;
    const own = processes.own as string;
    const [, machine, began] = /^(.*) \d+ (\d+)$/.exec(own) ?? [];
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
    const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8');
    const name = `${machine} ${child.pid} ${stat.slice(stat.lastIndexOf(')')).split(' ')[20]}`;
    expect(processes.look(name)).toBe('alive');
    expect(processes.look(`${machine} ${child.pid} ${began}`)).toBe('gone');
    const ended = new Promise((resolve) => child.on('exit', resolve));
    child.kill('SIGKILL');
    await ended;
    expect(processes.look(name)).toBe('gone');
    expect(processes.look(name.replace('pid:', 'other:'))).toBeUndefined();
    expect(processes.look('')).toBeUndefined();
  });

  const files = (stat: string) => ({
    readlinkSync: () => 'pid:[1]',
    readFileSync: (path: string) => (path.endsWith('boot_id') ? 'boot\n' : path.includes('self') ? stat : no()),
  });
  const no = () => {
    throw Object.assign(new Error('no'), { code: 'ENOENT' });
  };
  const STAT = `7 (a) b) S ${'0 '.repeat(18)}99 0`;
  const host = (stat: string, kill: () => unknown, more: object = {}) =>
    readProcesses({ pid: 7, kill, getBuiltinModule: () => files(stat), ...more });
  const fails = (code: string) => () => {
    throw Object.assign(new Error('no'), { code });
  };

  it("has no name where `/proc` can't be read, and then no process is gone", () => {
    const found = host(STAT, fails('ESRCH'));
    expect(found.own).toBe('boot pid:[1] 7 99');
    expect(found.look('boot pid:[1] 8 99')).toBe('gone');
    for (const none of [
      host(STAT, fails('ESRCH'), { getBuiltinModule: undefined }),
      host(STAT, fails('ESRCH'), { getBuiltinModule: () => undefined }),
      host(STAT, fails('ESRCH'), { getBuiltinModule: () => ({ readFileSync: no, readlinkSync: no }) }),
      host(STAT, fails('ESRCH'), { versions: { deno: '2' } }),
      host(STAT, fails('ESRCH'), { pid: 6 }),
      host('7 (a)', fails('ESRCH')),
    ]) {
      expect(none.own).toBeUndefined();
      expect(none.look('boot pid:[1] 8 99')).toBeUndefined();
    }
  });

  it('nothing is known of a process that is hidden or belongs to another user', () => {
    expect(host(STAT, () => true).look('boot pid:[1] 8 99')).toBeUndefined();
    expect(host(STAT, fails('EPERM')).look('boot pid:[1] 8 99')).toBeUndefined();
  });
});
