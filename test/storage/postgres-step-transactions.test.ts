/** `context.transaction`: what a step writes is stored together with its result, once, against a real Postgres. */

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { embeddedEngine } from '../../src/adapters/embedded-engine/embedded-engine.ts';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { createOrchestrator, type Orchestrator, type Script } from '../../src/index.ts';
import { buildChildren, startChild } from './postgres-children.ts';
import { createDatabase, findServer, type TestDatabase } from './postgres-server.ts';
import { ONCE, scripts } from './step-transaction-child.ts';

const isThere = await findServer();

describe.skipIf(!isThere)('context.transaction', () => {
  let database: TestDatabase;
  const opened: Orchestrator[] = [];
  buildChildren('test/storage/step-transaction-child.ts');

  beforeAll(async () => {
    database = await createDatabase();
    await database.query('CREATE TABLE paid (id text PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, about json, at text)');
  });
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close();
  });
  afterAll(async () => {
    await database?.drop();
  });

  function open(scripts: Record<string, Script>, more: object = {}, driver: 'url' | 'pool' | 'sql' = 'url') {
    const source = {
      url: () => ({ url: database.connectionString }),
      pool: () => ({ pool: database.pool({ max: 4 }) }),
      sql: () => ({ sql: database.sql({ max: 2 }) }),
    }[driver]();
    const flow = Object.keys(scripts).map((script) => ({ agent: script, operation: 'code', config: { script } }));
    const orchestrator = createOrchestrator({
      ensembles: [{ name: 'pay', flow, ...more }] as never,
      scripts,
      storage: postgresStorage(source),
      logger: false,
    }) as unknown as Orchestrator;
    opened.push(orchestrator);
    return orchestrator;
  }
  const rowsOf = async (id: string) =>
    (await database.query('SELECT id, about, at FROM paid WHERE id = $1', [id])).rows;

  it.each(['url', 'pool', 'sql'] as const)(
    'by %s: rows and result are there together; values and rows are JSON',
    async (driver) => {
      const orchestrator = open(
        {
          async charge({ transaction, execution }) {
            await transaction.query('INSERT INTO paid VALUES ($1, $2, $3)', [
              `a ${execution.id}`,
              { cents: [5] },
              null,
            ]);
            const { rows, count } = await transaction.query(
              'SELECT count(*) AS n, true AS yes FROM paid WHERE id = $1',
              [`a ${execution.id}`],
            );
            return { rows, count };
          },
          after: () => 'done',
        },
        {},
        driver,
      );
      const run = await orchestrator.execute('pay');
      expect(run.agents.map(({ output }) => output)).toEqual([{ rows: [{ n: 1, yes: true }], count: 1 }, 'done']);
      expect(await rowsOf(`a ${run.id}`)).toEqual([{ id: `a ${run.id}`, about: { cents: [5] }, at: null }]);
    },
  );

  it('an attempt that throws, one whose statement failed and was caught, and one that a deferred constraint refuses leave no row', async () => {
    let attempts = 0;
    const orchestrator = open(
      {
        async charge({ transaction, execution }) {
          attempts += 1;
          await transaction.query('INSERT INTO paid (id) VALUES ($1)', [`${attempts} ${execution.id}`]);
          if (attempts === 1) throw new Error('declined');
          if (attempts === 2) await transaction.query('SELECT 1 / 0').catch(() => undefined);
          if (attempts === 3) await transaction.query('INSERT INTO paid (id) VALUES ($1)', [`3 ${execution.id}`]);
          return attempts;
        },
      },
      {
        flow: [
          { agent: 'charge', operation: 'code', config: { script: 'charge' }, retry: { maxAttempts: 4, delay: 1 } },
        ],
      },
    );
    const run = await orchestrator.execute('pay');
    expect(run.agents).toMatchObject([{ status: 'completed', output: 4, attempts: 4 }]);
    expect((await database.query('SELECT id FROM paid WHERE id LIKE $1', [`%${run.id}`])).rows).toEqual([
      { id: `4 ${run.id}` },
    ]);
    const steps = await orchestrator.executions.history(run.id);
    expect(steps.end?.status).toBe('completed');
  });

  it('an attempt that times out leaves no row, and a second statement after its end is refused', async () => {
    let late: Promise<unknown> | undefined;
    const orchestrator = open(
      {
        async charge({ transaction, execution }) {
          await transaction.query('INSERT INTO paid (id) VALUES ($1)', [`late ${execution.id}`]);
          await new Promise((resolve) => setTimeout(resolve, 150));
          late = transaction.query('SELECT 1');
          await late;
        },
      },
      { flow: [{ agent: 'charge', operation: 'code', config: { script: 'charge' }, timeout: 50 }] },
    );
    const run = await orchestrator.execute('pay');
    expect(run.error?.code).toBe('TIMEOUT');
    await new Promise((resolve) => setTimeout(resolve, 150));
    await expect(late).rejects.toThrow('the step has ended');
    expect(await rowsOf(`late ${run.id}`)).toEqual([]);
  });

  it('a transaction that begins too late, or that nobody waits for, holds no connection, and one that the server ended fails the attempt', async () => {
    const orchestrator = open(
      {
        late: async (context) => {
          await new Promise((resolve) => setTimeout(resolve, 60));
          await context.transaction.query('SELECT 1');
        },
        floating({ transaction }) {
          setTimeout(() => transaction.query('SELECT 1').catch(() => undefined), 5);
          return 1;
        },
        thrown({ transaction }) {
          transaction.query('SELECT 1').catch(() => undefined);
          throw new Error('at once');
        },
        async ended({ transaction, execution }) {
          await transaction.query('SET LOCAL idle_in_transaction_session_timeout = 20');
          await transaction.query('INSERT INTO paid (id) VALUES ($1)', [`ended ${execution.id}`]);
          await new Promise((resolve) => setTimeout(resolve, 100));
          return 1;
        },
      },
      {
        flow: ['late', 'floating', 'thrown', 'ended'].map((script) => ({
          ...{ agent: script, operation: 'code', config: { script }, continueOnError: true },
          ...(script === 'late' && { timeout: 20 }),
        })),
      },
    );
    for (let times = 0; times < 7; times++) {
      const { agents } = await orchestrator.execute('pay');
      expect(agents.map(({ status }) => status)).toEqual(['failed', 'completed', 'failed', 'failed']);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
    const { rows } = await database.query(
      "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'",
    );
    expect(rows[0].n).toBe(0);
    expect((await database.query("SELECT id FROM paid WHERE id LIKE 'ended %'")).rows).toEqual([]);
  }, 30_000);

  it('many steps at once hold at most half of the connections of the pool', async () => {
    let open_ = 0;
    let most = 0;
    const orchestrator = open({
      async charge({ transaction, execution }) {
        await transaction.query('INSERT INTO paid (id) VALUES ($1)', [`many ${execution.id}`]);
        open_ += 1;
        most = Math.max(most, open_);
        await new Promise((resolve) => setTimeout(resolve, 5));
        open_ -= 1;
        return 1;
      },
    });
    const runs = await Promise.all(Array.from({ length: 60 }, () => orchestrator.execute('pay')));
    expect(runs.every(({ status }) => status === 'completed')).toBe(true);
    expect(most).toBeLessThanOrEqual(5);
    expect((await database.query("SELECT count(*)::int AS n FROM paid WHERE id LIKE 'many %'")).rows[0].n).toBe(60);
  });

  it('is refused with another storage, with `durability: none`, in a dry run, and in a step with `setState`', async () => {
    const charge: Script = ({ transaction }) => transaction.query('SELECT 1').then(() => 1);
    const memory = createOrchestrator({
      ensembles: [
        { name: 'pay', flow: [{ agent: 'charge', operation: 'code', config: { script: 'charge' } }] },
      ] as never,
      scripts: { charge },
      logger: false,
    }) as unknown as Orchestrator;
    const errorOf = async (orchestrator: Orchestrator, options = {}) =>
      (await orchestrator.execute('pay', {}, options)).error;
    expect(await errorOf(memory)).toMatchObject({
      code: 'NOT_CONFIGURED',
      message: expect.stringContaining('needs `postgresStorage`'),
    });
    expect(await errorOf(open({ charge }, { execution: { durability: 'none' } }))).toMatchObject({
      code: 'NOT_CONFIGURED',
    });
    expect(await errorOf(open({ charge }), { dryRun: { runScripts: true } })).toMatchObject({ code: 'NOT_CONFIGURED' });
    const flow = [{ agent: 'charge', operation: 'code', config: { script: 'charge' }, setState: { n: 1 } }];
    expect(await errorOf(open({ charge }, { flow, state: { initial: { n: 0 } } }))).toMatchObject({
      code: 'INVALID_REQUEST',
    });
    await memory.close();
  });

  it('happens once for each execution, whichever processes are killed', async () => {
    await database.query('CREATE TABLE once (id text, agent text)');
    const starter = createOrchestrator({
      ...{ ensembles: [ONCE] as never, scripts, logger: false },
      storage: postgresStorage({ url: database.connectionString }),
      engine: embeddedEngine({ concurrency: 0 }),
    }) as unknown as Orchestrator;
    opened.push(starter);
    const count = 300;
    await Promise.all(Array.from({ length: count }, () => starter.start('once')));
    const completed = async () =>
      (
        await database.query(
          "SELECT count(*)::int AS n FROM ensemble.executions WHERE ensemble = 'once' AND status = 'completed'",
        )
      ).rows[0].n;
    let kills = 0;
    const children = [startChild(database.connectionString), startChild(database.connectionString)];
    while ((await completed()) < count) {
      const [oldest] = children;
      await oldest?.said('joined');
      await new Promise((resolve) => setTimeout(resolve, 120));
      if (kills < 8) {
        kills += 1;
        await children.shift()?.kill();
        children.push(startChild(database.connectionString));
      }
    }
    expect(kills).toBe(8);
    const { rows } = await database.query(
      'SELECT count(*)::int AS n, count(DISTINCT (id, agent))::int AS different FROM once',
    );
    expect(rows[0]).toEqual({ n: 2 * count, different: 2 * count });
  }, 60_000);
});
