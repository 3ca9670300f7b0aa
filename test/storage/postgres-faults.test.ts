/** Faults of Postgres: connections that are lost or never answer, locks, exhausted pools, and damaged rows. */

import { createServer, type Server } from 'node:net';
import postgres from 'postgres';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type SessionEvents, type SqlClient, statement } from '../../src/adapters/storage/postgres/drivers/driver.ts';
import { openClient } from '../../src/adapters/storage/postgres/drivers/load-driver.ts';
import { readPostgresOptions } from '../../src/adapters/storage/postgres/options.ts';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { tableNames } from '../../src/adapters/storage/postgres/tables/names.ts';
import { createSessions } from '../../src/adapters/storage/postgres/tables/sessions.ts';
import {
  accept,
  claim,
  commitOne,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  register,
  step,
  stepKeys,
  T0,
  WORKER,
} from '../../src/conformance/storage-suite/context.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { scaled } from '../slowdown.ts';
import { createDatabase, findServer, type TestDatabase, until } from './postgres-server.ts';

const hasServer = await findServer();
const passing = { code: 'OVERLOADED', retryable: true };

describe("the session's connection", () => {
  it('is opened again when it is lost while it is opened, and its lock is taken on the next connection', async () => {
    let openedTimes = 0;
    let takenOn = 0;
    const client = {
      sessionLocks: true,
      async openSession(_: string, { onLost }: SessionEvents) {
        openedTimes += 1;
        const number = openedTimes;
        if (number === 2) onLost();
        const run = async () => {
          takenOn = number;
          return { rows: [{ taken: 't', known: 't' }], count: 1 };
        };
        if (number === 1) setTimeout(onLost, 10);
        return { pid: number, run, close: async () => undefined };
      },
    } as unknown as SqlClient;
    const sessions = createSessions(client, tableNames('ensemble'), 'channel');
    await sessions.hold(WORKER, 1);
    expect(takenOn).toBe(1);
    await until(() => takenOn === 3, 'the lock on the third connection');
    await sessions.close();
  });
});

describe('a server that accepts connections and never answers', () => {
  let silent: Server;
  let connectionString: string;
  beforeAll(async () => {
    silent = createServer(() => undefined);
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const address = silent.address();
    connectionString = `postgres://nobody@127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/none`;
  });
  afterAll(() => silent.close());

  it.each(['url', 'sql'] as const)('fails the first call within 2 s, with its address, by %s', async (source) => {
    const sql = postgres(connectionString, { connect_timeout: 60 });
    const storage = postgresStorage({
      ...(source === 'sql' ? { sql } : { url: connectionString }),
    });
    const began = performance.now();
    await expect(Promise.resolve(storage.state.read('a'))).rejects.toMatchObject({
      code: 'NOT_CONFIGURED',
      message: expect.stringContaining(`${new URL(connectionString).host} within 2 s (no answer)`),
    });
    expect(performance.now() - began).toBeLessThan(scaled(2200));
    await storage.close();
    await sql.end({ timeout: 0 });
  });
});

describe('a query of postgres.js that times out', () => {
  /** Like a query of the package: it shows whether it was sent, and its cancellation drops the returned promise. */
  const ask = async (state: unknown) => {
    let asked = 0;
    const canceller = () => {
      asked += 1;
      return Promise.reject(new Error('connect ECONNREFUSED'));
    };
    const pending = Object.assign(new Promise(() => undefined), { state, canceller, raw: () => pending });
    const sql = { unsafe: () => pending, reserve: () => undefined, options: {} };
    const client = await openClient(readPostgresOptions({ sql, sessions: false, timeout: 100 }));
    const unhandled: unknown[] = [];
    const listener = (error: unknown) => unhandled.push(error);
    process.on('unhandledRejection', listener);
    await expect(client.run(statement('SELECT 1'), [])).rejects.toMatchObject(passing);
    await new Promise((resolve) => setTimeout(resolve, 20));
    process.off('unhandledRejection', listener);
    return { asked, unhandled };
  };

  it('is cancelled on the server when it was sent; an unreachable server does not end the process', async () => {
    expect(await ask({ pid: 1, secret: 2 })).toEqual({ asked: 1, unhandled: [] });
  });

  it('is not cancelled when it was not sent yet, because its connection would never be used again', async () => {
    expect(await ask(null)).toEqual({ asked: 0, unhandled: [] });
  });
});

describe.skipIf(!hasServer)('on a server', () => {
  let database: TestDatabase;
  const opened: Storage[] = [];
  let namespaces = 0;
  beforeAll(async () => {
    database = await createDatabase();
  });
  afterEach(async () => {
    for (const storage of opened.splice(0)) await storage.close();
  });
  afterAll(() => database.drop());

  const DRIVERS = ['pg', 'postgres.js'] as const;
  const open = (driver: (typeof DRIVERS)[number] = 'pg', options: object = {}): Storage => {
    namespaces += 1;
    const source = driver === 'pg' ? { pool: database.pool({ max: 3 }) } : { sql: database.sql({ max: 3 }) };
    const storage = postgresStorage({ ...source, namespace: `test ${namespaces}`, ...options });
    opened.push(storage);
    return storage;
  };
  const killAll = () =>
    database.query(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()',
    );

  it.each(DRIVERS)(
    'a write that waits too long is OVERLOADED, and is stored once when it is repeated, by %s',
    async (driver) => {
      const storage = open(driver, { timeout: 300 });
      await accept(storage, execution(1));
      await database.query('BEGIN; LOCK TABLE ensemble.steps IN ACCESS EXCLUSIVE MODE');
      const write = entry(1, { steps: [step('flow[0]')], end: end() });
      const began = performance.now();
      await expect(commitOne(storage, write)).rejects.toMatchObject(passing);
      expect(performance.now() - began).toBeLessThan(scaled(2000));
      await database.query('COMMIT');
      expect(await commitOne(storage, write)).toBe('stored');
      expect(await stepKeys(storage, 1)).toEqual(['flow[0]']);
      expect((await storage.executions.get(executionId(1)))?.status).toBe('completed');
    },
  );

  it.each(DRIVERS)(
    'connections that end during a call fail only this call; the next call is answered, by %s',
    async (driver) => {
      // A driver may miss that a connection ended while it received a query. Then the timeout ends the call.
      const storage = open(driver, { timeout: 1000 });
      await accept(storage, execution(1));
      const answers: string[] = [];
      for (let round = 0; round < 10; round++) {
        const writes = Array.from({ length: 5 }, (_, i) => entry(1, { steps: [step(`s${round}-${i}`)] }));
        const [, ...results] = await Promise.all([
          killAll(),
          ...writes.map((write) => commitOne(storage, write).catch((error: { code: string }) => error.code)),
        ]);
        for (const [i, result] of results.entries()) {
          answers.push(String(result));
          // Whether it was stored is not known; a repeated write is stored once.
          const again = () => commitOne(storage, writes[i] as (typeof writes)[0]).catch(() => undefined);
          await until(async () => (await again()) === 'stored', 'the repeated write');
        }
      }
      expect(new Set(answers)).toEqual(
        new Set([...new Set(answers)].filter((answer) => answer === 'stored' || answer === 'OVERLOADED')),
      );
      expect(await stepKeys(storage, 1)).toHaveLength(50);
      expect(new Set(await stepKeys(storage, 1)).size).toBe(50);
    },
  );

  it.each(DRIVERS)('the locks of a process that hangs in a transaction are free soon, by %s', async (driver) => {
    const source = driver === 'pg' ? { pool: database.pool() } : { sql: database.sql() };
    const client = await openClient(readPostgresOptions({ ...source, timeout: 200 }));
    await open().executions.countQueued(1);
    const held = "SELECT FROM pg_locks WHERE relation = 'ensemble.kv'::regclass AND mode = 'AccessExclusiveLock'";
    const standing = client.transaction(async (on) => {
      await on.exec('LOCK TABLE ensemble.kv');
      expect((await database.query(held)).rowCount).toBe(1);
      await until(async () => (await database.query(held)).rowCount === 0, 'the lock to be free');
      await on.exec('SELECT 1');
    });
    await expect(standing).rejects.toThrow();
    await client.close();
  });

  it('idle connections that end do not end the process, and are opened again', async () => {
    const pool = database.pool({ max: 4 });
    const storage = open('pg', { pool });
    await Promise.all([1, 2, 3].map(() => storage.executions.countQueued(1)));
    expect(pool.listenerCount('error')).toBe(1);
    await killAll();
    const answers = async () => {
      try {
        return (await storage.executions.countQueued(1)) === 0;
      } catch {
        return false;
      }
    };
    await until(answers, 'an answer');
  });

  it("an app's own listener for a pool's errors is the only one", async () => {
    const pool = database.pool();
    pool.on('error', () => undefined);
    const storage = open('pg', { pool });
    await storage.executions.countQueued(1);
    expect(pool.listenerCount('error')).toBe(1);
  });

  it('a pool that its app has exhausted is OVERLOADED after the timeout', async () => {
    const pool = database.pool({ max: 2 });
    const storage = open('pg', { pool, timeout: 200 });
    await storage.executions.countQueued(1);
    const taken = [await pool.connect(), await pool.connect()];
    await expect(Promise.resolve(storage.executions.countQueued(1))).rejects.toMatchObject(passing);
    for (const client of taken) client.release();
    expect(await storage.executions.countQueued(1)).toBe(0);
    expect(pool.idleCount).toBe(pool.totalCount);
  });

  it('a statement that Postgres refuses does not lose its connection', async () => {
    const pool = database.pool({ max: 2 });
    const storage = open('pg', { pool });
    await accept(storage, execution(1));
    const before = (await pool.query('SELECT pg_backend_pid() AS pid')).rows;
    for (let times = 0; times < 3; times++)
      expect(await commitOne(storage, entry(1, { steps: [step('flow[0]')] }))).toBe('stored');
    expect((await pool.query('SELECT pg_backend_pid() AS pid')).rows).toEqual(before);
  });

  it('without sessions, no statement is prepared, no lock is taken, and nothing listens', async () => {
    const pool = database.pool({ max: 1 });
    const storage = open('pg', { pool, sessions: false });
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [step('flow[0]')] }));
    expect((await pool.query('SELECT name FROM pg_prepared_statements')).rows).toEqual([]);
    expect((await pool.query('SELECT pg_listening_channels()')).rows).toEqual([]);
    expect(
      (await pool.query("SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()")).rowCount,
    ).toBe(0);
  });

  it('missing prepared statements are reported, with the option to set', async () => {
    const pool = database.pool({ max: 2 });
    const storage = open('pg', { pool });
    await storage.executions.countQueued(1);
    await pool.query('DEALLOCATE ALL');
    await expect(Promise.resolve(storage.executions.countQueued(1))).rejects.toMatchObject({ code: 'NOT_CONFIGURED' });
  });

  it('a damaged execution is named, hides no other execution, and is claimed so that it can be ended', async () => {
    const storage = open();
    await register(storage);
    for (const number of [1, 2, 3]) await enqueue(storage, execution(number));
    await database.query(
      `UPDATE ensemble.executions SET input = '{"cut":', started_by = 'x' WHERE namespace = $1 AND id = $2`,
      [`test ${namespaces}`, executionId(2)],
    );
    const reading = {
      code: 'INTERNAL',
      message: expect.stringContaining(`execution ${executionId(2)}: its stored started_by`),
    };
    await expect(Promise.resolve(storage.executions.get(executionId(2)))).rejects.toMatchObject(reading);
    const listed = await storage.executions.list({ limit: 10 });
    expect(listed.map(({ input, error }) => [input, error?.code])).toEqual([
      [{ number: 3 }, undefined],
      [null, 'INTERNAL'],
      [{ number: 1 }, undefined],
    ]);
    const claimed = await storage.executions.claim(WORKER, { now: T0, limit: 10, excludeVersions: [] });
    expect(claimed.map((one) => ('damage' in one ? one.executionId : one.execution.input))).toEqual([
      { number: 1 },
      executionId(2),
      { number: 3 },
    ]);
    expect(await commitOne(storage, entry(2, { end: end({ status: 'failed' }) }))).toBe('stored');
  });

  it.each(['["vip"', '{"vip":1}', '["vip",]', '["\\x"]', '["\\u0000"]', '["\n"]', 'vip', ''])(
    'damaged tags do not stop the deletion of old executions: %j',
    async (tags) => {
      const storage = open();
      for (const number of [1, 2, 3]) {
        await accept(storage, execution(number, { tags: ['vip', '"\\ 漢'] }));
        await commitOne(storage, entry(number, { end: end({ finishedAt: T0 }) }));
      }
      await database.query('UPDATE ensemble.executions SET tags = $3 WHERE namespace = $1 AND id = $2', [
        `test ${namespaces}`,
        executionId(2),
        tags,
      ]);
      const query = { worker: WORKER, before: T0 + 10, limit: 10 };
      expect(await storage.executions.purge(query)).toEqual({ deleted: 3 });
      const { rows: left } = await database.query('SELECT DISTINCT id FROM ensemble.tags WHERE namespace = $1', [
        `test ${namespaces}`,
      ]);
      expect(left).toEqual([{ id: executionId(2) }]);
      expect(await storage.executions.list({ tag: 'vip', limit: 10 })).toEqual([]);
    },
  );

  it('the parent of a damaged child execution is known, so that it can be resumed', async () => {
    const storage = open();
    await register(storage);
    const trigger = { type: 'ensemble', parentId: executionId(1), rootId: executionId(1), depth: 1 } as const;
    await enqueue(storage, execution(2, { trigger }));
    await database.query(`UPDATE ensemble.executions SET started_by = 'x' WHERE namespace = $1 AND id = $2`, [
      `test ${namespaces}`,
      executionId(2),
    ]);
    const [claimed] = await storage.executions.claim(WORKER, { now: T0, limit: 10, excludeVersions: [] });
    expect(claimed).toMatchObject({ executionId: executionId(2), parentId: executionId(1) });
    expect(claimed && 'damage' in claimed).toBe(true);
  });

  it('a damaged step, state, definition and value are named', async () => {
    const storage = open();
    const namespace = `test ${namespaces}`;
    await accept(storage, execution(1));
    await commitOne(
      storage,
      entry(1, {
        steps: [step('flow[0]')],
        state: { ensemble: 'orders', expectedVersion: 0, value: {}, updatedAt: 1 },
      }),
    );
    await storage.definitions.put({ version: 'v', definition: {}, needs: [] });
    await storage.kv.put('key', 1);
    await database.query(
      `UPDATE ensemble.steps SET output = '{' WHERE execution = (SELECT max(ref) FROM ensemble.executions)`,
    );
    await database.query("UPDATE ensemble.states SET value = '[]' WHERE namespace = $1", [namespace]);
    await database.query("UPDATE ensemble.definitions SET needs = '{}' WHERE namespace = $1", [namespace]);
    await database.query("UPDATE ensemble.kv SET value = '' WHERE namespace = $1", [namespace]);
    const named = (message: string) => ({ code: 'INTERNAL', message: expect.stringContaining(message) });
    await expect(Promise.resolve(storage.executions.listSteps(executionId(1), { limit: 1 }))).rejects.toMatchObject(
      named('step flow[0] of execution'),
    );
    await expect(Promise.resolve(storage.state.read('orders'))).rejects.toMatchObject(
      named('state of ensemble orders: its stored value'),
    );
    await expect(Promise.resolve(storage.definitions.get('v'))).rejects.toMatchObject(
      named('definition v: its stored needs'),
    );
    await expect(Promise.resolve(storage.kv.get('key', 1))).rejects.toMatchObject(named('key key: its stored value'));
  });

  it('a damaged token is listed without scopes and can be revoked', async () => {
    const storage = open();
    await storage.tokens.put({
      id: 'tok_1',
      name: 'a',
      scopes: ['admin'],
      plan: 'pro',
      digest: 'd',
      last4: '1234',
      createdAt: 5,
    });
    await database.query("UPDATE ensemble.tokens SET scopes = 'x' WHERE namespace = $1", [`test ${namespaces}`]);
    expect(await storage.tokens.list()).toEqual([
      { id: 'tok_1', name: '(damaged row)', scopes: [], plan: 'free', digest: 'd', last4: '1234', createdAt: 5 },
    ]);
    expect(await storage.tokens.delete('tok_1')).toBe(true);
  });

  it('a start with an end or a state change is stored wholly or not at all', async () => {
    const storage = open();
    await register(storage);
    const whole = { executionId: executionId(1), epoch: 1, start: execution(1), steps: [step('a')], end: end() };
    expect(await commitOne(storage, whole)).toBe('stored');
    expect(await commitOne(storage, whole)).toBe('stored');
    expect((await storage.executions.get(executionId(1)))?.status).toBe('completed');
    const state = { ensemble: 'orders', expectedVersion: 7, value: {}, updatedAt: 1 };
    const refused = { executionId: executionId(2), epoch: 1, start: execution(2), steps: [step('a')], state };
    expect(await commitOne(storage, refused)).toBe('state-conflict');
    expect(await storage.executions.get(executionId(2))).toBeUndefined();
    expect(await claim(storage)).toEqual([]);
  });
});
