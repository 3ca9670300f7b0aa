/** Storage suite: how many executions under a limit may be held at once. */

import { FAIR, type FlowLimit } from '../../engine/execution/limits/flow-limit.ts';
import type { CommitEntry } from '../../engine/execution/stored-execution.ts';
import type { Storage } from '../../engine/storage/storage.port.ts';
import {
  claim,
  commitOne,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  LEASE,
  nextDueAt,
  numbers,
  OTHER,
  register,
  release,
  STRANGER,
  type StorageCase,
  same,
  signal,
  starting,
  T0,
  WORKER,
} from './context.ts';

const under = (key: string, max: number, since = 1, name = 'orders'): FlowLimit => ({ name, key, max, since });

/** Queues executions that run under limits. The number is also when each is due. */
async function queue(storage: Storage, all: readonly number[], ...limits: readonly FlowLimit[]): Promise<void> {
  for (const number of all) {
    const seed = String(number).padStart(32, '0');
    await enqueue(storage, execution(number, { seed, limits }), T0 + number);
  }
}

const claimed = async (storage: Storage, limit = 100, worker = WORKER) =>
  numbers(await claim(storage, { limit }, worker));
const ends = async (storage: Storage, number: number, more: Partial<CommitEntry> = {}) =>
  same(await commitOne(storage, entry(number, { end: end(), ...more })), 'stored', `the end of ${number}`);

export function limitCases(it: StorageCase): void {
  it('limits: a claim takes as many executions of a key as the limit has slots, the longest due first', async (storage) => {
    await register(storage);
    await queue(storage, [1, 2, 3, 4], under('a', 2));
    await queue(storage, [5, 6], under('b', 1));
    await queue(storage, [7], under('', 5, 1, 'refunds'));
    await enqueue(storage, execution(8));
    same(await claimed(storage), [1, 2, 5, 7, 8], 'claimed');
    same(await claimed(storage), [], 'claimed while all slots are taken');
    same(await nextDueAt(storage), undefined, 'what is due next');
    same((await storage.executions.poll(WORKER, [])).slotsTaken, true, 'slotsTaken');
    await ends(storage, 2);
    same(await claimed(storage), [3], 'claimed after an end');
    await ends(storage, 5);
    await ends(storage, 1);
    same(await claimed(storage), [4, 6], 'claimed after two ends');
  });

  it('limits: a start takes a slot at once if one is free for which nobody waits; repeated, it has taken it', async (storage) => {
    await register(storage);
    const begin = (number: number, max = 1) => {
      const seed = String(number).padStart(32, '0');
      return commitOne(storage, starting(execution(number, { seed, limits: [under('a', max)] })));
    };
    same(await begin(1), 'stored', 'the first');
    same(await begin(2), 'slots-taken', 'the second');
    same(await begin(1), 'stored', 'the first again');
    same(await storage.executions.get(executionId(2)), undefined, 'the second');
    await queue(storage, [3], under('a', 1));
    await ends(storage, 1);
    same(await begin(5), 'slots-taken', 'while another one waits for the slot');
    same(await claimed(storage), [3], 'claimed');
    await ends(storage, 3);
    same(await begin(5), 'stored', 'when nobody waits');
  });

  it('limits: a claim of a worker that is not registered changes nothing', async (storage) => {
    await register(storage);
    await queue(storage, [1], under('a', 1));
    same(await claimed(storage, 100, STRANGER), [], 'claimed by a stranger');
    same(await claimed(storage), [1], 'claimed');
  });

  it('limits: an execution that waits gives its slot back, and needs one when it is due again', async (storage) => {
    await register(storage);
    await queue(storage, [1, 2], under('a', 1));
    same(await claimed(storage), [1], 'claimed');
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 90_000 });
    same(await claimed(storage), [2], 'claimed while the first waits');
    await storage.signals.put(signal(1, 1));
    same(await claimed(storage), [], 'claimed when the first is due and the second is held');
    await ends(storage, 2);
    same(await claimed(storage), [1], 'claimed after the end of the second');
  });

  it('limits: an execution is claimed only when it is due', async (storage) => {
    await register(storage);
    await queue(storage, [1, 70_000], under('a', 1));
    same(await claimed(storage), [1], 'claimed');
    await ends(storage, 1);
    same([await claimed(storage), await nextDueAt(storage)], [[], T0 + 70_000], 'claimed, and what is due next');
    same(numbers(await claim(storage, { now: T0 + 70_000 })), [70_000], 'claimed when it is due');
  });

  it('limits: an execution that is due for one process is not lost when a process with a slower clock claims', async (storage) => {
    await register(storage);
    const at = async (ms: number) => numbers(await claim(storage, { now: T0 + ms }));
    await queue(storage, [1, 100], under('a', 1));
    same([await at(1), await at(100)], [[1], []], 'claimed by the faster one while the slot is taken');
    await ends(storage, 1);
    same(await at(50), [], 'claimed by the slower one');
    same(await at(100), [100], 'claimed by the faster one');
  });

  it('limits: an execution under several limits needs a slot of each', async (storage) => {
    await register(storage);
    const bank = under('', 2, 1, 'bank');
    await queue(storage, [1, 2, 3], under('a', 2), bank);
    await queue(storage, [4, 5, 6], under('b', 2), bank);
    const [first, second] = await claimed(storage);
    same([first, second, await claimed(storage)], [1, 4, []], 'claimed: one of each key, and no third');
    await ends(storage, 1);
    const next = await claimed(storage);
    same(next.length, 1, 'claimed after an end');
    await ends(storage, 4);
    same((await claimed(storage)).length, 1, 'claimed after another end');
  });

  it('limits: a slot that a cancelled execution leaves is for the next key that waits for the limit', async (storage) => {
    await register(storage);
    const bank = under('', 1, 1, 'bank');
    await queue(storage, [1], under('a', 5), bank);
    await queue(storage, [2], under('b', 5), bank);
    await queue(storage, [3], under('c', 5), bank);
    same(await claimed(storage), [1], 'claimed');
    same(await claimed(storage), [], 'claimed while the slot is taken');
    const cancelled = end({ status: 'cancelled' });
    same(await storage.executions.requestCancel(executionId(2), T0 + 5, cancelled), 'cancelled', 'the cancellation');
    await ends(storage, 1);
    const found = [...(await claimed(storage)), ...(await claimed(storage))];
    same(found, [3], 'claimed');
  });

  it('limits: a newer number replaces an older one for all that wait, and an older one changes nothing', async (storage) => {
    await register(storage);
    await queue(storage, [1, 2, 3, 4], under('a', 1, 100));
    same(await claimed(storage), [1], 'with one slot');
    await queue(storage, [5], under('a', 3, 200));
    same(await claimed(storage), [2, 3], 'with three');
    await queue(storage, [6], under('a', 9, 150));
    same(await claimed(storage), [], 'after an older process started one');
    await queue(storage, [7], under('a', 1, 300));
    await ends(storage, 1);
    same(await claimed(storage), [], 'lowered to one: two are held');
    await ends(storage, 2);
    await ends(storage, 3);
    same(await claimed(storage), [4], 'when none is held');
  });

  it('limits: keys take turns, so that one with many executions does not hold the others up', async (storage) => {
    await register(storage);
    await queue(
      storage,
      Array.from({ length: 40 }, (_, i) => i + 1),
      under('big', 100),
    );
    for (let key = 1; key <= 9; key++) await queue(storage, [100 * key, 100 * key + 1], under(`small ${key}`, 100));
    const found: number[] = [];
    while (found.length < 30) {
      const some = await claimed(storage, 10);
      if (some.length === 0) break;
      found.push(...some);
    }
    const small = found.filter((number) => number >= 100).length;
    same(small, 18, 'executions of small keys among the first 30');
  });

  it('limits: with one place, executions with and without limits take turns', async (storage) => {
    await register(storage);
    await queue(storage, [1, 2, 3], under('a', 5));
    for (const number of [11, 12, 13]) await enqueue(storage, execution(number), T0 + number);
    const found: number[] = [];
    for (let i = 0; i < 12 && found.length < 6; i++) found.push(...(await claimed(storage, 1)));
    const kinds = found.slice(0, 4).filter((number) => number > 10).length;
    same([found.length, kinds], [6, 2], 'claimed, and those without limits among the first four');
  });

  it('limits: executions of versions that a worker can not run are left to others, and hide no others', async (storage) => {
    await register(storage);
    const other = 'fedcba9876543210fedcba9876543210';
    await enqueue(storage, execution(1, { version: other, limits: [under('a', 5)] }));
    await queue(storage, [2], under('a', 5));
    await queue(storage, [3], under('b', 5));
    const excludeVersions = [other];
    const found = [...(await claim(storage, { excludeVersions })), ...(await claim(storage, { excludeVersions }))];
    same(numbers(found), [2, 3], 'claimed without the version');
    same(await claimed(storage), [1], 'claimed with it');
  });

  it('limits: a slot of a caller is needed too', async (storage) => {
    await register(storage);
    const charge = { account: 'tok_1', period: '2026-01', slots: 1 };
    for (const number of [1, 2]) {
      const start = execution(number, { limits: [under('a', 5)] });
      const queued = { executionId: start.id, epoch: 0, start, steps: [], charge };
      await commitOne(storage, { ...queued, release: { status: 'queued', dueAt: T0 } });
    }
    await queue(storage, [3], under('a', 5));
    const found = [...(await claimed(storage)), ...(await claimed(storage))];
    same(found.length, 2, 'claimed: one of the caller, and the other');
    await ends(storage, found.find((number) => number < 3) as number);
    same((await claimed(storage, 100)).length, 1, 'claimed after its end');
  });

  it('limits: an execution under limits is not taken by its id', async (storage) => {
    await register(storage);
    await queue(storage, [1], under('a', 5));
    same(await storage.executions.take(WORKER, executionId(1), T0), undefined, 'take');
    same(await claimed(storage), [1], 'claim');
  });
}

/** Executions of groups: 200 users of tenant 1 with two each, two of tenant 2 with three each. */
export function fairCases(it: StorageCase): void {
  const fair = (tenant: number, user: number) => [
    under(`tenant${tenant}`, 100_000, 1, `${FAIR}orders`),
    under(`user${user}`, 100_000, 1, `${FAIR}orders[1]`),
  ];
  const numberOf = (tenant: number, user: number, nr: number) => 10_000 * tenant + 10 * user + nr;
  const fill = async (storage: Storage, ...more: readonly FlowLimit[]) => {
    await register(storage);
    for (let user = 0; user < 200; user++)
      await queue(storage, [numberOf(1, user, 1), numberOf(1, user, 2)], ...fair(1, user), ...more);
    for (const user of [7, 8])
      await queue(
        storage,
        [1, 2, 3].map((nr) => numberOf(2, user, nr)),
        ...fair(2, user),
        ...more,
      );
  };
  const countsOf = (found: readonly number[]) => {
    const ofFirst = found.filter((number) => number < 20_000);
    return { first: ofFirst.length, second: found.length - ofFirst.length };
  };

  it('limits: groups take turns in claims, however many queues one has, and so do the queues of a group', async (storage) => {
    await fill(storage);
    await queue(storage, [5, 6, 7], under('a', 100));
    const rounds: number[][] = [];
    for (let i = 0; i < 6; i++) rounds.push(await claimed(storage, 3));
    const found = rounds.flat();
    same(found.filter((number) => number < 10).length, 3, 'those of a queue without a group, after 18');
    same(countsOf(found.filter((number) => number > 10)).second, 6, 'those of the second tenant');
    const users = found.filter((number) => number > 10 && number < 20_000).map((number) => Math.floor(number / 10));
    same([users.length, new Set(users).size], [9, 9], 'executions of the first tenant, and their users');
    const more = (await claimed(storage, 60)).map((number) => Math.floor(number / 10));
    same([more.length, new Set([...users, ...more]).size], [60, 69], 'its next executions, and all users so far');
  });

  it('limits: groups take turns for the slots of a limit too, and so do the queues of a group', async (storage) => {
    await fill(storage, under('', 2, 1, 'all'));
    const found: number[] = [];
    for (let i = 0; i < 10; i++) {
      const held = await claimed(storage, 50);
      same(held.length, 2, `how many of the slots are taken in round ${i}`);
      for (const number of held) await ends(storage, number);
      found.push(...held);
    }
    same(countsOf(found), { first: 14, second: 6 }, 'executions of each tenant');
    same(countsOf(found.slice(0, 12)), { first: 6, second: 6 }, 'the first twelve');
    const users = found.filter((number) => number < 20_000).map((number) => Math.floor(number / 10));
    same(new Set(users).size, 14, 'users of the first tenant');
  });
}

export function sharedLimitCases(it: StorageCase): void {
  it('limits: the slots of a worker that died are free when it is reclaimed, and not before', async (storage) => {
    await register(storage);
    await register(storage, OTHER, T0 + LEASE);
    await queue(storage, [1, 2, 3], under('a', 2));
    same(await claimed(storage), [1, 2], 'claimed by the first');
    same(await claimed(storage, 100, OTHER), [], 'claimed by the second');
    const now = T0 + LEASE + 1;
    await storage.workers.reclaimFromDead(OTHER, now, now);
    const found = await claimed(storage, 100, OTHER);
    same(found.length, 2, 'claimed after the reclaim');
  });

  it('limits: many workers that claim at the same time hold no more than the limits allow', async (storage) => {
    await register(storage);
    await register(storage, OTHER);
    for (let key = 1; key <= 5; key++)
      await queue(
        storage,
        Array.from({ length: 10 }, (_, i) => 100 * key + i),
        under(`key ${key}`, 3),
        under('', 11, 1, 'all'),
      );
    const rounds = await Promise.all(
      Array.from({ length: 8 }, (_, i) => claimed(storage, 4, i % 2 === 0 ? WORKER : OTHER)),
    );
    const found = rounds.flat();
    while (found.length < 11) {
      const more = [...(await claimed(storage, 4)), ...(await claimed(storage, 4, OTHER))];
      if (more.length === 0) break;
      found.push(...more);
    }
    const perKey = [1, 2, 3, 4, 5].map((key) => found.filter((number) => Math.floor(number / 100) === key).length);
    same([found.length, Math.max(...perKey) <= 3], [11, true], 'held in all, and at most 3 of each key');
  });
}
