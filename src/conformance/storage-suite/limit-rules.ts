/** Storage suite: what becomes of executions that are too many under a limit, rates, slots that are kept, and starts that come too late. */

import type { FlowLimit } from '../../engine/execution/limits/flow-limit.ts';
import type { CommitResult, Storage } from '../../engine/storage/storage.port.ts';
import {
  claim,
  commitOne,
  end,
  entry,
  execution,
  executionId,
  nextDueAt,
  numbers,
  register,
  release,
  type StorageCase,
  same,
  starting,
  T0,
  WORKER,
} from './context.ts';

const limit = (rule: Partial<FlowLimit>): FlowLimit => ({ name: 'orders', key: 'a', max: 1, since: 1, ...rule });
const started = (number: number, limits: readonly FlowLimit[], startBy?: number, createdAt = T0) =>
  execution(number, { seed: String(number).padStart(32, '0'), limits, startBy, createdAt });

const begin = (storage: Storage, number: number, rule: Partial<FlowLimit>, createdAt = T0) =>
  commitOne(storage, starting(started(number, [limit(rule)], undefined, createdAt)));

function queue(
  storage: Storage,
  number: number,
  rule: Partial<FlowLimit>,
  startBy?: number,
): Promise<CommitResult | undefined> {
  const start = started(number, [limit(rule)], startBy);
  const release = { status: 'queued', dueAt: T0 } as const;
  return commitOne(storage, { executionId: start.id, epoch: 0, start, steps: [], release });
}

/** What is claimed, and that of it which is to be cancelled. */
async function claimed(storage: Storage, now = T0): Promise<readonly [readonly number[], readonly number[]]> {
  const found = await claim(storage, { now });
  return [numbers(found), numbers(found.filter(({ cancelRequested }) => cancelRequested))];
}
const ends = (storage: Storage, number: number, epoch = 1) =>
  commitOne(storage, { ...entry(number, { end: end() }), epoch });
const isOpen = async (storage: Storage, number: number) =>
  (await storage.executions.get(executionId(number)))?.status ?? 'unknown';

export function limitRuleCases(it: StorageCase): void {
  it('limits: `queued` bounds how many wait for a slot; a start that is stored already is not one too many', async (storage) => {
    await register(storage);
    const rule = { queued: 2 };
    same(await begin(storage, 1, rule), 'stored', 'the first begins');
    same(await begin(storage, 2, rule), 'slots-taken', 'the second does not');
    same([await queue(storage, 2, rule), await queue(storage, 3, rule)], ['stored', 'stored'], 'two are queued');
    same([await queue(storage, 4, rule), await begin(storage, 4, rule)], ['queue-full', 'queue-full'], 'a third');
    same([await queue(storage, 3, rule), await begin(storage, 1, rule)], ['stored', 'stored'], 'repeated');
    same(await isOpen(storage, 4), 'unknown', 'the third');
    await ends(storage, 1);
    same(await claimed(storage), [[2], []], 'claimed after the end');
    same(await queue(storage, 4, rule), 'stored', 'the third, when one has begun');
  });

  it('limits: `refuse` queues only what has a free slot', async (storage) => {
    await register(storage);
    const rule = { over: 'refuse', queued: 0, max: 2 } as const;
    same([await queue(storage, 1, rule), await queue(storage, 2, rule)], ['stored', 'stored'], 'for two slots');
    same([await queue(storage, 3, rule), await begin(storage, 3, rule)], ['queue-full', 'queue-full'], 'a third');
    same(await claimed(storage), [[1, 2], []], 'claimed');
    same(await begin(storage, 3, rule), 'queue-full', 'while both are held');
    await ends(storage, 1);
    same(await begin(storage, 3, rule), 'stored', 'after an end');
  });

  it('limits: `keep-newest` cancels the oldest of those that wait', async (storage) => {
    await register(storage);
    const rule = { over: 'keep-newest', queued: 1 } as const;
    await begin(storage, 1, rule);
    await queue(storage, 2, rule);
    same(await queue(storage, 3, rule), 'stored', 'the newest');
    same(await claimed(storage), [[2], [2]], 'claimed, without a slot, to be cancelled');
    await ends(storage, 2);
    await queue(storage, 4, rule);
    same(await claimed(storage), [[3], [3]], 'the next one');
    await ends(storage, 3);
    await ends(storage, 1);
    same(await claimed(storage), [[4], []], 'the newest begins');
  });

  it('limits: `keep-oldest` cancels what is started while enough wait', async (storage) => {
    await register(storage);
    const rule = { over: 'keep-oldest', queued: 1 } as const;
    await begin(storage, 1, rule);
    await queue(storage, 2, rule);
    same(await queue(storage, 3, rule), 'stored', 'one more');
    same(await claimed(storage), [[3], [3]], 'claimed, to be cancelled');
    await ends(storage, 3);
    await ends(storage, 1);
    same(await claimed(storage), [[2], []], 'the oldest begins');
  });

  it('limits: `cancel-running` cancels the oldest, whether they run, wait or are queued', async (storage) => {
    await register(storage);
    const rule = { over: 'cancel-running', max: 1 } as const;
    await begin(storage, 1, rule);
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 90_000 });
    same(await begin(storage, 2, rule), 'stored', 'the second begins while the first waits');
    same(await claimed(storage), [[1], [1]], 'the first is to be cancelled, and needs no slot');
    await ends(storage, 1, 2);
    same(await queue(storage, 3, rule), 'stored', 'the third');
    same((await storage.executions.poll(WORKER, [])).cancelRequested, [executionId(2)], 'cancelled while it runs');
    same(await claimed(storage), [[], []], 'claimed while the second still runs');
    same(await queue(storage, 4, rule), 'stored', 'the fourth');
    same(await claimed(storage), [[3], [3]], 'the third is to be cancelled');
    await ends(storage, 2);
    same(await claimed(storage), [[4], []], 'the newest begins');
  });

  it('limits: `hold` keeps the slot while an execution waits, and it continues without another one', async (storage) => {
    await register(storage);
    const rule = { hold: true } as const;
    await begin(storage, 1, rule);
    await queue(storage, 2, rule);
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 100 });
    same(await claimed(storage), [[], []], 'claimed while it waits');
    same(await claimed(storage, T0 + 100), [[1], []], 'claimed when it is due');
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 200 }, { epoch: 2 });
    same(await claimed(storage, T0 + 150), [[], []], 'claimed while it waits again');
    same(await claimed(storage, T0 + 200), [[1], []], 'claimed when it is due again');
    await ends(storage, 1, 3);
    same(await claimed(storage, T0 + 200), [[2], []], 'claimed after its end');
  });

  it('limits: under a rate, no more begin within its period than it allows, and waits use none of it', async (storage) => {
    await register(storage);
    const rule = { name: 'rate/orders', max: 2, period: 1000 };
    same([await begin(storage, 1, rule), await begin(storage, 2, rule)], ['stored', 'stored'], 'two begin');
    same(await begin(storage, 3, rule), 'slots-taken', 'a third');
    for (const number of [3, 4, 5]) await queue(storage, number, rule);
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 10 });
    same(await claimed(storage, T0 + 500), [[1], []], 'claimed within the period: only what has begun');
    same(await nextDueAt(storage), T0 + 1000, 'when more may begin');
    same(await claimed(storage, T0 + 1000), [[3, 4], []], 'claimed after the period');
    same(await claimed(storage, T0 + 1999), [[], []], 'claimed within the next one');
    same(await claimed(storage, T0 + 2000), [[5], []], 'claimed after it');
    same(await begin(storage, 6, rule, T0 + 2100), 'stored', 'begun with what is left');
    same(await begin(storage, 7, rule, T0 + 2200), 'slots-taken', 'one more');
  });

  it('limits: `burst` of a rate lets that many begin together, and then one at a time', async (storage) => {
    await register(storage);
    const rule = { name: 'rate/orders', max: 10, period: 1000, burst: 2 };
    for (const number of [1, 2, 3, 4]) await queue(storage, number, rule);
    same(await claimed(storage), [[1, 2], []], 'claimed together');
    same(await claimed(storage, T0 + 99), [[], []], 'claimed too early');
    same(await claimed(storage, T0 + 100), [[3], []], 'claimed after a tenth');
    same(await claimed(storage, T0 + 199), [[], []], 'claimed too early again');
    same(await claimed(storage, T0 + 200), [[4], []], 'claimed after another tenth');
  });

  it('limits: what waits for a rate is not lost when a process with a slower clock claims', async (storage) => {
    await register(storage);
    const rule = { name: 'rate/orders', max: 1, period: 1000 };
    for (const number of [1, 2]) await queue(storage, number, rule);
    same(await claimed(storage), [[1], []], 'claimed first');
    const { version } = execution(2);
    same(numbers(await claim(storage, { now: T0 + 1000, excludeVersions: [version] })), [], 'claimed by a faster one');
    same(await claimed(storage, T0 + 500), [[], []], 'claimed by a slower one');
    same(await claimed(storage, T0 + 1000), [[2], []], 'claimed then');
  });

  it('limits: keys that share a rate take turns when more may begin', async (storage) => {
    await register(storage);
    const shared = limit({ name: 'rate/bank', key: '', max: 1, period: 1000 });
    for (const number of [1, 2, 3]) {
      const start = started(number, [limit({ key: `k${number}`, max: 5 }), shared]);
      const release = { status: 'queued', dueAt: T0 } as const;
      await commitOne(storage, { executionId: start.id, epoch: 0, start, steps: [], release });
    }
    const found: number[] = [];
    for (let ms = 0; ms <= 2000; ms += 250) found.push(...(await claimed(storage, T0 + ms))[0]);
    same(found, [1, 2, 3], 'claimed, one each second');
  });

  it('takeSlot, freeSlot: a step has a slot besides executions, until it gives it back or nobody holds its execution any more', async (storage) => {
    await register(storage);
    const { executions } = storage;
    const bank = limit({ name: 'shared/bank', key: '', max: 2 });
    const step = (number: number, key = 'flow[0]') => ({ executionId: executionId(number), key });
    for (const number of [1, 2]) await commitOne(storage, starting(started(number, [])));
    same(await executions.takeSlot(bank, step(9), T0), false, 'of an unknown execution');
    same(await executions.takeSlot(bank, step(1), T0), true, 'the first');
    same(await executions.takeSlot(bank, step(1), T0), true, 'the first again');
    same(await executions.takeSlot(bank, step(1, 'flow[0].foreach[1].steps[0]'), T0), true, 'another step of it');
    same(await executions.takeSlot(bank, step(2), T0), false, 'a third');
    same(await executions.takeSlot(bank, step(1), T0), true, 'the first again, while it is full');
    same(await executions.takeSlot({ ...bank, key: 'b' }, step(2), T0), true, 'one with another key');
    same(
      await begin(storage, 3, { name: 'shared/bank', key: '', max: 2 }),
      'slots-taken',
      'an execution under the limit',
    );
    await queue(storage, 3, { name: 'shared/bank', key: '', max: 2 });
    same(await claimed(storage), [[], []], 'claimed');
    await executions.freeSlot(bank, step(1));
    same(await claimed(storage), [[3], []], 'claimed when a slot is given back');
    same(await executions.takeSlot(bank, step(2), T0), false, 'while the execution has it');
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 9000 });
    same(await executions.takeSlot(bank, step(2), T0), true, 'when the other step has lost its worker');
  });

  it('closeLimits: nothing begins under a rate with that key before the instant, also if it was not known; an earlier one changes nothing', async (storage) => {
    await register(storage);
    const rule = { name: 'rate/orders', max: 9, period: 1000 };
    await begin(storage, 1, rule);
    await begin(storage, 2, { ...rule, key: 'b' });
    await storage.executions.closeLimits([limit({ ...rule, key: 'new' }), limit(rule)], T0 + 5000);
    await storage.executions.closeLimits([limit(rule)], T0 + 3000);
    same(await begin(storage, 3, rule), 'slots-taken', 'one with the key');
    await queue(storage, 3, rule);
    same(await begin(storage, 4, { ...rule, key: 'b' }), 'stored', 'one with another key');
    same(await begin(storage, 5, { ...rule, key: 'new' }), 'slots-taken', 'one with a key that was not known');
    same((await storage.executions.limitWaits(executionId(3), T0 + 100)).length, 1, 'what it waits for');
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 10 });
    same(await claimed(storage, T0 + 4999), [[1], []], 'claimed before: only what has begun');
    same(await nextDueAt(storage), T0 + 5000, 'when more may begin');
    same(await claimed(storage, T0 + 5000), [[3], []], 'claimed then');
  });

  it('limits: an execution that has not begun at `startBy` leaves its queue, and needs no slot', async (storage) => {
    await register(storage);
    await begin(storage, 1, {});
    await queue(storage, 2, {}, T0 + 1000);
    await queue(storage, 3, {}, T0 + 2000);
    same([await claimed(storage, T0 + 999), await nextDueAt(storage)], [[[], []], T0 + 1000], 'before');
    same(await claimed(storage, T0 + 1000), [[2], []], 'claimed at that instant');
    await ends(storage, 2);
    await ends(storage, 1);
    same(await claimed(storage, T0 + 1500), [[3], []], 'the next one begins');
    await release(storage, 3, { status: 'waiting', dueAt: T0 + 9000 });
    same(await claimed(storage, T0 + 2000), [[], []], 'one that has begun is left alone');
  });

  it('limitWaits: the limits without a free slot, and the position in the queue', async (storage) => {
    await register(storage);
    const waits = (number: number, now = T0) => storage.executions.limitWaits(executionId(number), now);
    await begin(storage, 1, {});
    await queue(storage, 2, {});
    await queue(storage, 3, {});
    same(await waits(2), [{ name: 'orders', key: 'a', position: 1, since: T0 }], 'the first in the queue');
    same(await waits(3), [{ name: 'orders', key: 'a', position: 2, since: T0 }], 'the second');
    same([await waits(1), await waits(9)], [[], []], 'one that is held, and one that is unknown');
    await ends(storage, 1);
    same(await waits(2), [], 'when a slot is free');
    const rate = { name: 'rate/mails', max: 1, period: 1000 };
    await begin(storage, 4, rate);
    await queue(storage, 5, rate);
    same(await waits(5), [{ name: 'rate/mails', key: 'a', position: 1, since: T0 }], 'for a rate');
    same(await waits(5, T0 + 1000), [], 'when more may begin');
  });

  it('putLimits: a number for all keys counts at once, unless that of a key is newer', async (storage) => {
    await register(storage);
    for (const number of [1, 2, 3, 4]) await queue(storage, number, { since: 100 });
    for (const number of [11, 12]) await queue(storage, number, { since: 100, key: 'b' });
    same((await claimed(storage))[0], [1, 11], 'with one slot for each key');
    await storage.executions.putLimits([limit({ key: '', max: 2, since: 200 })]);
    same((await claimed(storage))[0], [2, 12], 'with two');
    await storage.executions.putLimits([limit({ key: '', max: 9, since: 150 })]);
    await queue(storage, 5, { since: 100, max: 9 });
    same((await claimed(storage))[0], [], 'an older process changes nothing');
    await queue(storage, 6, { since: 300, max: 3 });
    same((await claimed(storage))[0], [3], 'the newer number of a key');
    same(await begin(storage, 7, { since: 100, key: 'c' }), 'stored', 'the first of a key that is new');
    same(await begin(storage, 8, { since: 100, key: 'c' }), 'stored', 'the second');
    same(await begin(storage, 9, { since: 100, key: 'c' }), 'slots-taken', 'the third');
  });

  it('limits: an execution that waits needs no slot to be cancelled', async (storage) => {
    await register(storage);
    await begin(storage, 1, {});
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 9000 });
    same(await begin(storage, 2, {}), 'stored', 'the second takes the slot');
    await storage.executions.requestCancel(executionId(1), T0 + 1, end({ status: 'cancelled' }));
    same(await claimed(storage, T0 + 1), [[1], [1]], 'claimed while the second runs');
  });
}
