/** Postgres and signals that entries send: what a process that died between the entry and its signals left behind is given on. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import {
  accept,
  claim,
  commitOne,
  end,
  entry,
  execution,
  executionId,
  join,
  nextDueAt,
  numbers,
  OTHER,
  OWNER,
  release,
  signal,
  T0,
} from '../../src/adapters/testing/storage-suite/context.ts';
import type { ClaimedExecution } from '../../src/engine/model/stored-execution.ts';
import { createDatabase, findServer, type TestDatabase } from './postgres-server.ts';

const hasServer = await findServer();
const never = (): never => {
  throw new Error('no storage');
};

describe.skipIf(!hasServer)('signals on one Postgres', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createDatabase();
  });
  afterAll(() => database.drop());
  const list = { name: 'go', after: 0, limit: 10 };

  it('what was sent and not given on is given by whoever looks next, once, and dropped where nobody can take it', async () => {
    const [one, two] = [1, 2].map(() => postgresStorage({ pool: database.pool({ max: 4 }), namespace: 'left' }));
    if (!one || !two) throw new Error('no storage');
    for (const number of [1, 2, 3]) await accept(one, execution(number));
    await release(one, 2, { status: 'waiting', dueAt: T0 + 86_400_000, signals: 0 });
    // As an entry leaves them whose process died before it gave them on.
    for (const of of [2, 9, 3]) {
      const { executionId: to, id, name, payload, createdAt } = signal(1, of);
      await database.query(
        `INSERT INTO ensemble.sent_signals (namespace, execution, id, name, payload, created_at) VALUES ('left', $1, $2, $3, $4, $5)`,
        [to, id, name, JSON.stringify(payload), createdAt],
      );
    }
    const surveys = await Promise.all([one, two, one, two].map((storage) => storage.survey(OWNER, [])));
    const { signalled, nextDueAt } = await one.survey(OWNER, []);
    expect([surveys.length, nextDueAt, signalled]).toEqual([4, T0 + 50, [{ executionId: executionId(3), signals: 1 }]]);
    for (const number of [2, 3]) {
      expect(await two.listSignals(executionId(number), list)).toEqual([signal(1, number)]);
    }
    expect((await claim(one))[0]?.signals).toBe(1);
    expect((await database.query('SELECT FROM ensemble.sent_signals')).rowCount).toBe(0);
    await one.close();
    await two.close();
  });

  it('what is given signals while owners claim it is claimed by one of them, once, and loses none', async () => {
    const storages = [1, 2, 3].map(() => postgresStorage({ pool: database.pool({ max: 4 }), namespace: 'claimed' }));
    const [first = never(), second = never(), third = never()] = storages;
    const all = Array.from({ length: 150 }, (_, i) => i + 1);
    await Promise.all(all.map((number) => accept(first, execution(number))));
    await join(second, OTHER);
    for (const number of all) await release(first, number, { status: 'waiting', dueAt: T0, signals: 0 });
    let isOver = false;
    const claimed: ClaimedExecution[] = [];
    const claiming = [first, second, first, second].map(async (storage, i) => {
      while (!isOver || (await nextDueAt(storage)) !== undefined)
        claimed.push(...(await claim(storage, { limit: 2 }, i % 2 === 0 ? OWNER : OTHER)));
    });
    await Promise.all(all.map((number) => third.putSignal(signal(1, number))));
    isOver = true;
    await Promise.all(claiming);
    expect(numbers(claimed).sort((a, b) => a - b)).toEqual(all);
    expect(new Set(claimed.map(({ epoch }) => epoch))).toEqual(new Set([2]));
    for (const number of all) expect(await third.listSignals(executionId(number), list)).toEqual([signal(1, number)]);
    await Promise.all(storages.map((storage) => storage.close()));
  });

  it('ends of many executions, in batches of two owners that signal each other, are all stored and told', async () => {
    const storage = postgresStorage({ pool: database.pool({ max: 8 }), namespace: 'circle' });
    const numbers = Array.from({ length: 40 }, (_, i) => i + 1);
    for (const number of numbers) await accept(storage, execution(number), number % 2 === 0 ? OTHER : OWNER);
    const of = (rest: number) => numbers.filter((number) => number % 2 === rest);
    const [odd, even] = [of(1), of(0)];
    const commits = [
      ...odd.map((number, i) =>
        commitOne(storage, entry(number, { end: end(), signals: [signal(number, even[i] ?? 0)] })),
      ),
      ...[...even]
        .reverse()
        .map((number, i) =>
          commitOne(storage, entry(number, { end: end(), signals: [signal(number, odd[i] ?? 0)] }), OTHER),
        ),
    ];
    expect(new Set(await Promise.all(commits))).toEqual(new Set(['stored']));
    // Who had ended by then was told nothing, and nothing is left over.
    expect((await database.query(`SELECT FROM ensemble.sent_signals WHERE namespace = 'circle'`)).rowCount).toBe(0);
    await storage.close();
  });
});
