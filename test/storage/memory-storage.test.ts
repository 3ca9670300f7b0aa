/** The memory storage: the published suite, its limits, and the order in which executions are due. */

import { describe, expect, it } from 'vitest';
import { createDueQueue } from '../../src/adapters/storage/memory/due/due-queue.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import {
  accept,
  claim,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  numbers,
  register,
  signal,
  starting,
  step,
  T0,
  WORKER,
} from '../../src/conformance/storage-suite/context.ts';
import { storageSuite } from '../../src/conformance/storage-suite.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { changeStorage } from '../../src/testing-kit/processes/change-storage.ts';
import { scaled } from '../slowdown.ts';
import { calledMethods } from './called-methods.ts';
import { laterStorage } from './later-storage.ts';
import { TOKEN } from './stored-token.ts';

storageSuite({ name: 'memoryStorage', create: () => memoryStorage(), workers: 'many', test: { describe, it } });
storageSuite({
  name: 'memoryStorage with promises',
  create: () => laterStorage(memoryStorage()),
  workers: 'many',
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
    // The same storage: no other handle can reach its data.
    reopen: () => last,
    workers: 'many',
    test: { describe, it },
  });
  storageSuite({
    name: 'memoryStorage, a single worker',
    create() {
      last = oneWorker(memoryStorage());
      return last;
    },
    reopen: () => last,
    test: { describe, it },
  });
});

/** A worker that registers removes the previous worker, which counts as dead. */
function oneWorker(inner: Storage): Storage {
  let worker: string | undefined;
  return changeStorage(inner, {
    workers: {
      async register(next, lease) {
        await inner.workers.register(next, lease);
        if (worker !== undefined && worker !== next) {
          await inner.workers.renew(worker, lease.now);
          await inner.workers.reclaimFromDead(next, lease.now, lease.blameFrom);
        }
        worker = next;
      },
    },
  });
}

const finish = async (storage: Storage, number: number) => {
  await accept(storage, execution(number));
  storage.commit(WORKER, [entry(number, { steps: [step('flow[0]')], end: end() })]);
};
const kept = async (storage: Storage) =>
  (await storage.executions.list({ limit: 250 })).map(({ id }) => Number(id.slice(5)));

describe('memoryStorage({ keep })', () => {
  it('keeps the newest finished executions and all unfinished ones', async () => {
    const storage = memoryStorage({ keep: 3 });
    await accept(storage, execution(0));
    for (let number = 1; number <= 10; number++) await finish(storage, number);
    expect(await kept(storage)).toEqual([10, 9, 8, 0]);
    expect(storage.commit(WORKER, [entry(0, { steps: [step('flow[0]')] })])).toEqual(['stored']);
    expect(await storage.executions.get(executionId(7))).toBeUndefined();
    expect(await storage.executions.listSteps(executionId(7), { limit: 10 })).toEqual([]);
  });

  it('the newest is the one that finished last, not the one that was accepted last', async () => {
    const storage = memoryStorage({ keep: 2 });
    for (const number of [1, 2, 3]) await accept(storage, execution(number));
    for (const number of [3, 2, 1]) storage.commit(WORKER, [entry(number, { end: end() })]);
    expect(await kept(storage)).toEqual([2, 1]);
  });

  it('stays within the limit for many executions, and forgets those that it dropped', async () => {
    const storage = memoryStorage({ keep: 4 });
    for (let number = 1; number <= 103; number++) await finish(storage, number);
    expect(await kept(storage)).toEqual([103, 102, 101, 100]);
    expect(storage.commit(WORKER, [entry(5, { end: end() })])).toEqual(['fenced']);
  });

  it('keep: 0 keeps no finished executions', async () => {
    const storage = memoryStorage({ keep: 0 });
    await accept(storage, execution(0));
    await finish(storage, 1);
    expect(await kept(storage)).toEqual([0]);
  });

  it('keeps 10,000 by default', async () => {
    const storage = memoryStorage();
    for (let number = 0; number <= 10_000; number++) await finish(storage, number);
    expect(await storage.executions.get(executionId(0))).toBeUndefined();
    expect((await storage.executions.get(executionId(1)))?.status).toBe('completed');
  });

  it('keep may be as large as a number can be: memory is taken only when needed', async () => {
    const storage = memoryStorage({ keep: Number.MAX_SAFE_INTEGER });
    for (const number of [1, 2, 3]) await finish(storage, number);
    expect(await kept(storage)).toEqual([3, 2, 1]);
  });

  it.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])('keep: %s is a TypeError', (keep) => {
    expect(() => memoryStorage({ keep: keep as number })).toThrow(
      TypeError(`memoryStorage: \`keep\` must be a whole number of at least 0, not ${keep}`),
    );
  });

  it('counts executions that were cancelled before they started, and no longer counts deleted ones', async () => {
    const storage = memoryStorage({ keep: 3 });
    for (let number = 1; number <= 3; number++) await finish(storage, number);
    await enqueue(storage, execution(4));
    storage.executions.requestCancel(executionId(4), T0, end({ status: 'cancelled' }));
    expect(await kept(storage)).toEqual([4, 3, 2]);
    expect(storage.executions.purge({ worker: WORKER, before: T0 + 1000, limit: 2 })).toEqual({
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
    storage.commit(WORKER, [entry(number, { end: end() })]);
  };
  const start = async (storage: Storage, number: number, kib?: number) =>
    storage.commit(WORKER, [starting(big(number, kib))]);
  const refusal = { code: 'OVERLOADED', details: { limit: 350 * KIB }, retryable: false };

  it('drops the oldest finished executions when inputs, steps and outputs take more', async () => {
    const storage = memoryStorage({ keepBytes: 350 * KIB });
    for (const number of [1, 2, 3, 4]) await finishBig(storage, number);
    expect(await kept(storage)).toEqual([4, 3, 2]);
    await accept(storage, execution(5));
    storage.commit(WORKER, [entry(5, { steps: [step('a', { output: 'x'.repeat(150 * KIB) })] })]);
    expect(await kept(storage)).toEqual([5, 4]);
    storage.commit(WORKER, [entry(5, { end: end({ output: 'x'.repeat(120 * KIB) }) })]);
    expect(await kept(storage)).toEqual([5]);
  });

  it('counts the memory of values: an empty object takes more than 2 bytes', async () => {
    const storage = memoryStorage({ keepBytes: 350 * KIB });
    await finishBig(storage, 1);
    await accept(storage, execution(2, { input: Array.from({ length: 6000 }, () => ({})) }));
    expect(await kept(storage)).toEqual([2]);
  });

  it('a start is refused while unfinished executions take all of the memory, and accepted after they ended', async () => {
    const storage = memoryStorage({ keepBytes: 350 * KIB });
    await register(storage);
    for (const number of [1, 2, 3]) await start(storage, number);
    await enqueue(storage, big(4));
    await expect(start(storage, 5)).rejects.toMatchObject(refusal);
    await expect(enqueue(storage, execution(6))).rejects.toMatchObject(refusal);
    // A stored execution continues: results, its end, its children and a repetition of its start are accepted.
    expect(storage.commit(WORKER, [entry(1, { steps: [step('a', { output: 'x'.repeat(100 * KIB) })] })])).toEqual([
      'stored',
    ]);
    const child = execution(7, { trigger: { type: 'ensemble', parentId: executionId(1) } });
    expect(storage.commit(WORKER, [starting(child)])).toEqual(['stored']);
    expect(await start(storage, 2)).toEqual(['stored']);
    for (const number of [1, 2, 3]) storage.commit(WORKER, [entry(number, { end: end() })]);
    expect(await start(storage, 5)).toEqual(['stored']);
  });

  it('signals count too: they are refused when all of the memory is taken', async () => {
    const storage = memoryStorage({ keepBytes: 350 * KIB });
    await accept(storage, execution(1));
    const payload = 'x'.repeat(100 * KIB);
    for (const number of [1, 2, 3, 4]) storage.signals.put(signal(number, 1, { payload }));
    expect(() => storage.signals.put(signal(5, 1))).toThrow(/of the memory storage \(`keepBytes`\)/);
    expect(storage.signals.put(signal(5, 9))).toBe('unknown');
  });

  it('deleted executions no longer count', async () => {
    const storage = memoryStorage({ keepBytes: 350 * KIB });
    for (const number of [1, 2, 3]) await finishBig(storage, number);
    expect(storage.executions.purge({ worker: WORKER, before: T0 + 1000, limit: 10 })).toEqual({ deleted: 3 });
    for (const number of [4, 5, 6]) await finishBig(storage, number);
    expect(await kept(storage)).toEqual([6, 5, 4]);
  });

  it('is 256 MiB by default: of 400 finished executions of 1 MiB, 255 stay', async () => {
    const storage = memoryStorage();
    for (let number = 1; number <= 400; number++) await finishBig(storage, number, 1024);
    const count = (await kept(storage)).length;
    expect(count).toBeGreaterThan(240);
    expect(count).toBeLessThanOrEqual(256);
  });

  it.each([-1, 1.5, Number.NaN])('keepBytes: %s is a TypeError', (keepBytes) => {
    expect(() => memoryStorage({ keepBytes: keepBytes as number })).toThrow(
      TypeError(`memoryStorage: \`keepBytes\` must be a whole number of at least 0, not ${keepBytes}`),
    );
  });

  it('a refused start is reported at once and is not retried', async () => {
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
  it('is reported by the capabilities; by default, one orchestrator works on it', () => {
    const others = { sharedPromises: true, timers: true, groupedCommits: false };
    expect(memoryStorage().capabilities).toEqual({ ...others, shared: false });
    expect(memoryStorage({ shared: false }).capabilities).toEqual({ ...others, shared: false });
    expect(memoryStorage({ shared: true }).capabilities).toEqual({ ...others, shared: true });
  });
});

describe('memoryStorage, due executions', () => {
  it('answers every method at once', () => {
    const inner = memoryStorage();
    const { parts, left } = calledMethods(inner);
    const storage = { ...inner, ...parts };
    const id = executionId(1);
    const page = { limit: 1, now: T0 };
    const object = { content: new Uint8Array(1), contentType: 'text/plain', updatedAt: T0 };
    const document = { value: {}, tag: 'a', updatedAt: T0 };
    const hour = { key: 'token:tok_1', limit: 1, windowMs: 3_600_000 };
    const answers = [
      storage.workers.register(WORKER, { now: T0, leaseUntil: T0 + 1 }),
      storage.workers.renew(WORKER, T0 + 1),
      storage.commit(WORKER, [starting(execution(1)), entry(1)]),
      storage.executions.claim(WORKER, { now: T0, limit: 1, excludeVersions: [] }),
      storage.executions.take(WORKER, id, T0),
      storage.workers.listHeld(WORKER),
      storage.signals.put(signal(1, 1)),
      storage.signals.list(id, { name: 'go', after: 0, limit: 1 }),
      storage.signals.find(id, signal(1, 1).id),
      storage.executions.poll(WORKER, []),
      storage.executions.countQueued(1),
      storage.executions.requestCancel(id, T0, end()),
      storage.executions.getPinned(id),
      storage.executions.pause(id, 'execution'),
      storage.executions.resume(id, 'execution'),
      storage.executions.pauseAll('all', undefined, 1),
      storage.executions.resumeAll('all', [], 1),
      storage.executions.putLimits([]),
      storage.executions.limitWaits(id, T0),
      storage.executions.closeLimits([{ name: 'a', key: '', max: 1, since: 1 }], T0),
      storage.executions.takeSlot({ name: 'a', key: '', max: 1, since: 1 }, { executionId: id, key: 'k' }, T0),
      storage.executions.freeSlot({ name: 'a', key: '', max: 1, since: 1 }, { executionId: id, key: 'k' }),
      storage.executions.repin(id, {
        ...{ epoch: 1, from: 'a', to: 'b' },
        handover: { waitingFor: [], waited: 0, recoveries: 0 },
      }),
      storage.executions.findEnded([id]),
      storage.executions.purge({ worker: WORKER, before: T0, limit: 1 }),
      storage.executions.delete([]),
      storage.workers.reclaimFromDead(WORKER, T0),
      storage.executions.getAccepted(id),
      storage.executions.get(id),
      storage.executions.list({ limit: 1 }),
      storage.executions.listSteps(id, { limit: 1 }),
      storage.executions.getStatus(id),
      storage.executions.findByKey('once'),
      storage.executions.countOpen(1),
      storage.executions.countAccepted(0, 1),
      storage.executions.getStep(id, 'flow[0]'),
      storage.executions.getSteps(id, ['flow[0]']),
      storage.executions.skipSteps(id, 1),
      storage.executions.listEndedWaits(id, 'go', 0),
      storage.executions.countDescendants(id, 1),
      storage.state.read('orders'),
      storage.state.write('orders', { expectedVersion: 0, value: {}, updatedAt: T0 }),
      storage.documents.write('ensemble', 'orders', { expectedVersion: 0, document, now: T0 }),
      storage.documents.read('ensemble', 'orders', T0),
      storage.documents.list('ensemble', { limit: 1, now: T0 }),
      storage.deliveries.receivers('', 1),
      storage.deliveries.claim('shop', { now: T0, until: T0 + 1, limit: 1 }),
      storage.deliveries.settle([]),
      storage.deliveries.requeue(['dlv_1'], T0),
      storage.deliveries.get('dlv_1'),
      storage.deliveries.list({ limit: 1 }),
      storage.deliveries.purge(T0, 1),
      storage.usage.running('tok_1'),
      storage.usage.charged('tok_1', '2026-01'),
      storage.rates.take([hour], T0),
      storage.rates.peek([hour], T0),
      storage.tallies.read({ since: T0, until: T0 + 1 }),
      storage.tallies.fold(T0),
      storage.schedules.advance('hourly', { expectedVersion: 0, value: {}, updatedAt: T0 }),
      storage.schedules.read('hourly'),
      storage.definitions.put({ version: 'v', definition: {}, needs: [] }),
      storage.definitions.get('v'),
      storage.tokens.put(TOKEN),
      storage.tokens.findByDigest(TOKEN.digest),
      storage.tokens.get(TOKEN.id),
      storage.tokens.list(),
      storage.tokens.touch(TOKEN.id, T0),
      storage.tokens.delete(TOKEN.id),
      storage.kv.put('k', 1),
      storage.kv.get('k', T0),
      storage.kv.list(page),
      storage.kv.delete('k'),
      storage.objects.put('k', object),
      storage.objects.get('k'),
      storage.objects.list(page),
      storage.objects.delete('k'),
      storage.workers.unregister(WORKER, T0),
      storage.close(),
    ];
    expect(answers.filter((answer) => answer instanceof Promise)).toEqual([]);
    expect([...left]).toEqual([]);
  });

  it('are claimed in the order of their due times, whatever the order in which they were stored', async () => {
    const storage = memoryStorage();
    await register(storage);
    const dueAts = scattered(2000);
    for (const [number, dueAt] of dueAts.entries()) await enqueue(storage, execution(number), T0 + dueAt);
    for (const sorted of [...dueAts].sort((a, b) => a - b)) {
      expect((await storage.executions.poll(WORKER, [])).nextDueAt).toBe(T0 + sorted);
      const [number] = numbers(await claim(storage, { limit: 1 }));
      expect(dueAts[number as number]).toBe(sorted);
    }
  });

  it('100,000 executions are queued, polled and claimed within seconds', async () => {
    const storage = memoryStorage();
    await register(storage);
    const count = 100_000;
    const dueAts = scattered(count);
    const begin = performance.now();
    for (const [number, dueAt] of dueAts.entries()) {
      const queued = starting(execution(number, { ensemble: `e-${number % 10}` }), {
        release: { status: 'queued', dueAt: T0 + dueAt },
      });
      storage.commit(WORKER, [queued]);
    }
    const seen = new Set<string>();
    for (;;) {
      storage.executions.poll(WORKER, []);
      storage.executions.countQueued(10_000);
      const claimed = await claim(storage, { limit: 50, now: T0 + count });
      if (claimed.length === 0) break;
      for (const { execution: one } of claimed) seen.add(one.id);
    }
    expect(seen.size).toBe(count);
    expect(performance.now() - begin).toBeLessThan(scaled(5000));
  });

  it('forgets earlier due times of an execution, while another one waits without end', () => {
    let dueAt = 0;
    let asked = 0;
    let isOver = false;
    const queue = createDueQueue(
      (id, at) => {
        asked += 1;
        return !isOver && (id === 'waits' || at === dueAt);
      },
      () => true,
    );
    const lane = { ensemble: 'e', version: 'v' };
    queue.add({ ...lane, id: 'waits' }, 0);
    for (dueAt = 1; dueAt <= 20_000; dueAt++) queue.add({ ...lane, id: 'sleeps' }, dueAt);
    expect(queue.next([])).toBe(0);
    isOver = true;
    asked = 0;
    queue.next([]);
    expect(asked).toBeLessThan(2000);
  });

  it('forgets ensembles without free executions', async () => {
    const storage = memoryStorage({ keep: 0 });
    await register(storage);
    const begin = performance.now();
    for (let number = 0; number < 10_000; number++) {
      await enqueue(storage, execution(number, { ensemble: `e-${number}` }));
      const [claimed] = await claim(storage, { limit: 1 });
      storage.commit(WORKER, [entry(number, { epoch: claimed?.epoch ?? 0, end: end() })]);
    }
    expect(storage.executions.countQueued(10)).toBe(0);
    expect(performance.now() - begin).toBeLessThan(scaled(2000));
  });
});

/** The numbers below `count`, each once, in a scattered order. */
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
