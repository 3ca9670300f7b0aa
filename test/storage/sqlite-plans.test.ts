/** What SQLite does for each statement of the storage: it looks things up in an index, however much is stored. */

import { describe, expect, it } from 'vitest';
import type { SqlConnection, SqlDriver } from '../../src/adapters/storage/sqlite/connection.ts';
import { loadDriver } from '../../src/adapters/storage/sqlite/load-driver.ts';
import { openTables } from '../../src/adapters/storage/sqlite/open-tables.ts';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import {
  accept,
  claim,
  commitOne,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  join,
  OWNER,
  starting,
  step,
  T0,
} from '../../src/adapters/testing/storage-suite/context.ts';
import type { Storage } from '../../src/engine/ports/storage.ts';
import { newFile, withFile } from './sqlite-files.ts';

/** The statements that the tables prepare, and those of every kind of listing. */
async function statements(): Promise<{ connection: SqlConnection; all: readonly string[] }> {
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
  for (const ensemble of [undefined, 'orders'])
    for (const status of [undefined, 'failed', 'running', 'completed'] as const)
      tables.listExecutions({ limit: 10, ...(ensemble && { ensemble }), ...(status && { status }) });
  for (const after of [undefined, 'k'])
    for (const prefix of [undefined, 'k'])
      tables.kv.list({ now: 0, limit: 10, ...(after && { after }), ...(prefix && { prefix }) });
  return { connection: opened as SqlConnection, all: [...all] };
}

const plan = (connection: SqlConnection, sql: string): string[] => {
  const parameters = new Array((sql.match(/\?/g) ?? []).length).fill(1);
  return connection
    .prepare(`EXPLAIN QUERY PLAN ${sql}`)
    .all(parameters)
    .map(({ detail }) => String(detail));
};

describe('a store that holds millions', () => {
  it('no statement walks through a table, or through all of an index', async () => {
    const { connection, all } = await statements();
    expect(all.length).toBeGreaterThan(40);
    const walks = all.flatMap((sql) => plan(connection, sql).map((detail) => [detail, sql] as const));
    expect(walks.length).toBeGreaterThan(60);
    expect(walks.filter(([detail]) => /^SCAN (?!firsts|json_each|CONSTANT|\d+ CONSTANT|\()/.test(detail))).toEqual([]);
  });

  it('fences are answered by the index of what is held alone', async () => {
    const { connection, all } = await statements();
    const fenced = all.filter((sql) => /epoch = (\?|column2)/.test(sql) && !sql.startsWith('DELETE'));
    expect(fenced.length).toBeGreaterThanOrEqual(7);
    for (const sql of fenced) {
      expect(plan(connection, sql)).toContain(
        'SEARCH ensemble_executions USING COVERING INDEX ensemble_executions_held (namespace=? AND id=? AND epoch=? AND owner=?)',
      );
    }
  });

  it('a listing by status goes through an index of that status, in the order in which it lists', async () => {
    const { connection, all } = await statements();
    const found = all
      .filter((sql) => sql.includes('ORDER BY id DESC') && !sql.includes('ensemble ='))
      .map((sql) => plan(connection, sql).join('\n'));
    const byStatus = 'USING INDEX ensemble_executions_by_status (namespace=? AND status=? AND id<?)';
    const held = 'USING INDEX ensemble_executions_held (namespace=? AND id<?)';
    expect(found.length).toBe(4);
    expect(found.filter((text) => text.includes(byStatus) && !text.includes('MERGE')).length).toBe(1);
    expect(found.filter((text) => text.includes(byStatus) && text.includes(held)).length).toBe(1);
    expect(found.filter((text) => text.includes('TEMP B-TREE'))).toEqual([]);
  });

  it('a page of steps begins where the one before ended: nothing is sorted, and no step before it is read', async () => {
    const { connection, all } = await statements();
    const pages = all.filter((sql) => sql.includes('coalesce((SELECT seq FROM ensemble_steps'));
    expect(pages.length).toBe(2);
    for (const sql of pages) {
      const found = plan(connection, sql).join('\n');
      expect(found).toContain('INDEX ensemble_steps_runs (execution=? AND note=? AND rowid>?)');
      expect(found).not.toContain('TEMP B-TREE');
    }
    expect(plan(connection, pages[1] as string).join('\n')).toContain('ensemble_steps_notes (execution=? AND rowid>?)');
    const skips = all.filter((sql) => /count\(\*\) AS runs|OFFSET \?\)$/.test(sql)).map((sql) => plan(connection, sql));
    expect(skips.length).toBe(2);
    for (const found of skips)
      expect(found.join('\n')).toContain('USING COVERING INDEX ensemble_steps_runs (execution=? AND note=?)');
  });

  it('what is due is looked for lane by lane, and taken in the order of the index', async () => {
    const { connection, all } = await statements();
    const due = all.filter((sql) => sql.includes('firsts'));
    expect(due.length).toBe(3);
    for (const sql of due) {
      const found = plan(connection, sql).join('\n');
      expect(found).toContain('ensemble_executions_due (namespace=? AND (ensemble,version,due_at)>(?,?,?))');
      expect(found).toContain('ensemble_executions_due (namespace=? AND ensemble=? AND version=? AND due_at>?)');
      expect(found).not.toContain('TEMP B-TREE');
    }
    const taken = all.filter((sql) => sql.includes('ORDER BY due_at, ref'));
    expect(taken.map((sql) => plan(connection, sql))).toEqual([
      [
        'SEARCH ensemble_executions USING INDEX ensemble_executions_due (namespace=? AND ensemble=? AND version=? AND due_at<?)',
      ],
    ]);
  });

  it('100,000 that wait change nothing for who asks what is next, and for who claims one', async () => {
    const path = newFile();
    const storage = sqliteStorage({ path, synchronous: 'normal' });
    await join(storage);
    const queued = (number: number, ensemble: string) =>
      starting(execution(number, { ensemble }), { release: { status: 'queued', dueAt: T0 + number } });
    for (let first = 0; first < 100_000; first += 500)
      await storage.commit(
        OWNER,
        Array.from({ length: 500 }, (_, i) => queued(first + i, 'many')),
      );
    await storage.commit(OWNER, [queued(100_000, 'one'), queued(100_001, 'two')]);
    const quickest = async (work: () => unknown) => {
      let best = Number.POSITIVE_INFINITY;
      for (let times = 0; times < 20; times++) {
        const before = performance.now();
        await work();
        best = Math.min(best, performance.now() - before);
      }
      return best;
    };
    // Walking through them takes more than 5 ms on any machine.
    expect(await quickest(() => storage.survey(OWNER, []))).toBeLessThan(2);
    expect(await quickest(() => storage.survey(OWNER, [execution(1).version]))).toBeLessThan(2);
    expect(await quickest(() => storage.claim(OWNER, { now: T0, limit: 1, except: [] }))).toBeLessThan(2);
    const claimed = await storage.claim(OWNER, { now: T0 + 200_000, limit: 4, except: [] });
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

  it('go on from claim to claim, and begin anew behind the last', async () => {
    const storage = sqliteStorage({ path: ':memory:' });
    await join(storage);
    await queue(storage, { a: 4, b: 2, c: 3 });
    const all: string[] = [];
    for (let times = 0; times < 9; times++) all.push(...ensembles(await claim(storage, { limit: 1 })));
    expect(all.join('')).toBe('abcabcaca');
    await storage.close();
  });

  it('share a limit, and what one ensemble leaves of its share goes to the others', async () => {
    const storage = sqliteStorage({ path: ':memory:' });
    await join(storage);
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
    await join(storage);
    await queue(storage, Object.fromEntries(Array.from({ length: 25 }, (_, i) => [`e${i}`, 3])));
    const all: string[] = [];
    for (let times = 0; times < 5; times++) all.push(...ensembles(await claim(storage, { limit: 5 })));
    expect(new Set(all).size).toBe(25);
    await storage.close();
  });
});

describe('purge', () => {
  it('goes through any number in batches, past what stays, and leaves nothing of what went', async () => {
    const path = newFile();
    const storage = sqliteStorage({ path, synchronous: 'normal' });
    await join(storage);
    const count = 6000;
    for (let first = 0; first < count; first += 500) {
      const all = Array.from({ length: 500 }, (_, i) => first + i);
      await storage.commit(
        OWNER,
        all.map((number) => starting(execution(number))),
      );
      await storage.commit(
        OWNER,
        all
          .filter((number) => number % 3000 >= 2900)
          .map((number) => entry(number, { steps: [step('flow[0]')], end: end({ finishedAt: T0 + number }) })),
      );
    }
    let deleted = 0;
    let calls = 0;
    for (let after: string | undefined; ; ) {
      const query = { owner: OWNER, before: T0 + 5950, limit: 60, ...(after !== undefined && { after }) };
      const answer = await storage.purge(query);
      calls += 1;
      deleted += answer?.deleted ?? 0;
      after = answer?.next;
      if (after === undefined) break;
    }
    expect(deleted).toBe(150);
    expect(calls).toBeGreaterThan(3);
    expect(await storage.findEnded([2900, 5949, 5950, 0].map(executionId))).toEqual(
      [2900, 5949, 5950].map(executionId),
    );
    expect(await storage.getExecution(executionId(5949))).toBeUndefined();
    expect((await storage.getExecution(executionId(5950)))?.status).toBe('completed');
    const rows = await withFile(path, (connection) =>
      connection.prepare('SELECT count(*) AS steps FROM ensemble_steps').all([]),
    );
    expect(rows).toMatchObject([{ steps: 50 }]);
    await storage.close();
  }, 60_000);

  it('ends where nothing older can stand, and takes no notice of clocks that differ a little', async () => {
    const storage = sqliteStorage({ path: ':memory:' });
    await accept(storage, execution(1, { createdAt: T0 + 60_000 }));
    await accept(storage, execution(2, { createdAt: T0 + 7_200_000 }));
    for (const number of [1, 2]) await commitOne(storage, entry(number, { end: end({ finishedAt: T0 }) }));
    expect(await storage.purge({ owner: OWNER, before: T0 + 1, limit: 10 })).toEqual({ deleted: 1 });
    await storage.close();
  });
});
