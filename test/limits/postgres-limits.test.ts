/** Limits over several processes on one Postgres: requests, slots, and the slots of a process that is killed. */

import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import type { Plan } from '../../src/engine/access/plan.ts';
import { createOrchestrator } from '../../src/orchestrator/create-orchestrator.ts';
import { buildChildren, startChild } from '../storage/postgres-children.ts';
import { createDatabase, findServer, type TestDatabase, until } from '../storage/postgres-server.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

const hasServer = await findServer();
let database: TestDatabase;

describe.skipIf(!hasServer)('on a server', () => {
  buildChildren('test/limits/postgres-limits-child.ts');
  beforeAll(async () => {
    database = await createDatabase();
    await database.query('CREATE TABLE ledger (now integer, most integer)');
    await database.query('INSERT INTO ledger VALUES (0, 0)');
    await database.query('CREATE TABLE gate (open boolean)');
  });
  beforeEach(() => database.query('DELETE FROM gate'));
  afterAll(() => database.drop());

  const open = async (plan: Plan) => {
    const storage = postgresStorage({ url: database.connectionString });
    const orchestrator = createOrchestrator({ storage, ensembles: ['name: count\nflow: []', 'name: hold\nflow: []'] });
    const token = await orchestrator.tokens.create({ name: 'caller', scopes: ['admin'], plan });
    return { orchestrator, storage, ...token };
  };
  const run = async (token: string, work: string) => {
    const children = Array.from({ length: 4 }, () => startChild(database.connectionString, token, work));
    await Promise.all(children.map((child) => child.said('ready')));
    await database.query('INSERT INTO gate VALUES (true)');
    return children;
  };

  it('of 400 requests of four processes at once, exactly 100 pass', async () => {
    const { token, orchestrator } = await open({ requests: 100 });
    const children = await run(token, 'requests');
    await Promise.all(children.map((child) => child.said('done')));
    const counts = children.map(({ lines }) => JSON.parse(lines.at(-2) as string) as Record<string, number>);
    const sum = (status: string) => counts.reduce((total, one) => total + (one[status] ?? 0), 0);
    expect([sum('200'), sum('429')]).toEqual([100, 300]);
    for (const child of children) await child.kill();
    await orchestrator.close();
  });

  it('of 120 executions of four processes, never more than 5 run at once, and all are run', async () => {
    const { token, orchestrator } = await open({ concurrent: 5 });
    const children = await run(token, 'starts');
    await Promise.all(children.map((child) => child.said('done')));
    const left = async () => {
      const { rows } = await database.query(
        "SELECT count(*) AS n FROM ensemble.executions WHERE status <> 'completed'",
      );
      return Number(rows[0].n);
    };
    await until(async () => (await left()) === 0, 'the end of all executions');
    const { rows } = await database.query('SELECT now, most FROM ledger');
    expect(rows).toEqual([{ now: 0, most: 5 }]);
    expect((await database.query('SELECT count(*) AS n FROM ensemble.executions')).rows[0].n).toBe('120');
    for (const child of children) await child.kill();
    await orchestrator.close();
  });

  it('a process that is killed gives its 5 slots back within its lease', async () => {
    const { token, id, orchestrator, storage } = await open({ concurrent: 5 });
    const holder = startChild(database.connectionString, token, 'hold');
    await holder.said('ready');
    await database.query('INSERT INTO gate VALUES (true)');
    await holder.said('holds');
    const principal = await orchestrator.tokens.verify(token);
    await expect(orchestrator.execute('count', {}, { principal })).rejects.toMatchObject({
      code: 'CONCURRENT_LIMIT_EXCEEDED',
      details: { limit: 5, active: 5 },
    });
    const killedAt = performance.now();
    await holder.kill();
    await until(async () => (await storage.usage.running(id)) === 0, 'the slots');
    expect(performance.now() - killedAt).toBeLessThan(35_000);
    await orchestrator.close();
  });
});
