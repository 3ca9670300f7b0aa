/** How SQLite writes commits: with as few statements as possible, and with the same answers for groups as for single entries. */

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { SqlDriver } from '../../src/adapters/storage/sqlite/drivers/driver.ts';
import { loadDriver } from '../../src/adapters/storage/sqlite/drivers/load-driver.ts';
import { openTables, sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import {
  accept,
  change,
  commitOne,
  end,
  entry,
  everything,
  execution,
  executionId,
  LEASE,
  OTHER,
  register,
  retrying,
  starting,
  step,
  stepKeys,
  T0,
  WORKER,
} from '../../src/conformance/storage-suite/context.ts';
import type { CommitEntry } from '../../src/engine/execution/stored-execution.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { newFile } from './sqlite-files.ts';

/** The first word of each statement that runs, and whether it reads. */
async function watched(): Promise<{ tables: ReturnType<typeof openTables>; path: string; ran(): string[] }> {
  const driver = await loadDriver(undefined);
  const path = newFile();
  let words: string[] = [];
  const watching: SqlDriver = (file) => {
    const connection = driver(file);
    const prepare = (sql: string) => {
      const statement = connection.prepare(sql);
      const word = sql.trim().split(/\s/)[0] as string;
      return {
        run: (params: Parameters<typeof statement.run>[0]) => {
          words.push(word);
          return statement.run(params);
        },
        all: (params: Parameters<typeof statement.all>[0]) => {
          words.push(`read ${word}`);
          return statement.all(params);
        },
      };
    };
    return { ...connection, prepare };
  };
  const tables = openTables(watching, { path, busyTimeoutMs: 0, synchronous: 'full' }, 'default');
  tables.workers.register(WORKER, { now: T0, leaseUntil: T0 + LEASE });
  const ran = () => {
    const before = words;
    words = [];
    return before;
  };
  ran();
  return { tables, path, ran };
}

describe('the cost of a commit', () => {
  it('a start, a step, an end, a release: one statement each, and no read', async () => {
    const { tables, ran } = await watched();
    const commits: readonly (readonly [CommitEntry, string])[] = [
      [starting(execution(1)), 'INSERT'],
      [starting(execution(2), { release: { status: 'queued', dueAt: T0 } }), 'INSERT'],
      [entry(1, { steps: [step('flow[0]')] }), 'INSERT'],
      [entry(1, { steps: [retrying('flow[1]', 1)] }), 'INSERT'],
      [entry(1, { state: change(0, { a: 1 }) }), 'INSERT'],
      [entry(1, { state: change(1, { a: 2 }) }), 'UPDATE'],
      [entry(1, { release: { status: 'waiting', dueAt: T0 } }), 'UPDATE'],
    ];
    for (const [one, word] of commits) {
      expect(tables.commit(WORKER, [one])).toEqual(['stored']);
      expect(ran()).toEqual([word]);
    }
    expect(tables.commit(WORKER, [starting(execution(3)), entry(3, { end: end() })])).toEqual(['stored', 'stored']);
    expect(ran()).toEqual(['BEGIN', 'INSERT', 'UPDATE', 'COMMIT']);
    tables.close();
  });

  it('a start with tags: one transaction, so that no crash stores it without its tags', async () => {
    const { tables, ran } = await watched();
    const free = { release: { status: 'queued', dueAt: T0 } } as const;
    for (const [number, fields] of [
      [1, {}],
      [2, free],
    ] as const) {
      expect(tables.commit(WORKER, [starting(execution(number, { tags: ['a', 'b'] }), fields)])).toEqual(['stored']);
      expect(ran()).toEqual(['BEGIN', 'INSERT', 'INSERT', 'COMMIT']);
    }
    tables.close();
  });

  it('a run of five steps: six transactions, none of them reads', async () => {
    const { tables, path, ran } = await watched();
    // SQLite counts the changes of its write-ahead log in `iChange` of the header of its index.
    const written = () => readFileSync(`${path}-shm`).readUInt32LE(8);
    const before = written();
    tables.commit(WORKER, [starting(execution(1))]);
    for (let at = 0; at < 4; at++) tables.commit(WORKER, [entry(1, { steps: [step(`flow[${at}]`)] })]);
    tables.commit(WORKER, [entry(1, { steps: [step('flow[4]')], end: end({ agents: 5 }) })]);
    expect(written() - before).toBe(6);
    expect(ran().filter((word) => word.startsWith('read'))).toEqual([]);
    tables.close();
  });

  it('50 starts, results or ends of 50 executions: one transaction, results in groups of 16, none of them reads', async () => {
    const { tables, ran } = await watched();
    const all = Array.from({ length: 50 }, (_, number) => number);
    const updates = (count: number) => new Array<string>(count).fill('UPDATE');
    const groups = [16, 16, 16, 2];
    const batches: readonly (readonly [readonly CommitEntry[], readonly string[]])[] = [
      [all.map((number) => starting(execution(number))), all.map(() => 'INSERT')],
      [all.map((number) => entry(number, { steps: [step('flow[0]')] })), groups.map(() => 'INSERT')],
      [
        all.map((number) => entry(number, { steps: [step('flow[1]')], end: end({ agents: 2 }) })),
        groups.flatMap((count) => ['INSERT', ...updates(count)]),
      ],
    ];
    for (const [batch, words] of batches) {
      expect(tables.commit(WORKER, batch)).toEqual(all.map(() => 'stored'));
      expect(ran()).toEqual(['BEGIN', ...words, 'COMMIT']);
    }
    tables.close();
  });
});

describe('many starts and ends in one batch', () => {
  const all = Array.from({ length: 40 }, (_, number) => number);
  const endingEntry = (number: number, fields = {}) =>
    entry(number, { steps: [step('flow[0]')], end: end({ output: number }), ...fields });
  const notStored = (answers: readonly string[]) =>
    answers.flatMap((answer, at) => (answer === 'stored' ? [] : [[at, answer]]));
  const statuses = async (storage: Storage) =>
    Promise.all(all.map(async (number) => (await storage.executions.get(executionId(number)))?.status));

  it('each entry is stored with its own values', async () => {
    const storage = sqliteStorage({ path: ':memory:' });
    await register(storage);
    const starts = all.map((number) => starting(execution(number, { ensemble: `e${number}`, input: number })));
    expect(notStored(await storage.commit(WORKER, starts))).toEqual([]);
    const alone = sqliteStorage({ path: ':memory:' });
    await register(alone);
    for (const one of starts) await commitOne(alone, one);
    expect(await everything(storage, ...all)).toEqual(await everything(alone, ...all));
    const error = { code: 'TIMEOUT', message: 'no' } as const;
    const ends = all.map((number) => endingEntry(number, number % 3 ? {} : { end: end({ status: 'failed', error }) }));
    expect(notStored(await storage.commit(WORKER, ends))).toEqual([]);
    for (const one of ends) await commitOne(alone, one);
    expect(await everything(storage, ...all)).toEqual(await everything(alone, ...all));
    await Promise.all([storage.close(), alone.close()]);
  });

  it('only starts with an existing id or an unknown worker are refused', async () => {
    const storage = sqliteStorage({ path: ':memory:' });
    await register(storage);
    const starts = all.map((number) => starting(execution(number)));
    expect(notStored(await storage.commit(OTHER, starts))).toEqual(all.map((number) => [number, 'fenced']));
    expect(await statuses(storage)).toEqual(all.map(() => undefined));
    await commitOne(storage, starting(execution(7, { seed: 'f'.repeat(32) })));
    await commitOne(storage, starting(execution(9)));
    const twice = [...starts, starting(execution(12))];
    expect(notStored(await storage.commit(WORKER, twice))).toEqual([[7, 'exists']]);
    expect(await statuses(storage)).toEqual(all.map(() => 'running'));
    await storage.close();
  });

  it('only fenced ends are refused, and a repeated batch has the same answers', async () => {
    const storage = sqliteStorage({ path: ':memory:' });
    await register(storage);
    await storage.commit(
      WORKER,
      all.map((number) => starting(execution(number))),
    );
    const batch = all.map((number) => endingEntry(number));
    batch[5] = endingEntry(5, { epoch: 2 });
    batch[30] = endingEntry(99);
    batch.push(
      endingEntry(8, { end: end({ output: 'again' }) }),
      entry(8, { steps: [step('flow[9]')] }),
      endingEntry(9),
    );
    const refused = [5, 30, 40, 41].map((at) => [at, 'fenced']);
    for (let times = 0; times < 2; times++) {
      expect(notStored(await storage.commit(WORKER, batch))).toEqual(refused);
      expect(await statuses(storage)).toEqual(
        all.map((number) => ([5, 30].includes(number) ? 'running' : 'completed')),
      );
      expect([await stepKeys(storage, 5), await stepKeys(storage, 8)]).toEqual([[], ['flow[0]']]);
      expect((await storage.executions.get(executionId(8)))?.output).toBe(8);
    }
    await storage.close();
  });
});

describe('results in groups', () => {
  const store = async (count: number): Promise<Storage> => {
    const storage = sqliteStorage({ path: ':memory:' });
    await register(storage);
    await storage.commit(
      WORKER,
      Array.from({ length: count }, (_, number) => starting(execution(number))),
    );
    return storage;
  };
  const result = (number: number, key = 'flow[0]', fields = {}) => entry(number, { steps: [step(key, fields)] });
  const answersTo = async (storage: Storage, batch: readonly CommitEntry[]) => storage.commit(WORKER, batch);

  it('only a fenced result is refused', async () => {
    const storage = await store(30);
    await commitOne(storage, entry(4, { end: end() }));
    const batch = Array.from({ length: 30 }, (_, number) => result(number));
    batch[11] = result(99);
    batch[22] = { ...result(22), epoch: 2 };
    const answers = await answersTo(storage, batch);
    expect(answers.flatMap((answer, at) => (answer === 'stored' ? [] : [[at, answer]]))).toEqual([
      [4, 'fenced'],
      [11, 'fenced'],
      [22, 'fenced'],
    ]);
    for (let number = 0; number < 30; number++)
      expect(await stepKeys(storage, number)).toEqual([4, 11, 22].includes(number) ? [] : ['flow[0]']);
    await storage.close();
  });

  it('a result whose key already has a result changes nothing and is answered `stored`', async () => {
    const storage = await store(10);
    await commitOne(storage, result(3, 'flow[0]', { output: 'first' }));
    await commitOne(storage, entry(5, { steps: [retrying('flow[0]', 1)] }));
    const batch = Array.from({ length: 10 }, (_, number) => result(number, 'flow[0]', { output: 'now', attempts: 2 }));
    expect(await answersTo(storage, batch)).toEqual(new Array(10).fill('stored'));
    const outputs = [];
    for (let number = 0; number < 10; number++)
      outputs.push((await storage.executions.get(executionId(number)))?.agents[0]?.output);
    expect(outputs).toEqual(outputs.map((_, at) => (at === 3 ? 'first' : 'now')));
    await storage.close();
  });

  it('entries of one execution keep their order among those of others', async () => {
    const storage = await store(20);
    const others = (from: number) => Array.from({ length: 4 }, (_, i) => result(from + i));
    const batch = [
      ...others(5),
      result(0, 'flow[0]'),
      entry(1, { end: end() }),
      result(1, 'flow[0]'),
      result(0, 'flow[1]'),
      entry(0, { steps: [step('flow[2]')], end: end({ agents: 3 }) }),
      result(0, 'flow[3]'),
      ...others(9),
      starting(execution(50)),
      result(50, 'flow[0]'),
      entry(50, { release: { status: 'waiting', dueAt: T0 } }),
      result(50, 'flow[1]'),
    ];
    const refused = batch.map((one, at) => [at, one.executionId] as const);
    const answers = await answersTo(storage, batch);
    expect(refused.flatMap(([at, id]) => (answers[at] === 'stored' ? [] : [[at, id]]))).toEqual([
      [6, executionId(1)],
      [9, executionId(0)],
      [17, executionId(50)],
    ]);
    expect(await stepKeys(storage, 0)).toEqual(['flow[0]', 'flow[1]', 'flow[2]']);
    expect([await stepKeys(storage, 1), await stepKeys(storage, 50)]).toEqual([[], ['flow[0]']]);
    await storage.close();
  });

  it('several results of the same execution are stored in their order', async () => {
    const storage = await store(1);
    const keys = Array.from({ length: 25 }, (_, i) => `flow[0].foreach[${24 - i}].steps[0]`);
    expect(
      await answersTo(
        storage,
        keys.map((key) => result(0, key)),
      ),
    ).toEqual(new Array(25).fill('stored'));
    expect(await stepKeys(storage, 0)).toEqual(keys);
    await storage.close();
  });

  it('a repeated batch has the same answers and changes nothing', async () => {
    const storage = await store(25);
    const all = Array.from({ length: 25 }, (_, number) => number);
    const batch = all.map((number) => result(number));
    for (let times = 0; times < 3; times++) {
      expect(await answersTo(storage, batch)).toEqual(new Array(25).fill('stored'));
      if (times === 0)
        await answersTo(
          storage,
          all.map((number) => result(number, 'flow[1]')),
        );
    }
    for (const number of all) expect(await stepKeys(storage, number)).toEqual(['flow[0]', 'flow[1]']);
    await storage.close();
  });

  it("a result that can't be stored fails the whole batch", async () => {
    const storage = await store(20);
    const before = await everything(storage, ...Array.from({ length: 20 }, (_, number) => number));
    for (const wrong of [{ output: 1n as never }, { startedAt: Number.NaN }]) {
      const batch = Array.from({ length: 20 }, (_, number) => result(number));
      batch[13] = result(13, 'flow[0]', wrong);
      expect(() => storage.commit(WORKER, batch)).toThrow();
      expect(await everything(storage, ...Array.from({ length: 20 }, (_, number) => number))).toEqual(before);
    }
    await storage.close();
  });
});

it('a start that is refused because of its state change leaves no trace', async () => {
  const storage = sqliteStorage({ path: ':memory:' });
  await accept(storage, execution(1));
  await commitOne(storage, entry(1, { steps: [step('flow[0]')], state: change(0, { a: 1 }) }));
  const late = starting(execution(2), { steps: [step('flow[0]')], state: change(0, { a: 2 }) });
  expect(await commitOne(storage, late)).toBe('state-conflict');
  expect(await storage.executions.get(executionId(2))).toBeUndefined();
  expect(await commitOne(storage, { ...late, ...{ state: change(1, { a: 2 }) as never } })).toBe('stored');
  expect((await storage.state.read('orders'))?.value).toEqual({ a: 2 });
  const short = starting(execution(3), { steps: [step('flow[0]')], end: end() });
  expect(await commitOne(storage, short)).toBe('stored');
  expect(await commitOne(storage, short)).toBe('stored');
  expect((await storage.executions.get(executionId(3)))?.status).toBe('completed');
  await storage.close();
});
