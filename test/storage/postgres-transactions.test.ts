/** Starts and signals in a transaction of the caller, with each client, against a real Postgres. */

import { PGlite } from '@electric-sql/pglite';
import { sql as drizzleSql } from 'drizzle-orm';
import { drizzle as drizzleOfPg } from 'drizzle-orm/node-postgres';
import { drizzle as drizzleOfJs } from 'drizzle-orm/postgres-js';
import { Kysely, sql as kyselySql, PostgresDialect } from 'kysely';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { createOrchestrator, type ExecutionHandle, type Orchestrator } from '../../src/index.ts';
import { createPgBouncer, hasPgBouncer } from './pgbouncer.ts';
import { createDatabase, findServer, type TestDatabase } from './postgres-server.ts';

const isThere = await findServer();

class Undo extends Error {}

interface Client {
  /** Runs `work` in a transaction. @param undo - rolls back after it */
  transact(work: (transaction: unknown) => Promise<unknown>, undo?: boolean): Promise<unknown>;
  /** Makes a statement of the transaction fail. */
  fail(transaction: never): Promise<unknown>;
}

const code = (script: string) => ({ agent: 'a', operation: 'code' as const, config: { script } });
const ensembles = [
  { name: 'order', flow: [code('echo')], outputs: { got: '${a.output}' } },
  { name: 'limited', concurrency: { limit: 1, key: '${input.customer}' }, flow: [code('echo')] },
  { name: 'waits', flow: [{ wait: 'paid' }] },
];

function open(url: string, options: object = {}): Orchestrator {
  return createOrchestrator({
    ensembles: ensembles as never,
    scripts: { echo: ({ input }) => input },
    storage: postgresStorage({ url, ...options }),
    logger: false,
  }) as unknown as Orchestrator;
}

const statusOf = (orchestrator: Orchestrator, { id }: Pick<ExecutionHandle, 'id'>) =>
  orchestrator.executions.status(id).then(
    ({ status }) => status,
    (error) => error.code,
  );

describe.skipIf(!isThere)('a transaction of the caller', () => {
  let database: TestDatabase;
  let orchestrator: Orchestrator;
  const clients = new Map<string, Client>();

  beforeAll(async () => {
    database = await createDatabase();
    orchestrator = open(database.connectionString);
    await orchestrator.ready();
    const pool = database.pool({ max: 3 });
    const js = database.sql({ max: 2 });
    const [ofPg, ofJs] = [drizzleOfPg(pool), drizzleOfJs(database.sql({ max: 2 }))];
    const kysely = new Kysely<Record<string, never>>({ dialect: new PostgresDialect({ pool }) });
    const orThrow = (undo: boolean | undefined) => {
      if (undo) throw new Undo();
    };
    clients.set('pg', {
      async transact(work, undo) {
        const client = await pool.connect();
        try {
          await client.query('BEGIN');
          await work(client);
          await client.query(undo ? 'ROLLBACK' : 'COMMIT');
        } finally {
          client.release();
        }
      },
      fail: (client: { query(text: string): Promise<unknown> }) => client.query('SELECT 1 / 0'),
    });
    clients.set('postgres.js', {
      transact: (work, undo) =>
        js.begin(async (sql) => {
          await work(sql);
          orThrow(undo);
        }),
      fail: (sql: typeof js) => sql`SELECT 1 / 0`,
    });
    for (const [name, drizzle] of Object.entries({ 'drizzle of pg': ofPg, 'drizzle of postgres.js': ofJs }))
      clients.set(name, {
        transact: (work, undo) =>
          (drizzle as typeof ofPg).transaction(async (transaction) => {
            await work(transaction);
            orThrow(undo);
          }),
        fail: (transaction: typeof ofPg) => transaction.execute(drizzleSql`SELECT 1 / 0`),
      });
    clients.set('kysely', {
      transact: (work, undo) =>
        kysely.transaction().execute(async (transaction) => {
          await work(transaction);
          orThrow(undo);
        }),
      fail: (transaction: typeof kysely) => kyselySql`SELECT 1 / 0`.execute(transaction),
    });
  }, 60_000);

  afterAll(async () => {
    await orchestrator?.close();
    await database?.drop();
  });

  const names = ['pg', 'postgres.js', 'drizzle of pg', 'drizzle of postgres.js', 'kysely'];

  describe.each(names)('of %s', (name) => {
    const client = () => clients.get(name) as Client;

    it.each(['order', 'limited'])(
      '`%s` is there after the commit, and runs; before it, nobody sees it',
      async (ensemble) => {
        const input = { customer: `${name} ${ensemble}`, list: [], text: 'é"\\\'', when: null };
        let handle: ExecutionHandle | undefined;
        await client().transact(async (transaction) => {
          const options = { transaction, tags: ['tagged'], idempotencyKey: `${name} ${ensemble}` };
          handle = await orchestrator.start(ensemble, input, options);
          expect(await statusOf(orchestrator, handle)).toBe('NOT_FOUND');
        });
        const ended = await (handle as ExecutionHandle).result();
        expect(ended).toMatchObject({ status: 'completed', input, tags: ['tagged'] });
      },
    );

    it('is not there after a rollback, and its key is free', async () => {
      let handle: ExecutionHandle | undefined;
      const start = async (transaction: unknown) => {
        handle = await orchestrator.start('order', {}, { transaction, idempotencyKey: `free ${name}` });
      };
      await client()
        .transact(start, true)
        .catch((error) => {
          if (!(error instanceof Undo)) throw error;
        });
      const first = handle as ExecutionHandle;
      expect(await statusOf(orchestrator, first)).toBe('NOT_FOUND');
      await client().transact(start);
      expect((await (handle as ExecutionHandle).result()).id).not.toBe(first.id);
    });

    it('after a caught error of another statement, the start fails', async () => {
      let outcome = '';
      await client()
        .transact(async (transaction) => {
          await client()
            .fail(transaction as never)
            .catch(() => undefined);
          outcome = await orchestrator.start('order', {}, { transaction }).then(
            () => 'started',
            (error) => String(error.cause?.message ?? error.message),
          );
        })
        .catch(() => undefined);
      expect(outcome).toContain('current transaction is aborted');
    });

    it('a transaction that has ended is refused', async () => {
      let kept: unknown;
      await client().transact(async (transaction) => {
        kept = transaction;
        await orchestrator.start('order', {}, { transaction });
      });
      await expect(orchestrator.start('order', {}, { transaction: kept })).rejects.toThrow();
    });

    it('a second start with its key in the same transaction finds the first', async () => {
      await client().transact(async (transaction) => {
        const options = { transaction, idempotencyKey: `twice ${name}` };
        const first = await orchestrator.start('order', {}, options);
        expect((await orchestrator.start('order', {}, options)).id).toBe(first.id);
      });
    });

    it('a signal is sent with the commit, also to an execution of the same transaction', async () => {
      const waiting = await orchestrator.start('waits');
      let own: ExecutionHandle | undefined;
      await client().transact(async (transaction) => {
        await orchestrator.executions.signal(waiting.id, 'paid', { list: [] }, { transaction });
        own = await orchestrator.start('waits', {}, { transaction });
        await orchestrator.executions.signal(own.id, 'paid', null, { transaction });
      });
      expect((await waiting.result()).status).toBe('completed');
      expect((await (own as ExecutionHandle).result()).status).toBe('completed');
    });
  });

  it('two transactions with one id: the second waits for the first, and finds its execution, or starts its own', async () => {
    const pool = database.pool({ max: 2 });
    const [one, two] = [await pool.connect(), await pool.connect()];
    const both = async (id: string, end: string) => {
      await Promise.all([one.query('BEGIN'), two.query('BEGIN')]);
      const first = await orchestrator.start('order', {}, { transaction: one, id });
      const second = orchestrator.start('order', {}, { transaction: two, id });
      await new Promise((resolve) => setTimeout(resolve, 50));
      await one.query(end);
      expect((await second).id).toBe(first.id);
      await two.query('COMMIT');
      expect((await (await second).result()).status).toBe('completed');
    };
    await both('order:7', 'COMMIT');
    await both('order:8', 'ROLLBACK');
    one.release();
    two.release();
  });

  it('of 1,000 concurrent transactions, exactly those that commit have their execution and their row', async () => {
    await database.query('CREATE TABLE orders (nr integer PRIMARY KEY, execution text NOT NULL)');
    const pool = database.pool({ max: 8 });
    const count = 1_000;
    const transact = async (nr: number) => {
      const client = await pool.connect();
      try {
        await client.query('BEGIN');
        const { id } = await orchestrator.start('order', { nr }, { transaction: client, tags: ['thousand'] });
        await client.query('INSERT INTO orders VALUES ($1, $2)', [nr, id]);
        await client.query(nr % 3 === 0 ? 'ROLLBACK' : 'COMMIT');
      } finally {
        client.release();
      }
    };
    await Promise.all(Array.from({ length: count }, (_, nr) => transact(nr)));
    const { rows } = await database.query('SELECT execution FROM orders');
    expect(rows).toHaveLength(count - Math.ceil(count / 3));
    const ended = await Promise.all(
      rows.map(async ({ execution }) => {
        for (;;) {
          const { status } = await orchestrator.executions.status(execution);
          if (status === 'completed') return execution;
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      }),
    );
    expect(new Set(ended).size).toBe(rows.length);
    const { rows: stored } = await database.query(
      "SELECT count(*)::int AS n FROM ensemble.executions WHERE tags LIKE '%thousand%'",
    );
    expect(stored[0].n).toBe(rows.length);
  }, 60_000);

  it('a start beyond the quota is refused, and the transaction of the caller stays', async () => {
    await database.query('CREATE TABLE kept (nr integer)');
    const principal = { tokenId: 'host:1', name: 'host', scopes: ['admin'] as const, plan: { executions: 1 } };
    await orchestrator.start('order', {}, { principal });
    const client = await database.pool({ max: 1 }).connect();
    await client.query('BEGIN');
    await client.query('INSERT INTO kept VALUES (1)');
    const start = orchestrator.start('order', {}, { transaction: client, principal });
    await expect(start).rejects.toMatchObject({ code: 'QUOTA_EXCEEDED' });
    await client.query('COMMIT');
    client.release();
    expect((await database.query('SELECT nr FROM kept')).rows).toEqual([{ nr: 1 }]);
  });

  it('what is not in a transaction, another database, and calls that wait for the end are refused', async () => {
    const pool = database.pool({ max: 1 });
    const client = await pool.connect();
    const refused = (transaction: unknown, call: 'start' | 'execute' = 'start') =>
      orchestrator[call]('order', {}, { transaction }).then(
        () => 'started',
        (error) => `${error.code}: ${error.message}`,
      );
    expect(await refused(client)).toContain('INVALID_REQUEST: `transaction`: the client is not in a transaction');
    expect(await refused(pool)).toContain('it must be a client of `pg`');
    expect(await refused({})).toContain('it must be a client of `pg`');
    await client.query('BEGIN');
    expect(await refused(client, 'execute')).toContain("can't be used with `execute`");
    client.release();
    const other = await createDatabase();
    const stranger = await other.pool().connect();
    await stranger.query('BEGIN');
    expect(await refused(stranger)).toContain('its database has no schema `ensemble`');
    stranger.release();
    await other.drop();
    const memory = createOrchestrator({ ensembles: ensembles as never, scripts: { echo: () => 1 } });
    await expect(memory.start('order', {}, { transaction: client })).rejects.toMatchObject({ code: 'NOT_CONFIGURED' });
    await memory.close();
  });

  it.skipIf(!hasPgBouncer())('through a pooler that shares connections between transactions', async () => {
    const pooler = await createPgBouncer();
    await pooler.start();
    const address = pooler.through(database.connectionString);
    const pooled = open(address, { sessions: false });
    await pooled.ready();
    const client = new pg.Client({ connectionString: address });
    await client.connect();
    await client.query('BEGIN');
    const handle = await pooled.start('limited', { customer: 'pooled' }, { transaction: client });
    await client.query('COMMIT');
    await client.end();
    expect((await handle.result()).status).toBe('completed');
    await pooled.close();
    await pooler.stop();
  });
});

it('PGlite: an execution is there if its transaction commits', async () => {
  const pglite = await PGlite.create();
  const orchestrator = createOrchestrator({
    ensembles: ensembles as never,
    scripts: { echo: ({ input }) => input },
    storage: postgresStorage({ pglite }),
    logger: false,
  }) as unknown as Orchestrator;
  await orchestrator.ready();
  const started: ExecutionHandle[] = [];
  for (const undo of [true, false])
    await pglite.transaction(async (transaction) => {
      started.push(await orchestrator.start('order', {}, { transaction }));
      if (undo) await transaction.rollback();
    });
  const [undone, kept] = started as [ExecutionHandle, ExecutionHandle];
  expect((await kept.result()).status).toBe('completed');
  expect(await statusOf(orchestrator, undone)).toBe('NOT_FOUND');
  await orchestrator.close();
  await pglite.close();
}, 60_000);
