/** Schedules that several processes serve on one storage, and storages that fail: each tick starts once, and none is lost. */

import { PGlite } from '@electric-sql/pglite';
import { describe, expect, it } from 'vitest';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { callPart, createParts } from '../../src/engine/storage/storage-methods.port.ts';
import { memoryStorage } from '../../src/index.ts';
import { changeStorage } from '../../src/testing-kit/processes/change-storage.ts';
import { laterStorage } from '../storage/later-storage.ts';
import { newFile } from '../storage/sqlite-files.ts';
import { allExecutions, createWorld, HOUR, MINUTE, settle, T0, ticksOf, type World } from './schedule-world.ts';

const quarters = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, i) => (from + i) * 15 * MINUTE);

/** A tick every ten seconds: a shared storage is polled four times a second, so hours would take long. */
const OFTEN = '*/10 * * * * *';
const SECOND = 1000;
const tens = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, i) => (from + i) * 10 * SECOND);

/** Advances the time second by second, with turns for an asynchronous storage. */
async function pass(world: World, ms: number, turns: number): Promise<void> {
  for (let left = ms; left > 0; left -= SECOND) {
    await world.clock.advance(SECOND);
    await settle(turns);
  }
}

/** Opens the handle of each process. */
type Connect = () => Storage;

const STORES: readonly (readonly [string, number, () => Promise<Connect>])[] = [
  [
    'memory',
    4,
    async () => {
      const storage = memoryStorage({ shared: true });
      return () => storage;
    },
  ],
  [
    'memory that answers later',
    20,
    async () => {
      const storage = laterStorage(memoryStorage({ shared: true }));
      return () => storage;
    },
  ],
  [
    'PGlite',
    40,
    async () => {
      const pglite = await PGlite.create();
      return () => postgresStorage({ pglite });
    },
  ],
];

describe.each(STORES)('several processes on %s', (_name, turns, create) => {
  it('start each tick once, and continue if one of them is closed', { timeout: 60_000 }, async () => {
    const connect = await create();
    const world = createWorld();
    const open = (name: string) => world.open(name, [{ cron: OFTEN }], { storage: connect() });
    const [first, second, third] = [await open('a'), await open('b'), await open('c')];
    await pass(world, 30 * SECOND, turns);
    const closing = first.close({ grace: 0 });
    await pass(world, 35 * SECOND, turns);
    await closing;
    expect(ticksOf(await allExecutions(second))).toEqual(tens(1, 6));
    expect(world.ran.map(({ scheduledAt }) => scheduledAt - T0)).toEqual(tens(1, 6));
    await Promise.all([second.close(), third.close()]);
  });
});

describe('on one SQLite file', () => {
  it('the next process continues where the previous one stopped', async () => {
    const path = newFile();
    const open = () => sqliteStorage({ path, synchronous: 'normal' });
    const world = createWorld(memoryStorage());
    const first = await world.open('a', [{ cron: OFTEN }], { storage: open() });
    await world.clock.advance(25 * SECOND);
    await first.close();
    world.clock.setNow(T0 + HOUR + 5 * SECOND);
    const second = await world.open('b', [{ cron: OFTEN }], { storage: open() });
    await settle();
    await world.clock.advance(10 * SECOND);
    expect(ticksOf(await allExecutions(second))).toEqual([...tens(1, 2), HOUR, HOUR + 10 * SECOND]);
    await second.close();
  });
});

describe('a process that dies', () => {
  // The process dies at a call of the storage, before or after the effect of the call.
  const verbs = ['schedules.read', 'schedules.advance', 'commit', 'executions.findEnded'] as const;
  const crashes = verbs.flatMap((verb) =>
    (['before', 'after'] as const).flatMap((when) => [1, 2, 3].map((nth) => ({ verb, when, nth }))),
  );

  it.each(crashes)('$when call $nth of $verb at a tick: each tick starts once', async ({ verb, when, nth }) => {
    const inner = memoryStorage({ shared: true });
    let left = Number.POSITIVE_INFINITY;
    let dead = false;
    const die = <T>(name: string, call: () => T): T | Promise<never> => {
      const counts = name === verb && --left === 0;
      if (dead || (counts && when === 'before')) dead = true;
      if (dead) return new Promise(() => {});
      const answer = call();
      if (counts) dead = true;
      return dead ? new Promise(() => {}) : answer;
    };
    const dying: Storage = {
      ...inner,
      ...createParts(
        (part, method) =>
          (...args) =>
            die(`${part}.${method}`, () => callPart(inner, part, method, args)),
      ),
      commit: (worker, batch) => die('commit', () => inner.commit(worker, batch)),
    };
    const world = createWorld(inner);
    await world.open('a', [{ overlap: 'queue' }], { storage: dying });
    await world.clock.advance(16 * MINUTE);
    left = nth;
    await world.clock.advance(20 * MINUTE);
    const second = await world.open('b', [{ overlap: 'queue' }]);
    await world.clock.advance(25 * MINUTE);
    const runs = await allExecutions(second);
    expect(runs.map(({ status }) => status)).not.toContain('failed');
    expect(ticksOf(runs)).toEqual(quarters(1, 4));
    await second.close();
  });
});

describe('a process that is stopped after a start', () => {
  it('leaves the next ticks to others, which start no tick twice while its execution runs', async () => {
    const inner = memoryStorage({ shared: true });
    let changes = 0;
    const stuck = changeStorage(inner, {
      schedules: {
        // The first change creates the row, the second adds the tick, and the third would record its start.
        advance: (name, change) =>
          ++changes >= 3 ? new Promise<boolean>(() => {}) : inner.schedules.advance(name, change),
      },
    });
    const world = createWorld(inner);
    let open = () => {};
    world.hold = new Promise<void>((resolve) => {
      open = resolve;
    });
    const first = await world.open('a', [{ cron: OFTEN, overlap: 'queue' }], { storage: stuck });
    await world.clock.advance(12 * SECOND);
    const second = await world.open('b', [{ cron: OFTEN, overlap: 'queue' }]);
    await world.clock.advance(5 * SECOND);
    expect(world.ran.map(({ process, scheduledAt }) => [process, scheduledAt - T0])).toEqual([['a', 10 * SECOND]]);
    world.hold = undefined;
    open();
    await settle();
    await world.clock.advance(15 * SECOND);
    expect(world.ran.map(({ scheduledAt }) => scheduledAt - T0)).toEqual(tens(1, 3));
    await second.close();
    await first.close();
  });
});

describe('a storage that fails', () => {
  const failing = (inner: Storage) => {
    const state = { down: false, effect: false, only: undefined as string | undefined };
    const fail = <T>(name: string, call: () => T): T => {
      if (!state.down || (state.only ?? name) !== name) return call();
      // It may also fail after its effect.
      if (state.effect) call();
      throw new Error('the store is down');
    };
    const storage: Storage = {
      ...inner,
      ...createParts(
        (part, method) =>
          (...args) =>
            fail(`${part}.${method}`, () => callPart(inner, part, method, args)),
      ),
      commit: (worker, batch) => fail('commit', () => inner.commit(worker, batch)),
    };
    return { storage, state };
  };

  it.each([false, true])('for an hour loses and doubles no tick (with effects: %s)', async (effect) => {
    const { storage, state } = failing(memoryStorage({ shared: true }));
    const world = createWorld(storage);
    const process = await world.open('a', [{ catchUp: 'skip' }]);
    await world.clock.advance(20 * MINUTE);
    Object.assign(state, { down: true, effect });
    await world.clock.advance(HOUR);
    state.down = false;
    await world.clock.advance(10 * MINUTE);
    const runs = await allExecutions(process);
    expect(ticksOf(runs)).toEqual(quarters(1, 6));
    expect(runs.map(({ status }) => status)).toEqual(quarters(1, 6).map(() => 'completed'));
    expect(world.logged.some(({ message }) => message.includes('could not be served'))).toBe(true);
    expect(world.ran).toHaveLength(6);
    await process.close();
  });

  it.each([false, true])('only at starts, for minutes: each tick starts once (with effects: %s)', async (effect) => {
    const { storage, state } = failing(memoryStorage());
    const world = createWorld(storage);
    const process = await world.open('a', [{}]);
    Object.assign(state, { down: true, effect, only: 'commit' });
    await world.clock.advance(18 * MINUTE);
    state.down = false;
    await world.clock.advance(20 * MINUTE);
    const runs = await allExecutions(process);
    expect(runs.map(({ status }) => status)).toEqual(['completed', 'completed']);
    expect(ticksOf(runs)).toEqual(quarters(1, 2));
    await process.close();
  });

  it('whose queue is full: ticks wait until there is capacity', async () => {
    const world = createWorld(memoryStorage());
    const { embeddedEngine } = await import('../../src/index.ts');
    const process = await world.open('a', [{ catchUp: 'skip' }], {
      engine: embeddedEngine({ concurrency: 1, queueLimit: 1 }),
    });
    let open = () => {};
    world.hold = new Promise<void>((resolve) => {
      open = resolve;
    });
    await process.start('report');
    await process.start('report');
    await world.clock.advance(50 * MINUTE);
    expect(ticksOf((await allExecutions(process)).filter(({ trigger }) => trigger.type === 'schedule'))).toEqual([]);
    world.hold = undefined;
    open();
    await settle();
    await world.clock.advance(5 * MINUTE);
    const ticks = (await allExecutions(process)).filter(({ trigger }) => trigger.type === 'schedule');
    expect(ticksOf(ticks)).toEqual([15 * MINUTE]);
    expect(world.logged.some(({ message }) => message.includes('could not be served'))).toBe(true);
    await process.close();
  });
});
