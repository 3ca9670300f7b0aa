/** How SQLite runs each statement of the storage: by an index, however much is stored. */

import { describe, expect, it } from 'vitest';
import type { SqlConnection, SqlDriver } from '../../src/adapters/storage/sqlite/drivers/driver.ts';
import { loadDriver } from '../../src/adapters/storage/sqlite/drivers/load-driver.ts';
import { openTables, sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import {
  accept,
  claim,
  commitOne,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  register,
  starting,
  step,
  T0,
  WORKER,
} from '../../src/conformance/storage-suite/context.ts';
import type { ExecutionQuery, Storage } from '../../src/engine/storage/storage.port.ts';
import { scaled } from '../slowdown.ts';
import { newFile, withFile } from './sqlite-files.ts';

/** Opens an empty store. @returns its tables, and all statements that they prepare */
async function openWatched() {
  const driver = await loadDriver(undefined);
  const all = new Set<string>();
  let opened: SqlConnection | undefined;
  const watched: SqlDriver = (path) => {
    const connection = driver(path);
    opened ??= connection;
    const prepare = (sql: string) => {
      if (sql.includes('ensemble_') && !sql.includes('ensemble_schema')) all.add(sql);
      return connection.prepare(sql);
    };
    return { ...connection, prepare };
  };
  const tables = openTables(watched, { path: ':memory:', busyTimeoutMs: 0, synchronous: 'full' }, 'default');
  return { connection: opened as SqlConnection, tables, all };
}

/** The statements that the tables prepare, and those of every kind of list. */
async function statements(): Promise<{ connection: SqlConnection; all: readonly string[] }> {
  const { connection, tables, all } = await openWatched();
  for (const filter of [
    {},
    { parentId: 'p' },
    { tag: 't' },
    { search: 's' },
    { errorCode: 'X' },
    { unresolved: true },
    { order: 'oldest' },
  ] as const)
    for (const ensemble of [undefined, 'orders'])
      for (const status of [undefined, 'failed', 'running', 'completed'] as const)
        tables.executions.list({ limit: 10, ...filter, ...(ensemble && { ensemble }), ...(status && { status }) });
  for (const after of [undefined, 'k'])
    for (const prefix of [undefined, 'k'])
      tables.kv.list({ now: 0, limit: 10, ...(after && { after }), ...(prefix && { prefix }) });
  return { connection, all: [...all] };
}

const plan = (connection: SqlConnection, sql: string): string[] => {
  const parameters = new Array((sql.match(/\?/g) ?? []).length).fill(1);
  return connection
    .prepare(`EXPLAIN QUERY PLAN ${sql}`)
    .all(parameters)
    .map(({ detail }) => String(detail));
};

/** The plan of the statement that reads a page of a list. */
async function planOfList(filter: Omit<ExecutionQuery, 'limit'>): Promise<string> {
  const { connection, tables, all } = await openWatched();
  all.clear();
  await tables.executions.list({ ...filter, limit: 10 });
  return plan(connection, [...all].at(-1) as string).join('\n');
}

describe('a store with millions of rows', () => {
  it('no statement scans a table or a whole index', async () => {
    const { connection, all } = await statements();
    expect(all.length).toBeGreaterThan(40);
    const walks = all.flatMap((sql) => plan(connection, sql).map((detail) => [detail, sql] as const));
    expect(walks.length).toBeGreaterThan(60);
    expect(
      walks.filter(([detail]) =>
        /^SCAN (?!firsts|x$|r$|due$|old$|json_each|\w VIRTUAL TABLE|CONSTANT|\d+ CONSTANT|\()/.test(detail),
      ),
    ).toEqual([]);
  });

  it('what has expired is found by its expiry, not by walking through all keys', async () => {
    const { connection, all } = await statements();
    const sweeps = all.filter((sql) => /^\s*WITH old AS/.test(sql) && sql.includes('expires_at <='));
    expect(sweeps.length).toBeGreaterThanOrEqual(2);
    for (const sql of sweeps)
      expect(plan(connection, sql).join('\n')).toMatch(/USING (?:COVERING )?INDEX \w+ \(expires_at<\?\)|_by_expiry/);
  });

  it('the index of held executions alone answers fences', async () => {
    const { connection, all } = await statements();
    // An execution that nobody holds is found by its id.
    const isFenced = (sql: string) => /epoch = (\?|column2)/.test(sql) && !sql.includes('owner IS NULL');
    const fenced = all.filter((sql) => isFenced(sql) && !sql.startsWith('DELETE'));
    expect(fenced.length).toBeGreaterThanOrEqual(7);
    for (const sql of fenced) {
      expect(plan(connection, sql)).toContain(
        'SEARCH ensemble_executions USING COVERING INDEX ensemble_executions_held (namespace=? AND id=? AND epoch=? AND owner=?)',
      );
    }
  });

  const AFTER = '(created_at,id)<(?,?)';
  it.each([
    ['all', {}, `e USING COVERING INDEX ensemble_executions_by_creation (namespace=? AND created_at>? AND ${AFTER})`],
    ['an ensemble', { ensemble: 'o' }, `by_ensemble (namespace=? AND ensemble=? AND created_at>? AND ${AFTER})`],
    [
      'an ensemble by status',
      { ensemble: 'o', status: 'failed' },
      `by_ensemble_status (namespace=? AND ensemble=? AND status=? AND created_at>? AND ${AFTER})`,
    ],
    ['a status', { status: 'failed' }, `by_status (namespace=? AND status=? AND created_at>? AND ${AFTER})`],
    ['a parent', { parentId: 'p' }, `by_parent (namespace=? AND parent_id=? AND created_at>? AND ${AFTER})`],
    ['what is unresolved', { unresolved: true }, `unresolved (namespace=? AND created_at>? AND ${AFTER})`],
    ['an error', { errorCode: 'X' }, `by_error (namespace=? AND <expr>=? AND created_at>? AND ${AFTER})`],
    [
      'an ensemble, oldest first',
      { ensemble: 'o', order: 'oldest' },
      'by_ensemble (namespace=? AND ensemble=? AND (created_at,id)>(?,?) AND created_at<?)',
    ],
    ['a tag', { tag: 't' }, `t USING PRIMARY KEY (namespace=? AND tag=? AND created_at>? AND ${AFTER})`],
  ] as const)(
    'a list of %s walks its index in the order of the list, and sorts only its page',
    async (_, filter, index) => {
      const found = (await planOfList(filter)).split('\n');
      expect(found.findIndex((detail) => detail.includes(index))).toBe(1);
      expect(found.filter((detail) => detail.includes('TEMP B-TREE'))).toEqual([found.at(-1)]);
    },
  );

  it('a list of running executions merges those that are free with the sorted ones that workers hold', async () => {
    const found = await planOfList({ status: 'running' });
    expect(found).toMatch(/by_status \(namespace=\? AND status=\? AND created_at>\? .*\n.*\n.*\nRIGHT/);
    expect(found).toMatch(/ensemble_executions_held \(namespace=\?\)\nUSE TEMP B-TREE/);
  });

  it('a search finds ids and tags by their beginning, and then only these executions', async () => {
    const found = await planOfList({ search: 's', ensemble: 'orders', status: 'failed' });
    expect(found).toMatch(/COVERING INDEX \w+autoindex_ensemble_executions_1 \(namespace=\? AND id>\? AND id<\?\)/);
    expect(found).toContain('ensemble_tags USING PRIMARY KEY (namespace=? AND tag>? AND tag<?)');
    expect(found).toContain(
      'SCAN x\nSEARCH e USING INDEX sqlite_autoindex_ensemble_executions_1 (namespace=? AND id=?)',
    );
  });

  it('a list with several filters walks the shortest index', async () => {
    const storage = sqliteStorage({ path: ':memory:' });
    await register(storage);
    const count = 60_000;
    for (let first = 0; first < count; first += 500)
      await storage.commit(
        WORKER,
        Array.from({ length: 500 }, (_, i) => {
          const number = first + i;
          const rare = number % 20_000 === 0;
          const about = { ensemble: rare ? 'rare' : 'often', tags: [rare ? 'rare' : 'often'] };
          return starting(execution(number, about), { release: { status: 'queued', dueAt: T0 } });
        }),
      );
    const often = { tag: 'often', ensemble: 'often', status: 'queued' } as const;
    const timeOf = async (filter: Omit<ExecutionQuery, 'limit'>) => {
      const times: number[] = [];
      for (let round = 0; round < 5; round++) {
        const before = performance.now();
        await storage.executions.list({ ...filter, limit: 100 });
        times.push(performance.now() - before);
      }
      return Math.min(...times);
    };
    const walkAll = await timeOf({ status: 'completed' });
    for (const filter of [{ ensemble: 'rare' }, { tag: 'rare' }])
      expect(await timeOf({ ...often, ...filter })).toBeLessThan(walkAll / 2);
    await storage.close();
  }, 60_000);

  it('a page of steps starts where the previous page ended: nothing is sorted, and no earlier step is read', async () => {
    const { connection, all } = await statements();
    const pages = all.filter((sql) => sql.includes('coalesce((SELECT seq FROM ensemble_steps'));
    expect(pages.length).toBe(2);
    for (const sql of pages) {
      const found = plan(connection, sql).join('\n');
      expect(found).toContain('INDEX ensemble_steps_runs (execution=? AND note=? AND rowid>?)');
      expect(found).not.toContain('TEMP B-TREE');
    }
    expect(plan(connection, pages[1] as string).join('\n')).toContain('ensemble_steps_notes (execution=? AND rowid>?)');
    const skips = all.filter((sql) => /count\(\*\) AS steps|OFFSET \?\)\)$/.test(sql));
    expect(skips.length).toBe(2);
    for (const sql of skips) {
      const found = plan(connection, sql).join('\n');
      expect(found).toContain('USING COVERING INDEX ensemble_steps_runs (execution=? AND note=?)');
      expect(found).toContain('INDEX ensemble_steps_notes (execution=?)');
      expect(found).not.toContain('TEMP B-TREE');
    }
  });

  it('due executions are searched lane by lane, and taken in the order of the index', async () => {
    const { connection, all } = await statements();
    const due = all.filter((sql) => sql.includes('firsts'));
    expect(due.length).toBe(5);
    for (const sql of due) {
      const found = plan(connection, sql).join('\n');
      expect(found).toContain('ensemble_executions_due (namespace=? AND (ensemble,version,due_at)>(?,?,?))');
      expect(found).toContain('ensemble_executions_due (namespace=? AND ensemble=? AND version=? AND due_at>?)');
      expect(found).not.toContain('TEMP B-TREE');
    }
    const taken = all.filter((sql) => sql.includes('ORDER BY due_at, account, ref'));
    expect(taken.map((sql) => plan(connection, sql))).toEqual([
      [
        'SEARCH ensemble_executions USING INDEX ensemble_executions_due (namespace=? AND ensemble=? AND version=? AND due_at>? AND due_at<?)',
        // The callers without a free slot, which are passed over in the index.
        'LIST SUBQUERY 1',
        'SCAN json_each VIRTUAL TABLE INDEX 1:',
      ],
    ]);
  });

  it('100,000 waiting executions do not slow down a poll or a claim', async () => {
    const path = newFile();
    const storage = sqliteStorage({ path, synchronous: 'normal' });
    await register(storage);
    const queued = (number: number, ensemble: string) =>
      starting(execution(number, { ensemble }), { release: { status: 'queued', dueAt: T0 + number } });
    for (let first = 0; first < 100_000; first += 500)
      await storage.commit(
        WORKER,
        Array.from({ length: 500 }, (_, i) => queued(first + i, 'many')),
      );
    await storage.commit(WORKER, [queued(100_000, 'one'), queued(100_001, 'two')]);
    const quickest = async (work: () => unknown) => {
      let best = Number.POSITIVE_INFINITY;
      for (let times = 0; times < 20; times++) {
        const before = performance.now();
        await work();
        best = Math.min(best, performance.now() - before);
      }
      return best;
    };
    // A scan takes more than 5 ms on any machine.
    expect(await quickest(() => storage.executions.poll(WORKER, []))).toBeLessThan(scaled(2));
    expect(await quickest(() => storage.executions.poll(WORKER, [execution(1).version]))).toBeLessThan(scaled(2));
    expect(
      await quickest(() => storage.executions.claim(WORKER, { now: T0, limit: 1, excludeVersions: [] })),
    ).toBeLessThan(scaled(2));
    const claimed = await storage.executions.claim(WORKER, { now: T0 + 200_000, limit: 4, excludeVersions: [] });
    const ensembles = claimed.map((one) => ('damage' in one ? one : one.execution.ensemble));
    expect(ensembles.sort()).toEqual(['many', 'many', 'one', 'two']);
    await storage.close();
  }, 60_000);
});

describe('turns', () => {
  const ensembles = (claimed: Awaited<ReturnType<typeof claim>>) =>
    claimed.map(({ execution: { ensemble } }) => ensemble);
  const queue = async (storage: Storage, counts: Readonly<Record<string, number>>) => {
    let number = 0;
    for (const [ensemble, count] of Object.entries(counts)) {
      for (let i = 0; i < count; i++) {
        number += 1;
        await enqueue(storage, execution(number, { ensemble }), T0 + number);
      }
    }
  };

  it('continue from claim to claim, and start again after the last lane', async () => {
    const storage = sqliteStorage({ path: ':memory:' });
    await register(storage);
    await queue(storage, { a: 4, b: 2, c: 3 });
    const all: string[] = [];
    for (let times = 0; times < 9; times++) all.push(...ensembles(await claim(storage, { limit: 1 })));
    expect(all.join('')).toBe('abcabcaca');
    await storage.close();
  });

  it("share a limit, and the rest of one ensemble's share goes to the others", async () => {
    const storage = sqliteStorage({ path: ':memory:' });
    await register(storage);
    await queue(storage, { a: 50, b: 1, c: 4, d: 50 });
    const claimed = ensembles(await claim(storage, { limit: 30 }));
    expect(claimed.length).toBe(30);
    expect(claimed.slice(0, 8).join('')).toBe('abcdacda');
    const count = (ensemble: string) => claimed.filter((one) => one === ensemble).length;
    expect([count('b'), count('c')]).toEqual([1, 4]);
    expect(Math.abs(count('a') - count('d'))).toBeLessThanOrEqual(1);
    await storage.close();
  });

  it('more ensembles than the limit: each is served once before one is served twice', async () => {
    const storage = sqliteStorage({ path: ':memory:' });
    await register(storage);
    await queue(storage, Object.fromEntries(Array.from({ length: 25 }, (_, i) => [`e${i}`, 3])));
    const all: string[] = [];
    for (let times = 0; times < 5; times++) all.push(...ensembles(await claim(storage, { limit: 5 })));
    expect(new Set(all).size).toBe(25);
    await storage.close();
  });
});

describe('purge', () => {
  it('deletes any number of executions in batches, passes those that stay, and leaves nothing of the deleted ones', async () => {
    const path = newFile();
    const storage = sqliteStorage({ path, synchronous: 'normal' });
    await register(storage);
    const count = 6000;
    for (let first = 0; first < count; first += 500) {
      const all = Array.from({ length: 500 }, (_, i) => first + i);
      await storage.commit(
        WORKER,
        all.map((number) => starting(execution(number))),
      );
      await storage.commit(
        WORKER,
        all
          .filter((number) => number % 3000 >= 2900)
          .map((number) => entry(number, { steps: [step('flow[0]')], end: end({ finishedAt: T0 + number }) })),
      );
    }
    let deleted = 0;
    let calls = 0;
    for (let after: string | undefined; ; ) {
      const query = { worker: WORKER, before: T0 + 5950, limit: 60, ...(after !== undefined && { after }) };
      const answer = await storage.executions.purge(query);
      calls += 1;
      deleted += answer?.deleted ?? 0;
      after = answer?.next;
      if (after === undefined) break;
    }
    expect(deleted).toBe(150);
    expect(calls).toBeGreaterThan(3);
    expect(await storage.executions.findEnded([2900, 5949, 5950, 0].map(executionId))).toEqual(
      [2900, 5949, 5950].map(executionId),
    );
    expect(await storage.executions.get(executionId(5949))).toBeUndefined();
    expect((await storage.executions.get(executionId(5950)))?.status).toBe('completed');
    const rows = await withFile(path, (connection) =>
      connection.prepare('SELECT count(*) AS steps FROM ensemble_steps').all([]),
    );
    expect(rows).toMatchObject([{ steps: 50 }]);
    await storage.close();
  }, 60_000);

  it('ends where no older execution can follow, and tolerates small differences between clocks', async () => {
    const storage = sqliteStorage({ path: ':memory:' });
    await accept(storage, execution(1, { createdAt: T0 + 60_000 }));
    await accept(storage, execution(2, { createdAt: T0 + 7_200_000 }));
    for (const number of [1, 2]) await commitOne(storage, entry(number, { end: end({ finishedAt: T0 }) }));
    expect(await storage.executions.purge({ worker: WORKER, before: T0 + 1, limit: 10 })).toEqual({ deleted: 1 });
    await storage.close();
  });
});
