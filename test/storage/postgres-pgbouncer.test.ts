/** The library through a real PgBouncer in transaction mode: accepted executions complete, whatever happens to the pooler. */

import pg from 'pg';
import postgres from 'postgres';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { embeddedEngine } from '../../src/adapters/embedded-engine/embedded-engine.ts';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { createOrchestrator, type Orchestrator } from '../../src/orchestrator/create-orchestrator.ts';
import { createPgBouncer, hasPgBouncer, type PgBouncer } from './pgbouncer.ts';
import { createDatabase, findServer, type TestDatabase, until } from './postgres-server.ts';

const isThere = (await findServer()) && hasPgBouncer();

const LEASE_MS = 2000;
const STEPS = 6;
const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Each step adds one to its input. */
const PLAIN = {
  name: 'plain',
  flow: Array.from({ length: STEPS }, (_, at) => ({
    agent: `s${at}`,
    operation: 'code',
    config: { script: 'add' },
    input: { x: at === 0 ? '${input.x}' : `\${s${at - 1}.output}` },
  })),
  outputs: { x: `\${s${STEPS - 1}.output}` },
};
const CHILD = { name: 'child', flow: [...PLAIN.flow], outputs: PLAIN.outputs };
const PARENT = {
  name: 'parent',
  state: { initial: { runs: 0 } },
  flow: [
    { ensemble: 'child', name: 'first', input: { x: '${input.x}' } },
    {
      agent: 'note',
      operation: 'code',
      config: { script: 'add' },
      input: { x: 0 },
      setState: { runs: '${state.runs + 1}' },
    },
    { ensemble: 'child', name: 'second', input: { x: '${first.output.x}' } },
  ],
  outputs: { x: '${second.output.x}' },
};

describe.skipIf(!isThere)('through PgBouncer in transaction mode', () => {
  let database: TestDatabase;
  let pooler: PgBouncer;
  let opened: Orchestrator[] = [];
  let clients: (() => Promise<unknown>)[] = [];
  let last: (() => Promise<unknown>)[] = [];
  let namespaces = 0;
  /** How often each step ran, by execution. */
  let ran: Map<string, number>;

  beforeAll(async () => {
    database = await createDatabase();
    pooler = await createPgBouncer({ query_wait_timeout: 3, default_pool_size: 8 });
    await pooler.start();
  });
  beforeEach(() => {
    namespaces += 1;
    ran = new Map();
  });
  afterEach(async () => {
    for (const orchestrator of opened) await orchestrator.close();
    for (const end of [...clients, ...last]) await end();
    [opened, clients, last] = [[], [], []];
  });
  afterAll(async () => {
    await pooler?.stop();
    await database?.drop();
  });

  const open = (
    driver: 'pg' | 'postgres.js',
    leaseMs = LEASE_MS,
    by: { readonly pooler: PgBouncer; readonly sessions: boolean } = { pooler, sessions: false },
  ): Orchestrator => {
    const connectionString = by.pooler.through(database.connectionString);
    const shared = { sessions: by.sessions, timeout: 1000, namespace: `pooled ${namespaces}` };
    let storage: ReturnType<typeof postgresStorage>;
    if (driver === 'pg') {
      const pool = new pg.Pool({ connectionString, max: 6 });
      clients.push(() => pool.end());
      storage = postgresStorage({ pool, ...shared });
    } else {
      const sql = postgres(connectionString, { max: 6, connect_timeout: 5, fetch_types: false, backoff: () => 0.2 });
      clients.push(() => sql.end({ timeout: 1 }));
      storage = postgresStorage({ sql, ...shared });
    }
    const orchestrator = createOrchestrator({
      ensembles: [PLAIN, CHILD, PARENT],
      scripts: {
        async add({ input, execution, idempotencyKey }) {
          const step = `${execution.id} ${idempotencyKey}`;
          ran.set(step, (ran.get(step) ?? 0) + 1);
          await wait(40);
          return (input as { x: number }).x + 1;
        },
      },
      storage,
      engine: embeddedEngine({ leaseMs, renewMs: leaseMs / 4, sweepMs: 100 }),
    });
    opened.push(orchestrator);
    return orchestrator;
  };
  /** Three pools, of both drivers. */
  const openAll = (leaseMs?: number) => [open('pg', leaseMs), open('postgres.js', leaseMs), open('pg', leaseMs)];

  const startAll = async (orchestrators: readonly Orchestrator[], name: string, count: number): Promise<string[]> => {
    const starts = Array.from({ length: count }, (_, x) => orchestrators[x % orchestrators.length]?.start(name, { x }));
    const started = await Promise.all(starts);
    for (const one of started) one?.result().catch(() => undefined);
    return started.map((one) => one?.id as string);
  };

  const unfinished = `SELECT count(*)::integer AS left FROM ensemble.executions WHERE namespace = $1 AND finished_at IS NULL`;
  const allEnd = async () => {
    const left = async () => (await database.query(unfinished, [`pooled ${namespaces}`])).rows[0]?.left as number;
    for (const end = performance.now() + 45_000; performance.now() < end && (await left()) > 0; ) await wait(50);
    return left();
  };
  const outcomes = async (ids: readonly string[]) => {
    const text = `SELECT id, status, output, error, recoveries FROM ensemble.executions WHERE namespace = $1 AND id = ANY ($2)`;
    const { rows } = await database.query(text, [`pooled ${namespaces}`, ids]);
    const byId = new Map(rows.map((row) => [row.id, row]));
    return ids.map((id) => byId.get(id) ?? { status: 'lost' });
  };
  const expectCompleted = async (ids: readonly string[], added = STEPS) => {
    expect(await allEnd()).toBe(0);
    const all = await outcomes(ids);
    expect(all.map(({ status, error }) => error ?? status)).toEqual(ids.map(() => 'completed'));
    expect(all.map(({ output }) => JSON.parse(output).x)).toEqual(ids.map((_, x) => x + added));
    return all;
  };
  const kick = () =>
    database.query(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()',
    );

  it('executions of several processes complete, each step once', async () => {
    const ids = await startAll(openAll(30_000), 'plain', 120);
    await expectCompleted(ids);
    expect(new Set(ran.values())).toEqual(new Set([1]));
    expect(ran.size).toBe(120 * STEPS);
  });

  it('child executions and state changes: the same', async () => {
    const ids = await startAll(openAll(30_000), 'parent', 20);
    await expectCompleted(ids, 2 * STEPS);
    expect(
      (await database.query('SELECT value FROM ensemble.states WHERE namespace = $1', [`pooled ${namespaces}`])).rows,
    ).toEqual([{ value: '{"runs":20}' }]);
  });

  it('a pooler that dies and restarts within the lease: no execution changes its worker, and no step runs twice', async () => {
    const ids = await startAll(openAll(30_000), 'plain', 60);
    for (let times = 0; times < 3; times++) {
      await wait(60);
      await pooler.kill();
      await wait(300);
      await pooler.start();
    }
    const all = await expectCompleted(ids);
    expect(all.map(({ recoveries }) => recoveries)).toEqual(ids.map(() => 0));
    expect(new Set(ran.values())).toEqual(new Set([1]));
  });

  it('server connections that end during calls: the same', async () => {
    const ids = await startAll(openAll(30_000), 'plain', 60);
    for (let times = 0; times < 5; times++) {
      await wait(60);
      await kick();
    }
    await expectCompleted(ids);
    expect(new Set(ran.values())).toEqual(new Set([1]));
  });

  it('a pooler that is unreachable for longer than the lease: all accepted executions complete', async () => {
    const ids = await startAll(openAll(), 'plain', 30);
    await wait(100);
    await pooler.kill();
    await wait(2 * LEASE_MS);
    await pooler.start();
    await expectCompleted(ids);
  });

  it('a pooler that is paused for longer than the lease: the same', async () => {
    const ids = await startAll(openAll(), 'plain', 30);
    await wait(100);
    await pooler.command('PAUSE');
    await wait(2 * LEASE_MS + 1000);
    await pooler.command('RESUME');
    await expectCompleted(ids);
  });

  it('a database that the pooler refuses for longer than the lease, with its connections cut: the same', async () => {
    const name = new URL(database.connectionString).pathname.slice(1);
    const ids = await startAll(openAll(), 'plain', 30);
    await wait(100);
    await pooler.command(`DISABLE ${name}`);
    await pooler.command(`KILL ${name}`);
    await wait(2 * LEASE_MS);
    await pooler.command(`ENABLE ${name}`);
    await pooler.command(`RESUME ${name}`);
    await expectCompleted(ids);
  });

  it.runIf(process.platform === 'linux')(
    'in session mode, with sessions: when the pooler is unreachable for seconds, no step runs twice',
    async () => {
      const sessions = await createPgBouncer({ pool_mode: 'session', default_pool_size: 60 });
      await sessions.start();
      // PgBouncer ends when nothing uses it any more.
      last.push(() => sessions.stop());
      const through = (driver: 'pg' | 'postgres.js') => open(driver, 30_000, { pooler: sessions, sessions: true });
      const ids = await startAll([through('pg'), through('postgres.js'), through('pg')], 'plain', 60);
      for (let times = 0; times < 2; times++) {
        await wait(60);
        await sessions.kill();
        await wait(2500);
        await sessions.start();
      }
      const all = await expectCompleted(ids);
      expect(all.map(({ recoveries }) => recoveries)).toEqual(ids.map(() => 0));
      expect(new Set(ran.values())).toEqual(new Set([1]));
    },
  );

  it('several processes can create a schema through it at the same time', async () => {
    const fresh = await createDatabase();
    const stores = Array.from({ length: 4 }, () =>
      postgresStorage({ url: pooler.through(fresh.connectionString), sessions: false }),
    );
    await Promise.all(stores.map((storage) => storage.executions.countQueued(1)));
    await until(
      async () => (await fresh.query('SELECT version FROM ensemble.schema_version')).rowCount === 1,
      'one version',
    );
    for (const storage of stores) await storage.close();
    await fresh.drop();
  });
});
