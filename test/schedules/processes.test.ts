/** Schedules that several processes serve on one store, and stores that fail in the midst: each tick once, none lost. */

import { PGlite } from '@electric-sql/pglite';
import { describe, expect, it } from 'vitest';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import type { Storage } from '../../src/engine/ports/storage.ts';
import { memoryStorage } from '../../src/index.ts';
import { laterStorage } from '../storage/later-storage.ts';
import { newFile } from '../storage/sqlite-files.ts';
import { allExecutions, createWorld, HOUR, MINUTE, settle, T0, ticksOf, type World } from './schedule-world.ts';

const quarters = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, i) => (from + i) * 15 * MINUTE);

/** A tick every ten seconds: a shared store is looked at four times a second, and hours of that would take long. */
const OFTEN = '*/10 * * * * *';
const SECOND = 1000;
const tens = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, i) => (from + i) * 10 * SECOND);

/** Moves time on second by second, with room for a store that answers later. */
async function pass(world: World, ms: number, turns: number): Promise<void> {
  for (let left = ms; left > 0; left -= SECOND) {
    await world.clock.advance(SECOND);
    await settle(turns);
  }
}

/** What each process opens its handle with. */
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
  it('start each tick once, and go on when one of them is closed', { timeout: 60_000 }, async () => {
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
  it('the next process goes on where the one before stopped', async () => {
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
  // Everything behind one call of the store is lost with it, before or behind its effect.
  const verbs = ['readSchedule', 'advanceSchedule', 'commit', 'findEnded'] as const;
  const crashes = verbs.flatMap((verb) =>
    (['before', 'behind'] as const).flatMap((when) => [1, 2, 3].map((nth) => ({ verb, when, nth }))),
  );

  it.each(crashes)('$when call $nth of $verb at a tick: each tick runs once', async ({ verb, when, nth }) => {
    const inner = memoryStorage({ shared: true });
    let left = Number.POSITIVE_INFINITY;
    let dead = false;
    const dying = new Proxy(inner, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]): unknown => {
          const counts = key === verb && --left === 0;
          if (dead || (counts && when === 'before')) dead = true;
          if (dead) return new Promise(() => {});
          const answer: unknown = Reflect.apply(value, target, args);
          if (counts) dead = true;
          return dead ? new Promise(() => {}) : answer;
        };
      },
    });
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

describe('a process that stands still between a start and what follows', () => {
  it('leaves the rest to others, who start nothing twice while its run is at work', async () => {
    const inner = memoryStorage({ shared: true });
    let changes = 0;
    const stuck: Storage = {
      ...inner,
      // The first change makes the row, the second takes the tick in, and the third would say that it is started.
      advanceSchedule: (name, change) =>
        ++changes >= 3 ? new Promise<boolean>(() => {}) : inner.advanceSchedule(name, change),
    };
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

describe('a store that fails', () => {
  const failing = (inner: Storage) => {
    const state = { down: false, effect: false, only: undefined as string | undefined };
    const storage = new Proxy(inner, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]): unknown => {
          if (!state.down || (state.only ?? key) !== key) return Reflect.apply(value, target, args);
          // It may fail behind its effect as well.
          if (state.effect) Reflect.apply(value, target, args);
          throw new Error('the store is down');
        };
      },
    });
    return { storage, state };
  };

  it.each([false, true])('for an hour loses no tick and doubles none (with effects: %s)', async (effect) => {
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

  it.each([false, true])('at starts alone, for minutes: each tick runs, once (with effects: %s)', async (effect) => {
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

  it('whose queue is full keeps ticks waiting until there is room', async () => {
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
