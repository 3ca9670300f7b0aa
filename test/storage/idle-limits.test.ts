/** Limits by key that nothing uses any more: their rows are deleted, and a later start with the key is as the first one. */

import { describe, expect, it } from 'vitest';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import {
  claim,
  commitOne,
  end,
  entry,
  execution,
  numbers,
  register,
  starting,
  T0,
} from '../../src/conformance/storage-suite/context.ts';
import type { FlowLimit } from '../../src/engine/execution/limits/flow-limit.ts';
import type { Storage } from '../../src/index.ts';
import { createDatabase, findServer } from './postgres-server.ts';
import { newFile, withFile } from './sqlite-files.ts';

const LATER = T0 + 2 * 3_600_000;

interface Store {
  /** Two storages over the same data. A SQLite file has one. */
  readonly processes: readonly [Storage, Storage];
  /** How many rows a table has. */
  count(table: 'limits' | 'queues' | 'slots'): Promise<number>;
  close(): Promise<void>;
}

const STORES: Record<string, () => Promise<Store>> = {
  async SQLite() {
    const path = newFile();
    const storage = sqliteStorage({ path });
    return {
      processes: [storage, storage],
      count: (table) =>
        withFile(path, (db) => Number(db.prepare(`SELECT count(*) AS n FROM ensemble_${table}`).all([])[0]?.n)),
      close: async () => undefined,
    };
  },
  ...((await findServer()) && {
    async Postgres() {
      const database = await createDatabase();
      const pool = database.pool({ max: 4 });
      return {
        processes: [postgresStorage({ pool }), postgresStorage({ pool: database.pool({ max: 4 }) })],
        count: async (table) => (await pool.query(`SELECT count(*)::int AS n FROM ensemble.${table}`)).rows[0].n,
        close: () => database.drop(),
      };
    },
  }),
};

const under = (number: number, limits: readonly Partial<FlowLimit>[], createdAt = T0) => {
  const all = limits.map((rule): FlowLimit => ({ name: 'orders', key: 'a', max: 1, since: 1, ...rule }));
  return execution(number, { seed: String(number).padStart(32, '0'), limits: all, createdAt });
};
const begin = (storage: Storage, number: number, limits: readonly Partial<FlowLimit>[], createdAt?: number) =>
  commitOne(storage, starting(under(number, limits, createdAt)));
const queue = (storage: Storage, number: number, limits: readonly Partial<FlowLimit>[], dueAt = T0) => {
  const start = under(number, limits);
  return commitOne(storage, {
    executionId: start.id,
    epoch: 0,
    start,
    steps: [],
    release: { status: 'queued', dueAt },
  });
};
const finish = (storage: Storage, number: number) => commitOne(storage, { ...entry(number, { end: end() }), epoch: 1 });

describe.each(Object.entries(STORES))('limits that nothing uses on %s', (_name, open) => {
  const scene = async (work: (store: Store) => Promise<void>) => {
    const store = await open();
    try {
      await register(store.processes[0]);
      await work(store);
    } finally {
      for (const process of store.processes) await process.close?.();
      await store.close();
    }
  };

  it('the row of a key is deleted with its slots when the next start comes, hours later; that of a key in use stays', () =>
    scene(async ({ processes: [storage], count }) => {
      for (const number of [1, 2, 3]) await begin(storage, number, [{ key: `k${number}` }]);
      await finish(storage, 1);
      await finish(storage, 2);
      expect([await count('limits'), await count('slots')]).toEqual([3, 3]);
      await begin(storage, 4, [{ key: 'k4' }], LATER);
      await expect.poll(() => count('limits')).toBe(2);
      expect(await count('slots')).toBe(2);
      expect(await begin(storage, 5, [{ key: 'k3' }], LATER)).toBe('slots-taken');
    }));

  it('a queue has a row only while something in it is due', () =>
    scene(async ({ processes: [storage], count }) => {
      for (const number of [1, 2, 3]) await queue(storage, number, [{ key: number === 1 ? 'a' : 'b' }]);
      expect(numbers(await claim(storage, { now: T0 + 100 }))).toEqual([1, 2]);
      expect(await count('queues')).toBe(1);
      await finish(storage, 2);
      expect(numbers(await claim(storage, { now: T0 + 200 }))).toEqual([3]);
      expect(await count('queues')).toBe(0);
      await queue(storage, 4, [{ key: 'a' }]);
      expect(await claim(storage, { now: T0 + 300 })).toEqual([]);
      await finish(storage, 1);
      expect(numbers(await claim(storage, { now: T0 + 400 }))).toEqual([4]);
    }));

  it('a process that knows a deleted limit as stored starts and claims under it', () =>
    scene(async ({ processes: [storage, other], count }) => {
      for (const number of [1, 2]) await begin(other, number, [{ key: `k${number}` }]);
      for (const number of [1, 2]) await finish(other, number);
      await queue(other, 3, [{ key: 'k2' }, { name: 'bank', key: '' }], LATER + 5000);
      await begin(storage, 4, [{ key: 'k4' }], LATER);
      await expect.poll(() => count('limits')).toBe(1);
      expect(await begin(other, 5, [{ key: 'k1' }], LATER)).toBe('stored');
      expect(await begin(other, 6, [{ key: 'k1' }], LATER)).toBe('slots-taken');
      await register(other);
      expect(numbers(await claim(other, { now: LATER + 5000 }))).toEqual([3]);
    }));

  it('a rate is kept as long as anything counts under it', () =>
    scene(async ({ processes: [storage], count }) => {
      const rates = [{ name: 'rate/orders', max: 1, period: 5 * 3_600_000 }];
      await begin(storage, 1, rates);
      await finish(storage, 1);
      await begin(storage, 2, [{ key: 'k2' }], LATER);
      expect(await begin(storage, 3, rates, LATER)).toBe('slots-taken');
      await finish(storage, 2);
      await begin(storage, 4, [{ key: 'k4' }], T0 + 6 * 3_600_000);
      await expect.poll(() => count('limits')).toBe(1);
    }));
});
