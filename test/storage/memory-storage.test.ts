/** The memory storage: the published suite, answers at once or later, what it keeps, and the order of what is due. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory-storage.ts';
import {
  accept,
  claim,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  join,
  numbers,
  OWNER,
  signal,
  starting,
  step,
  T0,
} from '../../src/adapters/testing/storage-suite/context.ts';
import { storageSuite } from '../../src/adapters/testing/storage-suite.ts';
import type { Storage } from '../../src/engine/ports/storage.ts';
import { createTestOrchestrator } from '../../src/testing.ts';
import { laterStorage } from './later-storage.ts';

storageSuite({ name: 'memoryStorage', create: () => memoryStorage(), owners: 'many', test: { describe, it } });
storageSuite({
  name: 'memoryStorage behind promises',
  create: () => laterStorage(memoryStorage()),
  owners: 'many',
  test: { describe, it },
});
describe('with handles', () => {
  let last: Storage;
  storageSuite({
    name: 'memoryStorage({ shared: true })',
    create() {
      last = memoryStorage({ shared: true });
      return last;
    },
    // A memory storage is its own data: another handle on it is itself.
    reopen: () => last,
    owners: 'many',
    test: { describe, it },
  });
  storageSuite({
    name: 'memoryStorage, one owner alone',
    create() {
      last = oneOwner(memoryStorage());
      return last;
    },
    reopen: () => last,
    test: { describe, it },
  });
});

/** Who joins takes over: the owner before is dead then. */
function oneOwner(inner: Storage): Storage {
  let owner: string | undefined;
  return {
    ...inner,
    async join(next, lease) {
      await inner.join(next, lease);
      if (owner !== undefined && owner !== next) {
        await inner.renew(owner, lease.now);
        await inner.recover(next, lease.now, lease.blameFrom);
      }
      owner = next;
    },
  };
}

const finish = async (storage: Storage, number: number) => {
  await accept(storage, execution(number));
  storage.commit(OWNER, [entry(number, { steps: [step('flow[0]')], end: end() })]);
};
const kept = async (storage: Storage) =>
  (await storage.listExecutions({ limit: 250 })).map(({ id }) => Number(id.slice(5)));

describe('memoryStorage({ keep })', () => {
  it('keeps the newest finished executions, and those at work always', async () => {
    const storage = memoryStorage({ keep: 3 });
    await accept(storage, execution(0));
    for (let number = 1; number <= 10; number++) await finish(storage, number);
    expect(await kept(storage)).toEqual([10, 9, 8, 0]);
    expect(storage.commit(OWNER, [entry(0, { steps: [step('flow[0]')] })])).toEqual(['stored']);
    expect(await storage.getExecution(executionId(7))).toBeUndefined();
    expect(await storage.listSteps(executionId(7), { limit: 10 })).toEqual([]);
  });

  it('newest means finished last, not accepted last', async () => {
    const storage = memoryStorage({ keep: 2 });
    for (const number of [1, 2, 3]) await accept(storage, execution(number));
    for (const number of [3, 2, 1]) storage.commit(OWNER, [entry(number, { end: end() })]);
    expect(await kept(storage)).toEqual([2, 1]);
  });

  it('goes round many times and forgets what it dropped', async () => {
    const storage = memoryStorage({ keep: 4 });
    for (let number = 1; number <= 103; number++) await finish(storage, number);
    expect(await kept(storage)).toEqual([103, 102, 101, 100]);
    expect(storage.commit(OWNER, [entry(5, { end: end() })])).toEqual(['fenced']);
  });

  it('keep: 0 keeps none of the finished ones', async () => {
    const storage = memoryStorage({ keep: 0 });
    await accept(storage, execution(0));
    await finish(storage, 1);
    expect(await kept(storage)).toEqual([0]);
  });

  it('keeps 10,000 by default', async () => {
    const storage = memoryStorage();
    for (let number = 0; number <= 10_000; number++) await finish(storage, number);
    expect(await storage.getExecution(executionId(0))).toBeUndefined();
    expect((await storage.getExecution(executionId(1)))?.status).toBe('completed');
  });

  it('keep may be as large as a number can be: room is taken as it is needed', async () => {
    const storage = memoryStorage({ keep: Number.MAX_SAFE_INTEGER });
    for (const number of [1, 2, 3]) await finish(storage, number);
    expect(await kept(storage)).toEqual([3, 2, 1]);
  });

  it.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '5'])('keep: %s is a TypeError', (keep) => {
    expect(() => memoryStorage({ keep: keep as number })).toThrow(
      TypeError(`memoryStorage: keep must be a whole number of at least 0, not ${keep}`),
    );
  });

  it('counts those that were stopped before they began, and those that were deleted no more', async () => {
    const storage = memoryStorage({ keep: 3 });
    for (let number = 1; number <= 3; number++) await finish(storage, number);
    await enqueue(storage, execution(4));
    storage.requestCancel(executionId(4), T0, end({ status: 'cancelled' }));
    expect(await kept(storage)).toEqual([4, 3, 2]);
    expect(storage.purge({ owner: OWNER, before: T0 + 1000, limit: 2 })).toEqual({
      deleted: 2,
      next: executionId(3),
    });
    for (let number = 5; number <= 6; number++) await finish(storage, number);
    expect(await kept(storage)).toEqual([6, 5, 4]);
    await finish(storage, 7);
    expect(await kept(storage)).toEqual([7, 6, 5]);
  });
});

describe('memoryStorage({ keepBytes })', () => {
  const KIB = 1024;
  const big = (number: number, kib = 100) => execution(number, { input: 'x'.repeat(kib * KIB) });
  const finishBig = async (storage: Storage, number: number, kib?: number) => {
    await accept(storage, big(number, kib));
    storage.commit(OWNER, [entry(number, { end: end() })]);
  };
  const start = async (storage: Storage, number: number, kib?: number) =>
    storage.commit(OWNER, [starting(big(number, kib))]);
  const refusal = { code: 'OVERLOADED', details: { limit: 350 * KIB }, retryable: false };

  it('drops the oldest finished executions when inputs, steps and outputs take more', async () => {
    const storage = memoryStorage({ keepBytes: 350 * KIB });
    for (const number of [1, 2, 3, 4]) await finishBig(storage, number);
    expect(await kept(storage)).toEqual([4, 3, 2]);
    await accept(storage, execution(5));
    storage.commit(OWNER, [entry(5, { steps: [step('a', { output: 'x'.repeat(150 * KIB) })] })]);
    expect(await kept(storage)).toEqual([5, 4]);
    storage.commit(OWNER, [entry(5, { end: end({ output: 'x'.repeat(120 * KIB) }) })]);
    expect(await kept(storage)).toEqual([5]);
  });

  it('counts what a value takes in memory: an empty object is not 2 bytes', async () => {
    const storage = memoryStorage({ keepBytes: 350 * KIB });
    await finishBig(storage, 1);
    await accept(storage, execution(2, { input: Array.from({ length: 6000 }, () => ({})) }));
    expect(await kept(storage)).toEqual([2]);
  });

  it('a start is refused while what is at work and waiting takes all of it, and taken again when that has ended', async () => {
    const storage = memoryStorage({ keepBytes: 350 * KIB });
    await join(storage);
    for (const number of [1, 2, 3]) await start(storage, number);
    await enqueue(storage, big(4));
    await expect(start(storage, 5)).rejects.toMatchObject(refusal);
    await expect(enqueue(storage, execution(6))).rejects.toMatchObject(refusal);
    // What is stored already goes on: its results, its end, its children, and a repeat of its start.
    expect(storage.commit(OWNER, [entry(1, { steps: [step('a', { output: 'x'.repeat(100 * KIB) })] })])).toEqual([
      'stored',
    ]);
    const child = execution(7, { trigger: { type: 'ensemble', parentId: executionId(1) } });
    expect(storage.commit(OWNER, [starting(child)])).toEqual(['stored']);
    expect(await start(storage, 2)).toEqual(['stored']);
    for (const number of [1, 2, 3]) storage.commit(OWNER, [entry(number, { end: end() })]);
    expect(await start(storage, 5)).toEqual(['stored']);
  });

  it('signals count too: they are refused where there is no more room', async () => {
    const storage = memoryStorage({ keepBytes: 350 * KIB });
    await accept(storage, execution(1));
    const payload = 'x'.repeat(100 * KIB);
    for (const number of [1, 2, 3, 4]) storage.putSignal(signal(number, 1, { payload }));
    expect(() => storage.putSignal(signal(5, 1))).toThrow(/holds \(`keepBytes`\)/);
    expect(storage.putSignal(signal(5, 9))).toBe('unknown');
  });

  it('what was deleted counts no more', async () => {
    const storage = memoryStorage({ keepBytes: 350 * KIB });
    for (const number of [1, 2, 3]) await finishBig(storage, number);
    expect(storage.purge({ owner: OWNER, before: T0 + 1000, limit: 10 })).toEqual({ deleted: 3 });
    for (const number of [4, 5, 6]) await finishBig(storage, number);
    expect(await kept(storage)).toEqual([6, 5, 4]);
  });

  it('is 256 MiB by default: 400 finished executions of 1 MiB leave 255', async () => {
    const storage = memoryStorage();
    for (let number = 1; number <= 400; number++) await finishBig(storage, number, 1024);
    const count = (await kept(storage)).length;
    expect(count).toBeGreaterThan(240);
    expect(count).toBeLessThanOrEqual(256);
  });

  it.each([-1, 1.5, Number.NaN, '5'])('keepBytes: %s is a TypeError', (keepBytes) => {
    expect(() => memoryStorage({ keepBytes: keepBytes as number })).toThrow(
      TypeError(`memoryStorage: keepBytes must be a whole number of at least 0, not ${keepBytes}`),
    );
  });

  it('a start that is refused is told at once, and nothing of it is tried again', async () => {
    const orchestrator = createTestOrchestrator({
      storage: memoryStorage({ keepBytes: 10 * KIB }),
      ensembles: [{ name: 'e', flow: [{ wait: 'go' }] }],
    });
    await orchestrator.start('e', { text: 'x'.repeat(20 * KIB) });
    await expect(orchestrator.start('e')).rejects.toMatchObject({ code: 'OVERLOADED' });
    expect((await orchestrator.executions.list()).executions).toHaveLength(1);
  });
});

describe('memoryStorage({ shared })', () => {
  it('is what the capabilities say; by default, one orchestrator works on it', () => {
    const others = { sharedCommits: true, groupedCommits: false };
    expect(memoryStorage().capabilities).toEqual({ ...others, shared: false });
    expect(memoryStorage({ shared: false }).capabilities).toEqual({ ...others, shared: false });
    expect(memoryStorage({ shared: true }).capabilities).toEqual({ ...others, shared: true });
  });
});

describe('memoryStorage, what is due', () => {
  it('answers every verb at once', () => {
    const storage = memoryStorage();
    const id = executionId(1);
    const answers = [
      storage.join(OWNER, { now: T0, leaseUntil: T0 + 1 }),
      storage.renew(OWNER, T0 + 1),
      storage.commit(OWNER, [starting(execution(1)), entry(1)]),
      storage.claim(OWNER, { now: T0, limit: 1, except: [] }),
      storage.listHeld(OWNER),
      storage.survey(OWNER, []),
      storage.countQueued(1),
      storage.requestCancel(id, T0, end()),
      storage.findEnded([id]),
      storage.purge({ owner: OWNER, before: T0, limit: 1 }),
      storage.recover(OWNER, T0),
      storage.getAccepted(id),
      storage.getExecution(id),
      storage.listExecutions({ limit: 1 }),
      storage.listSteps(id, { limit: 1 }),
      storage.listDeliveries(id),
      storage.leave(OWNER, T0),
      storage.close(),
    ];
    expect(answers.filter((answer) => answer instanceof Promise)).toEqual([]);
  });

  it('comes in the order of its instants, whatever the order in which it was stored', async () => {
    const storage = memoryStorage();
    await join(storage);
    const dueAts = scattered(2000);
    for (const [number, dueAt] of dueAts.entries()) await enqueue(storage, execution(number), T0 + dueAt);
    for (const sorted of [...dueAts].sort((a, b) => a - b)) {
      expect((await storage.survey(OWNER, [])).nextDueAt).toBe(T0 + sorted);
      const [number] = numbers(await claim(storage, { limit: 1 }));
      expect(dueAts[number as number]).toBe(sorted);
    }
  });

  it('is 100,000 executions as quickly as a few: they are queued, looked at and claimed within seconds', async () => {
    const storage = memoryStorage();
    await join(storage);
    const count = 100_000;
    const dueAts = scattered(count);
    const begin = performance.now();
    for (const [number, dueAt] of dueAts.entries()) {
      const queued = starting(execution(number, { ensemble: `e-${number % 10}` }), {
        release: { status: 'queued', dueAt: T0 + dueAt },
      });
      storage.commit(OWNER, [queued]);
    }
    const seen = new Set<string>();
    for (;;) {
      storage.survey(OWNER, []);
      storage.countQueued(10_000);
      const claimed = await claim(storage, { limit: 50, now: T0 + count });
      if (claimed.length === 0) break;
      for (const { execution: one } of claimed) seen.add(one.id);
    }
    expect(seen.size).toBe(count);
    expect(performance.now() - begin).toBeLessThan(5000);
  });

  it('forgets ensembles of which nothing is free any more', async () => {
    const storage = memoryStorage({ keep: 0 });
    await join(storage);
    const begin = performance.now();
    for (let number = 0; number < 10_000; number++) {
      await enqueue(storage, execution(number, { ensemble: `e-${number}` }));
      const [claimed] = await claim(storage, { limit: 1 });
      storage.commit(OWNER, [entry(number, { epoch: claimed?.epoch ?? 0, end: end() })]);
    }
    expect(storage.countQueued(10)).toBe(0);
    expect(performance.now() - begin).toBeLessThan(2000);
  });
});

/** The numbers below `count`, each once, in an order of no pattern that a heap would care for. */
function scattered(count: number): number[] {
  const numbers = Array.from({ length: count }, (_, i) => i);
  let seed = 42;
  for (let at = count - 1; at > 0; at--) {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    const other = seed % (at + 1);
    [numbers[at], numbers[other]] = [numbers[other] as number, numbers[at] as number];
  }
  return numbers;
}
