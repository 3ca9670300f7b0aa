/** Postgres and several processes: claims, dead workers, notifications, and lost connections. */

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import {
  accept,
  claim,
  commitOne,
  enqueue,
  entry,
  execution,
  executionId,
  OTHER,
  register,
  starting,
  step,
  T0,
  WORKER,
} from '../../src/conformance/storage-suite/context.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { scaled } from '../slowdown.ts';
import { buildChildren, startChild } from './postgres-children.ts';
import { createDatabase, findServer, type TestDatabase, until } from './postgres-server.ts';

const hasServer = await findServer();

describe.skipIf(!hasServer)('processes on one Postgres', () => {
  buildChildren();
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

  type Driver = 'pg' | 'postgres.js';
  const open = (driver: Driver = 'pg', namespace = 'default'): Storage => {
    const storage = postgresStorage({
      ...(driver === 'pg' ? { pool: database.pool({ max: 4 }) } : { sql: database.sql({ max: 4 }) }),
      namespace,
    });
    opened.push(storage);
    return storage;
  };
  const fresh = () => {
    namespaces += 1;
    return `test ${namespaces}`;
  };
  const lease = (ms: number) => ({ now: Date.now(), leaseUntil: Date.now() + ms });

  /** Checks every half second, as an engine does, until an execution is freed. @returns the time in ms */
  const takeOver = async (storage: Storage): Promise<number> => {
    const began = performance.now();
    while ((await storage.workers.reclaimFromDead(OTHER, Date.now())).freed === 0) {
      if (performance.now() - began > 15_000) throw new Error('no worker was considered dead');
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
    return performance.now() - began;
  };

  /** The backends that hold locks of workers. */
  const lockHolders = async (): Promise<number[]> => {
    const { rows } = await database.query(
      `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid > 0
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    );
    return rows.map(({ pid }) => pid);
  };

  it.each(['pg', 'postgres.js'] as const)(
    'a killed process is considered dead within moments, by %s',
    async (driver) => {
      const number = driver === 'pg' ? 1 : 2;
      const storage = open(driver);
      await storage.workers.register(OTHER, lease(60_000));
      const child = startChild(driver, database.connectionString, String(number));
      await child.said('stored');
      expect((await storage.workers.reclaimFromDead(OTHER, Date.now())).freed).toBe(0);
      await child.kill();
      // The engine promises that another process continues within 2 s. Half a second is left for the test itself.
      expect(await takeOver(storage)).toBeLessThan(scaled(2500));
      const claimed = await claim(storage, { now: Date.now() }, OTHER);
      expect(claimed.map(({ epoch, recoveries, begun }) => [epoch, recoveries, begun])).toEqual([[2, 1, true]]);
      await commitOne(storage, entry(number, { epoch: 2, release: { status: 'waiting', dueAt: 1e15 } }), OTHER);
      await storage.workers.unregister(OTHER, Date.now());
    },
  );

  it.each(['pg', 'postgres.js'] as const)(
    'a process that hung for longer than its lease has its writes refused, by %s',
    async (driver) => {
      const number = driver === 'pg' ? 3 : 4;
      const storage = open(driver);
      await storage.workers.register(OTHER, lease(60_000));
      const child = startChild(driver, database.connectionString, String(number), '600');
      await child.said('stored');
      child.signal('SIGSTOP');
      await takeOver(storage);
      const [claimed] = await claim(storage, { now: Date.now() }, OTHER);
      expect(claimed?.epoch).toBe(2);
      const before = await storage.executions.listSteps(executionId(number), { limit: 1000 });
      child.signal('SIGCONT');
      await child.said('fenced');
      expect(child.lines).toEqual(['joined', 'stored', 'fenced']);
      expect(await storage.executions.listSteps(executionId(number), { limit: 1000 })).toEqual(before);
      expect(await commitOne(storage, entry(number, { epoch: 2, steps: [step('late')] }), OTHER)).toBe('stored');
      await child.kill();
      await commitOne(storage, entry(number, { epoch: 2, release: { status: 'waiting', dueAt: 1e15 } }), OTHER);
      await storage.workers.unregister(OTHER, Date.now());
    },
  );

  it.each(['pg', 'postgres.js'] as const)(
    'a process that lost only its connections takes its lock again and keeps its epoch, by %s',
    async (driver) => {
      const namespace = fresh();
      const [storage, other] = [open(driver, namespace), open('pg', namespace)];
      await storage.workers.register(WORKER, lease(60_000));
      await accept(storage, execution(1));
      await other.workers.register(OTHER, lease(60_000));
      for (let times = 0; times < 3; times++) {
        const before = await lockHolders();
        expect(before).toHaveLength(2);
        await database.query(
          'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()',
        );
        const began = performance.now();
        await until(
          async () => (await lockHolders()).filter((pid) => !before.includes(pid)).length === 2,
          'both locks',
        );
        expect(performance.now() - began).toBeLessThan(scaled(1000));
      }
      for (const end = performance.now() + 2000; performance.now() < end; ) {
        expect((await other.workers.reclaimFromDead(OTHER, Date.now())).freed).toBe(0);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      expect(await commitOne(storage, entry(1, { steps: [step('flow[0]')] }))).toBe('stored');
      expect(await storage.workers.renew(WORKER, Date.now() + 60_000)).toBe(true);
    },
  );

  it.each([
    ['on the same machine', {}, true],
    ['elsewhere, within the grace period', { sessionGraceMs: 30_000 }, false],
  ] as const)("a process that can't connect for seconds keeps its executions: %s", async (_, grace, isKnown) => {
    if (isKnown && process.platform !== 'linux') return;
    const namespace = fresh();
    const real = database.pool({ max: 4 });
    let isCut = false;
    const pool = {
      options: real.options,
      connect: (done: Parameters<typeof real.connect>[0]) =>
        isCut
          ? done(Object.assign(new Error('no'), { code: 'ECONNREFUSED' }), undefined, () => undefined)
          : real.connect(done),
      on: (event: 'error', listener: (error: Error) => void) => real.on(event, listener),
      end: () => real.end(),
    };
    const storage = postgresStorage({ pool, namespace, ...grace });
    const other = postgresStorage({ pool: database.pool({ max: 4 }), namespace, ...grace });
    opened.push(storage, other);
    await storage.workers.register(WORKER, lease(60_000));
    await accept(storage, execution(1));
    await other.workers.register(OTHER, lease(60_000));
    if (!isKnown) await database.query('UPDATE ensemble.owners SET process = NULL WHERE namespace = $1', [namespace]);
    isCut = true;
    const holders = await lockHolders();
    await database.query('SELECT pg_terminate_backend(pid) FROM unnest($1::integer[]) pid', [holders]);
    await until(async () => (await lockHolders()).length === 1, 'the lock to be free');
    for (const end = performance.now() + 3000; performance.now() < end; ) {
      expect((await other.workers.reclaimFromDead(OTHER, Date.now())).freed).toBe(0);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    expect((await lockHolders()).length).toBe(1);
    isCut = false;
    expect(await commitOne(storage, entry(1, { steps: [step('flow[0]')] }))).toBe('stored');
    await until(async () => (await lockHolders()).length === 2, 'both locks');
  });

  it('a worker without a session is considered dead only by its lease', async () => {
    const namespace = fresh();
    const storage = postgresStorage({ pool: database.pool({ max: 2 }), namespace, sessions: false });
    opened.push(storage);
    expect(storage.watch).toBeUndefined();
    await storage.workers.register(WORKER, lease(60_000));
    await accept(storage, execution(1));
    const other = open('pg', namespace);
    await other.workers.register(OTHER, lease(60_000));
    for (const end = performance.now() + 2500; performance.now() < end; ) {
      expect((await other.workers.reclaimFromDead(OTHER, Date.now())).freed).toBe(0);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect((await other.workers.reclaimFromDead(OTHER, Date.now() + 61_000)).freed).toBe(1);
  });

  it.each(['pg', 'postgres.js'] as const)(
    'an execution that one process queues wakes another within moments, by %s',
    async (driver) => {
      const namespace = fresh();
      const [storage, other] = [open(driver, namespace), open('pg', namespace)];
      const elsewhere = open('pg', fresh());
      let [woken, own, foreign] = [0, 0, 0];
      await other.watch?.(() => {
        woken += 1;
      });
      await storage.watch?.(() => {
        own += 1;
      });
      await elsewhere.watch?.(() => {
        foreign += 1;
      });
      await register(storage);
      await register(other, OTHER);
      // The listening connections are open now, and have notified the listeners of it.
      await until(async () => (await lockHolders()).length >= 2, 'the sessions');
      await new Promise((resolve) => setTimeout(resolve, 50));
      [woken, own, foreign] = [0, 0, 0];
      const took: number[] = [];
      for (let number = 0; number < 20; number++) {
        const before = woken;
        const began = performance.now();
        await enqueue(storage, execution(number));
        await until(() => woken > before, 'a wake-up');
        took.push(performance.now() - began);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      expect(took.sort((a, b) => a - b)[10]).toBeLessThan(scaled(50));
      // A listener is also called when its connection was opened again, which may happen once or twice on a busy machine.
      expect(Math.max(own, foreign)).toBeLessThan(5);
    },
  );

  it('many writes lead to few notifications, and the last write is notified', async () => {
    const namespace = fresh();
    const [storage, other] = [open('pg', namespace), open('pg', namespace)];
    let woken = 0;
    let seen = 0;
    await other.watch?.(() => {
      woken += 1;
      Promise.resolve(other.executions.countQueued(1000)).then((count) => {
        seen = Math.max(seen, count);
      });
    });
    await register(other, OTHER);
    await register(storage);
    await Promise.all(Array.from({ length: 300 }, (_, number) => enqueue(storage, execution(number))));
    await until(() => seen === 300, 'the last one to be seen');
    expect(woken).toBeLessThan(150);
  });

  it('a stopped listener is not called any more', async () => {
    const namespace = fresh();
    const [storage, other] = [open('pg', namespace), open('pg', namespace)];
    let [first, second] = [0, 0];
    const stop = await other.watch?.(() => {
      first += 1;
    });
    await other.watch?.(() => {
      second += 1;
    });
    await register(other, OTHER);
    await stop?.();
    first = 0;
    await enqueue(storage, execution(1));
    await until(() => second > 0, 'a wake-up');
    expect(first).toBe(0);
  });

  it('when several processes claim at the same time, each execution goes to one of them, and none is left', async () => {
    const namespace = fresh();
    const stores = [open('pg', namespace), open('postgres.js', namespace), open('pg', namespace)];
    const owners = stores.map((_, i) => `own_${String(i).padStart(26, '0')}`);
    await Promise.all(stores.map((storage, i) => register(storage, owners[i])));
    const batch = Array.from({ length: 3000 }, (_, number) =>
      starting(execution(number, { ensemble: `e-${number % 5}` }), { release: { status: 'queued', dueAt: T0 } }),
    );
    await stores[0]?.commit('nobody', batch);
    const claimed = await Promise.all(
      stores.map(async (storage, i) => {
        const found: string[] = [];
        for (let idle = 0; idle < 3; ) {
          const some = await claim(storage, { limit: 50 }, owners[i]);
          idle = some.length === 0 ? idle + 1 : 0;
          found.push(...some.map((one) => one.execution.id));
        }
        return found;
      }),
    );
    expect(claimed.flat()).toHaveLength(3000);
    expect(new Set(claimed.flat()).size).toBe(3000);
    expect(Math.min(...claimed.map(({ length }) => length))).toBeGreaterThan(0);
  });

  it('the removal of a worker waits for its running write, which the next worker then sees', async () => {
    const namespace = fresh();
    const [storage, other] = [open('pg', namespace), open('postgres.js', namespace)];
    await register(other, OTHER, T0);
    await storage.workers.register(WORKER, { now: T0, leaseUntil: T0 + 1 });
    await commitOne(storage, starting(execution(1)));
    // A write of the same key waits for the end of this transaction.
    const blocker = await database.pool({ max: 1 }).connect();
    await blocker.query(`BEGIN; INSERT INTO ensemble.steps (execution, started_at, duration, attempts, note, key, name, status, output)
      SELECT max(ref), 0, 0, 1, false, 'flow[0]', '', '', 'null' FROM ensemble.executions`);
    const write = commitOne(storage, entry(1, { steps: [step('flow[0]')] }));
    const waits = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    await until(async () => (await database.query(waits)).rowCount === 1, 'the write to wait');
    let freed: number | undefined;
    const recovered = Promise.resolve(other.workers.reclaimFromDead(OTHER, T0 + 1)).then((look) => {
      freed = look.freed;
    });
    await until(async () => (await database.query(waits)).rowCount === 2, 'the removal to wait');
    expect(freed).toBeUndefined();
    await blocker.query('ROLLBACK');
    blocker.release();
    expect(await write).toBe('stored');
    await recovered;
    expect(freed).toBe(1);
    expect(await other.executions.listSteps(executionId(1), { limit: 10 })).toEqual([step('flow[0]')]);
  });

  it('a write at the same time as a removal is stored wholly or refused', async () => {
    const namespace = fresh();
    const [storage, other] = [open('pg', namespace), open('pg', namespace)];
    await register(other, OTHER, T0);
    for (let round = 0; round < 30; round++) {
      await storage.workers.register(WORKER, { now: T0, leaseUntil: T0 + 1 });
      await commitOne(storage, starting(execution(round)));
      const steps = Array.from({ length: 20 }, (_, i) => step(`s${i}`));
      const [answer, { freed }] = await Promise.all([
        commitOne(storage, entry(round, { steps })),
        other.workers.reclaimFromDead(OTHER, T0 + 1),
      ]);
      expect(freed).toBe(1);
      const seen = await other.executions.listSteps(executionId(round), { limit: 100 });
      expect([answer, seen.length]).toEqual(answer === 'stored' ? ['stored', 20] : ['fenced', 0]);
    }
  });
});
