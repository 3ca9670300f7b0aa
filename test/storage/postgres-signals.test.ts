/** Postgres and signals that commits send: they are delivered even if the process died after the commit. */

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
  nextDueAt,
  numbers,
  OTHER,
  register,
  release,
  signal,
  T0,
  WORKER,
} from '../../src/conformance/storage-suite/context.ts';
import type { ClaimedExecution } from '../../src/engine/execution/stored-execution.ts';
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

  it("a sent signal that was not delivered is delivered once by the next poll, and dropped if its execution can't receive it", async () => {
    const [one, two] = [1, 2].map(() => postgresStorage({ pool: database.pool({ max: 4 }), namespace: 'left' }));
    if (!one || !two) throw new Error('no storage');
    for (const number of [1, 2, 3]) await accept(one, execution(number));
    await release(one, 2, { status: 'waiting', dueAt: T0 + 86_400_000, signals: 0 });
    // As after a commit whose process died before it delivered the signals.
    for (const of of [2, 9, 3]) {
      const { executionId: to, id, name, payload, createdAt } = signal(1, of);
      await database.query(
        `INSERT INTO ensemble.sent_signals (namespace, execution, id, name, payload, created_at) VALUES ('left', $1, $2, $3, $4, $5)`,
        [to, id, name, JSON.stringify(payload), createdAt],
      );
    }
    const surveys = await Promise.all([one, two, one, two].map((storage) => storage.executions.poll(WORKER, [])));
    const { signalled, nextDueAt } = await one.executions.poll(WORKER, []);
    expect([surveys.length, nextDueAt, signalled]).toEqual([4, T0 + 50, [{ executionId: executionId(3), signals: 1 }]]);
    for (const number of [2, 3]) {
      expect(await two.signals.list(executionId(number), list)).toEqual([signal(1, number)]);
    }
    expect((await claim(one))[0]?.signals).toBe(1);
    expect((await database.query('SELECT FROM ensemble.sent_signals')).rowCount).toBe(0);
    await one.close();
    await two.close();
  });

  it('an execution that receives signals while workers claim it is claimed once and loses no signal', async () => {
    const storages = [1, 2, 3].map(() => postgresStorage({ pool: database.pool({ max: 4 }), namespace: 'claimed' }));
    const [first = never(), second = never(), third = never()] = storages;
    const all = Array.from({ length: 150 }, (_, i) => i + 1);
    await Promise.all(all.map((number) => accept(first, execution(number))));
    await register(second, OTHER);
    for (const number of all) await release(first, number, { status: 'waiting', dueAt: T0, signals: 0 });
    let isOver = false;
    const claimed: ClaimedExecution[] = [];
    const claiming = [first, second, first, second].map(async (storage, i) => {
      while (!isOver || (await nextDueAt(storage)) !== undefined)
        claimed.push(...(await claim(storage, { limit: 2 }, i % 2 === 0 ? WORKER : OTHER)));
    });
    await Promise.all(all.map((number) => third.signals.put(signal(1, number))));
    isOver = true;
    await Promise.all(claiming);
    expect(numbers(claimed).sort((a, b) => a - b)).toEqual(all);
    expect(new Set(claimed.map(({ epoch }) => epoch))).toEqual(new Set([2]));
    for (const number of all) expect(await third.signals.list(executionId(number), list)).toEqual([signal(1, number)]);
    await Promise.all(storages.map((storage) => storage.close()));
  });

  it("ends of many executions, in batches of two workers that signal each other's executions, are all stored and delivered", async () => {
    const storage = postgresStorage({ pool: database.pool({ max: 8 }), namespace: 'circle' });
    const numbers = Array.from({ length: 40 }, (_, i) => i + 1);
    for (const number of numbers) await accept(storage, execution(number), number % 2 === 0 ? OTHER : WORKER);
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
    // Executions that had ended received nothing, and no signal is left over.
    expect((await database.query(`SELECT FROM ensemble.sent_signals WHERE namespace = 'circle'`)).rowCount).toBe(0);
    await storage.close();
  });
});
