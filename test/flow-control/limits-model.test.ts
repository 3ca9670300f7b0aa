/**
 * Executions under limits against a model, with random starts, claims, ends, waits, cancels, kills and changes of limits: at no instant
 * more are held than a limit allows, nor have more begun under a rate, and after a claim that finds nothing, whatever is due has a limit
 * that is full. LIMIT_SEEDS is the number of runs.
 */

import * as fc from 'fast-check';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { FAIR, type FlowLimit, limitId } from '../../src/engine/execution/limits/flow-limit.ts';
import { NEVER, type NewExecution } from '../../src/engine/execution/stored-execution.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { postgresStorage } from '../../src/entries/postgres.ts';
import { sqliteStorage } from '../../src/entries/sqlite.ts';
import { createDatabase, findServer, type TestDatabase } from '../storage/postgres-server.ts';
import { newFile } from '../storage/sqlite-files.ts';

const T0 = Date.UTC(2026, 0, 1);
const LEASE = 1e12;
const RUNS = Number(process.env.LIMIT_SEEDS ?? 25);

type Move =
  | {
      readonly kind: 'start';
      readonly key: number;
      readonly shared: boolean;
      readonly later: number;
      readonly at: number;
    }
  | { readonly kind: 'claim'; readonly worker: number; readonly most: number; readonly slow: number }
  | { readonly kind: 'end' | 'wait' | 'signal' | 'cancel'; readonly pick: number }
  | { readonly kind: 'kill'; readonly worker: number }
  | { readonly kind: 'limit'; readonly key: number; readonly max: number }
  | { readonly kind: 'time'; readonly ms: number };

const pick = fc.nat(1000);
const moves: fc.Arbitrary<readonly Move[]> = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constant('start' as const),
        key: fc.nat(3),
        shared: fc.boolean(),
        later: fc.constantFrom(0, 0, 0, 50),
        // By which worker it begins at once, if there are slots; 3: it is queued.
        at: fc.nat(3),
      }),
    },
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constant('claim' as const),
        worker: fc.nat(2),
        most: fc.integer({ min: 1, max: 4 }),
        // By how many ms the clock of the process is slow.
        slow: fc.constantFrom(0, 0, 0, 30),
      }),
    },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('end' as const), pick }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('wait' as const), pick }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('signal' as const), pick }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('cancel' as const), pick }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('kill' as const), worker: fc.nat(2) }) },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('limit' as const),
        key: fc.nat(4),
        max: fc.integer({ min: 1, max: 3 }),
      }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('time' as const), ms: fc.constantFrom(1, 60) }) },
  ),
  { minLength: 20, maxLength: 80 },
);

interface Known {
  readonly id: string;
  readonly limits: readonly FlowLimit[];
  hasBegun: boolean;
  /** It was cancelled, and may have no slots: one that was free then needs none any more. */
  isOutside?: boolean;
  state: 'free' | 'held' | 'ended';
  worker: number;
  epoch: number;
  dueAt: number;
  /** When its cancellation was requested: it never waits longer. */
  cancelledAt?: number;
}

/** The last key is that of the shared limit. */
const SHARED = 4;
/** What the keys have besides their number. */
const RULES: readonly Partial<FlowLimit>[] = [
  ...([{}, { over: 'cancel-running' }, { over: 'keep-newest', queued: 1 }] as const),
  ...([{ hold: true }, {}] as const),
];
const PERIOD = 100;

class Model {
  readonly #storage: Storage;
  readonly #all: Known[] = [];
  readonly #max = [2, 1, 3, 2, 3];
  /** What the store may know of a limit: of what was started since it changed. */
  readonly #allowed = new Map<string, number>();
  /** When executions began under each rate. */
  readonly #begun = new Map<string, number[]>();
  #now = T0;
  #since = 1;
  #kills = 0;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  #workerId(worker: number): string {
    return `own_${String(worker + 10 * this.#kills).padStart(26, '0')}`;
  }
  readonly #ids: string[] = [];

  async begin(): Promise<void> {
    for (let worker = 0; worker < 3; worker++) await this.#register(worker);
  }

  async #register(worker: number): Promise<void> {
    this.#kills += 1;
    this.#ids[worker] = this.#workerId(worker);
    await this.#storage.workers.register(this.#ids[worker] as string, {
      now: this.#now,
      leaseUntil: this.#now + LEASE,
    });
  }

  async play(move: Move): Promise<void> {
    const held = this.#all.filter(({ state }) => state === 'held');
    const free = this.#all.filter(({ state }) => state === 'free');
    const chosen = <T>(list: readonly T[], at: number) => list[at % Math.max(list.length, 1)];
    switch (move.kind) {
      case 'start':
        return this.#start(move.key, move.shared, this.#now + move.later, move.at);
      case 'claim':
        await this.#claim(move.worker, move.most, move.slow);
        return;
      case 'end':
        return this.#end(chosen(held, move.pick));
      case 'wait':
        return this.#wait(chosen(held, move.pick), move.pick % 2 === 0 ? this.#now + 40 : NEVER);
      case 'signal':
        return this.#signal(chosen(free, move.pick));
      case 'cancel':
        return this.#cancel(chosen(free, move.pick));
      case 'kill': {
        await this.#storage.workers.unregister(this.#ids[move.worker] as string, this.#now);
        for (const one of held.filter(({ worker }) => worker === move.worker)) {
          one.state = 'free';
          one.dueAt = this.#now;
        }
        return this.#register(move.worker);
      }
      case 'limit':
        this.#max[move.key] = move.max;
        this.#since += 1;
        return;
      case 'time':
        this.#now += move.ms;
    }
  }

  async #start(key: number, shared: boolean, dueAt: number, at: number): Promise<void> {
    const limit = (at: number): FlowLimit => ({
      name: at === SHARED ? 'bank' : 'orders',
      key: at === SHARED ? '' : `k${at}`,
      max: this.#max[at] as number,
      since: this.#since,
      ...RULES[at],
    });
    const rate = { name: 'rate/orders', key: `k${key}`, max: 2, since: 1, period: PERIOD };
    const number = this.#all.length + 1;
    const group = (level: string, one: number): FlowLimit => ({
      name: FAIR + level,
      key: `k${one}`,
      max: 100_000,
      since: 1,
    });
    const fair = key % 2 === 1 ? [group('tenant', number % 2), group('user', number % 5)] : [];
    const limits = [...fair, limit(key), ...(shared ? [limit(SHARED)] : []), ...(key === 0 && shared ? [rate] : [])];
    const id = `exec_${String(number).padStart(26, '0')}`;
    const start: NewExecution = {
      ...{ id, ensemble: 'orders', version: 'v', trigger: { type: 'call' }, input: {}, createdAt: this.#now, limits },
      seed: String(number).padStart(32, '0'),
    };
    const begins = { executionId: id, epoch: 1, start, steps: [] };
    const [answer] = at < 3 ? await this.#storage.commit(this.#ids[at] as string, [begins]) : ['slots-taken'];
    if (answer === 'stored') {
      const begun: Known = { id, limits, hasBegun: false, state: 'held', worker: at, epoch: 1, dueAt };
      this.#all.push(begun);
      this.#noteBegin(begun);
      for (const one of limits) this.#allowed.set(limitId(one), Math.max(one.max, this.#heldUnder(limitId(one)) - 1));
      return this.#check();
    }
    expect(answer).toBe('slots-taken');
    await this.#commit(0, { ...begins, epoch: 0, release: { status: 'queued', dueAt } });
    this.#all.push({ id, limits, hasBegun: false, state: 'free', worker: -1, epoch: 0, dueAt });
    // A limit that was lowered lets run what runs.
    for (const one of limits) {
      const known = limitId(one);
      this.#allowed.set(known, Math.max(one.max, this.#heldUnder(known)));
    }
  }

  #noteBegin(one: Known, now = this.#now): void {
    if (one.hasBegun) return;
    one.hasBegun = true;
    for (const limit of one.limits.filter(({ period }) => period)) {
      const begun = (this.#begun.get(limitId(limit)) ?? []).filter((at) => at > now - PERIOD);
      begun.push(now);
      this.#begun.set(limitId(limit), begun);
      expect(begun.length, 'begun within the period').toBeLessThanOrEqual(limit.max);
    }
  }

  /** @param isSure - without those that may have no slot */
  #heldUnder(limit: string, isSure = true): number {
    return this.#all.filter(({ state, limits, isOutside, hasBegun }) => {
      const one = limits.find((one) => limitId(one) === limit);
      if (!one || state === 'ended' || one.period) return false;
      return one.hold ? hasBegun : state === 'held' && !(isSure && isOutside);
    }).length;
  }

  async #commit(worker: number, entry: Parameters<Storage['commit']>[1][number]): Promise<void> {
    expect(await this.#storage.commit(this.#ids[worker] as string, [entry])).toEqual(['stored']);
  }

  async #claim(worker: number, most: number, slow = 0): Promise<number> {
    const now = this.#now - slow;
    const query = { now, limit: most, excludeVersions: [] };
    const claimed = await this.#storage.executions.claim(this.#ids[worker] as string, query);
    for (const one of claimed) {
      if (!('execution' in one)) throw one.damage;
      const known = this.#all.find(({ id }) => id === one.execution.id) as Known;
      expect(known.state).toBe('free');
      if (!one.cancelRequested) expect(known.dueAt).toBeLessThanOrEqual(now);
      Object.assign(known, { state: 'held', worker, epoch: one.epoch });
      // What is too many is cancelled, and is claimed without slots.
      if (one.cancelRequested) known.isOutside = true;
      else if (!known.isOutside) this.#noteBegin(known, now);
    }
    this.#check();
    return claimed.length;
  }

  /** No limit has more executions held than it allows. */
  #check(): void {
    for (const [limit, allowed] of this.#allowed) {
      const held = this.#heldUnder(limit);
      expect(held, `${limit}: ${held} are held`).toBeLessThanOrEqual(allowed);
      const last = this.#all.flatMap(({ limits }) => limits.filter((one) => limitId(one) === limit)).at(-1);
      this.#allowed.set(limit, Math.max(last?.max ?? 0, held));
    }
  }

  async #end(one: Known | undefined): Promise<void> {
    if (!one) return;
    const end = { status: 'completed', output: null, finishedAt: this.#now, duration: 1, agents: 0 } as const;
    await this.#commit(one.worker, { executionId: one.id, epoch: one.epoch, steps: [], end });
    one.state = 'ended';
  }

  async #wait(one: Known | undefined, dueAt: number): Promise<void> {
    if (!one) return;
    const release = { status: 'waiting', dueAt, signals: 1000 } as const;
    await this.#commit(one.worker, { executionId: one.id, epoch: one.epoch, steps: [], release });
    one.state = 'free';
    one.dueAt = Math.min(dueAt, one.cancelledAt ?? dueAt);
  }

  async #signal(one: Known | undefined): Promise<void> {
    if (!one || one.dueAt !== NEVER) return;
    const id = `sig_${String(this.#now)}_${this.#all.length}_${one.epoch}`;
    await this.#storage.signals.put({ id, executionId: one.id, name: 'go', payload: null, createdAt: this.#now });
    one.dueAt = this.#now;
  }

  async #cancel(one: Known | undefined): Promise<void> {
    if (!one) return;
    const end = { status: 'cancelled', output: null, finishedAt: this.#now, duration: 1, agents: 0 } as const;
    const status = await this.#storage.executions.requestCancel(one.id, this.#now, end);
    if (status === 'cancelled') one.state = 'ended';
    else {
      const dueAt = Math.min(one.dueAt, this.#now);
      Object.assign(one, { dueAt, cancelledAt: one.cancelledAt ?? this.#now, isOutside: true });
    }
  }

  /** Claims until nothing is found: then each execution that is due has a limit that is full. */
  async settle(): Promise<void> {
    for (let empty = 0, worker = 0; empty < 3; worker = (worker + 1) % 3)
      empty = (await this.#claim(worker, 3)) === 0 ? empty + 1 : 0;
    for (const { id, state, dueAt, limits, hasBegun } of this.#all) {
      if (state !== 'free' || dueAt > this.#now) continue;
      const isFull = limits.some((one) => {
        const limit = limitId(one);
        if (hasBegun && (one.hold || one.period)) return false;
        if (one.period) return (this.#begun.get(limit) ?? []).filter((at) => at > this.#now - PERIOD).length >= one.max;
        return this.#heldUnder(limit, false) >= (this.#allowed.get(limit) ?? 0);
      });
      expect(isFull, `${id} is due, and no limit of it is full`).toBe(true);
    }
  }

  /** Ends all, and nothing is left. */
  async drain(): Promise<void> {
    this.#now += 1_000;
    for (const one of this.#all) await this.#signal(one);
    for (let rounds = 0; rounds < 500; rounds++) {
      await this.settle();
      const held = this.#all.filter(({ state }) => state === 'held');
      const isOver = this.#all.every(({ state }) => state === 'ended');
      if (isOver) break;
      if (held.length === 0) this.#now += PERIOD;
      await this.#end(held[rounds % held.length]);
    }
    expect(this.#all.filter(({ state }) => state !== 'ended')).toEqual([]);
  }
}

const hasServer = await findServer();
let database: TestDatabase;
let pool: pg.Pool;
let schemas = 0;
beforeAll(async () => {
  if (!hasServer) return;
  database = await createDatabase();
  pool = database.pool();
}, 30_000);
afterAll(() => database?.drop(), 120_000);

const STORES: readonly (readonly [string, number, () => Storage])[] = [
  ['memory', 4, () => memoryStorage()],
  ['SQLite', 1, () => sqliteStorage({ path: newFile() })],
  ['Postgres', 0.5, () => postgresStorage({ pool, schema: `limits_${schemas++}` })],
];

describe.each(STORES)('limits on %s', (name, share, open) => {
  it.skipIf(name === 'Postgres' && !hasServer)(
    'are never exceeded, and nothing that could run is left waiting',
    async () => {
      await fc.assert(
        fc.asyncProperty(moves, async (all) => {
          const storage = open();
          try {
            const model = new Model(storage);
            await model.begin();
            for (const [i, move] of all.entries()) {
              await model.play(move);
              if (i % 10 === 9) await model.settle();
              if (i % 40 === 39) await model.drain();
            }
            await model.drain();
          } finally {
            await storage.close?.();
          }
        }),
        { numRuns: Math.ceil(RUNS * share), endOnFailure: true },
      );
    },
    600_000,
  );
});
