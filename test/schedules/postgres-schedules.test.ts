/** Four real processes on one Postgres, one of them killed: each tick starts once, and none is lost. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildChildren, startChild } from '../storage/postgres-children.ts';
import { createDatabase, findServer, type TestDatabase, until } from '../storage/postgres-server.ts';

const hasServer = await findServer();

describe.skipIf(!hasServer)('a schedule of every second that four processes serve', () => {
  buildChildren('test/schedules/postgres-schedule-child.ts');
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createDatabase();
    await database.query('CREATE TABLE ledger (process text NOT NULL, tick bigint NOT NULL)');
  });
  afterAll(() => database.drop());

  const started = async () => {
    const { rows } = await database.query(
      `SELECT id, status, (started_by::json ->> 'scheduledAt')::bigint AS tick FROM ensemble.executions ORDER BY tick`,
    );
    return rows.map(({ id, status, tick }) => ({ id: id as string, status: status as string, tick: Number(tick) }));
  };
  it('starts one execution a tick, even if one of them is killed', { timeout: 240_000 }, async () => {
    const names = ['a', 'b', 'c', 'd'];
    const children = names.map((name) => startChild(name, database.connectionString));
    await Promise.all(children.map((child) => child.said('ready')));
    // A process that begins while the others are late counts the ticks that are due as missed.
    const readyAt = Date.now();
    const since = async () => (await started()).filter(({ tick }) => tick > readyAt);
    const isCompleted = ({ status }: { readonly status: string }) => status === 'completed';
    await until(async () => (await since()).filter(isCompleted).length >= 2, 'two ticks');

    const { rows: runs } = await database.query('SELECT process FROM ledger ORDER BY tick DESC LIMIT 1');
    await children[names.indexOf(runs[0].process)]?.kill();
    const killedAt = Date.now();
    await until(async () => ((await started()).at(-1)?.tick ?? 0) > killedAt + 4000, 'ticks after the end of one');
    await Promise.all(children.map((child) => child.kill()));

    const all = await since();
    const ticks = all.map(({ tick }) => tick);
    const [first = 0] = ticks;
    expect(ticks).toEqual(ticks.map((_, i) => first + i * 1000));
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
    // An execution that ran when they were killed may still be open, and the storage may not know one of its effects.
    expect(all.filter(({ status }) => status !== 'completed').length).toBeLessThanOrEqual(2);
    const { rows: twice } = await database.query('SELECT tick FROM ledger GROUP BY tick HAVING count(*) > 1');
    expect(twice.length).toBeLessThanOrEqual(1);
  });
});
