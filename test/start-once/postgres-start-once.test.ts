/** Four real processes on one Postgres that start twins at once: each id and each key has one execution, which runs once. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildChildren, startChild } from '../storage/postgres-children.ts';
import { createDatabase, findServer, type TestDatabase } from '../storage/postgres-server.ts';

const hasServer = await findServer();

describe.skipIf(!hasServer)('2,000 twins that four processes start at once', () => {
  buildChildren('test/start-once/postgres-start-child.ts');
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createDatabase();
    await database.query('CREATE TABLE ledger (process text NOT NULL, name text NOT NULL)');
    await database.query('CREATE TABLE gate (open boolean)');
  });
  afterAll(() => database.drop());

  it('all get the first execution, and its script runs once', { timeout: 240_000 }, async () => {
    const children = ['a', 'b', 'c', 'd'].map((name) => startChild(name, database.connectionString));
    await Promise.all(children.map((child) => child.said('ready')));
    await database.query('INSERT INTO gate VALUES (true)');
    await Promise.all(children.map((child) => child.said('done')));

    const got = children.flatMap(({ lines }) => JSON.parse(lines.at(-2) ?? '[]') as readonly string[][]);
    const orders = new Set(got.map(([order]) => order));
    expect(orders.size).toBe(52);
    // Every caller in every process got the same id and the same output.
    expect(new Set(got.map((one) => one.join(' '))).size).toBe(52);
    expect(got.find(([order]) => order === 'by-id')?.[1]).toBe('by-id');
    const { rows } = await database.query('SELECT id, status FROM ensemble.executions');
    expect(rows.map(({ status }) => status)).toEqual(Array.from({ length: 52 }, () => 'completed'));
    const { rows: runs } = await database.query('SELECT name, count(*) FROM ledger GROUP BY name');
    expect(runs.map(({ count }) => Number(count))).toEqual(Array.from({ length: 52 }, () => 1));
    // Only the first start's tags are stored.
    const { rows: tags } = await database.query('SELECT id, count(*) FROM ensemble.tags GROUP BY id');
    expect(tags.map(({ count }) => Number(count))).toEqual(Array.from({ length: 52 }, () => 2));
  });
});
