/** Storage suite: how many executions of a caller may be held at once. */

import type { CommitEntry } from '../../engine/execution/stored-execution.ts';
import type { Storage } from '../../engine/storage/storage.port.ts';
import {
  claim,
  commitOne,
  end,
  entry,
  execution,
  executionId,
  LEASE,
  nextDueAt,
  OTHER,
  register,
  release,
  type StorageCase,
  same,
  signal,
  starting,
  T0,
  WORKER,
  workerId,
} from './context.ts';

const dueAt = (instant: number) => ({ release: { status: 'queued', dueAt: instant } }) as const;
const QUEUED = dueAt(T0);

/** A start that takes one of `slots` slots. */
const limited = (number: number, slots: number, more: Partial<CommitEntry> = {}, account = 'tok_1') =>
  starting(execution(number, { seed: String(number).padStart(32, '0') }), {
    charge: { account, period: '2026-01', slots },
    ...more,
  });

const running = async (storage: Storage, account = 'tok_1') => storage.usage.running(account);
const idsOf = (claimed: readonly { readonly execution: { readonly id: string } }[]) =>
  claimed.map(({ execution: { id } }) => id);

/** Starts executions that the worker holds. */
async function hold(storage: Storage, numbers: readonly number[], slots: number, account?: string): Promise<void> {
  for (const number of numbers)
    same(await commitOne(storage, limited(number, slots, {}, account)), 'stored', `start ${number}`);
}

async function enqueueLimited(storage: Storage, numbers: readonly number[], slots: number, account?: string) {
  for (const number of numbers)
    same(await commitOne(storage, limited(number, slots, dueAt(T0 + number), account)), 'stored', `queue ${number}`);
}

export function slotCases(it: StorageCase): void {
  it('running: is 0 for an unknown caller, and counts what is held and takes a slot', async (storage) => {
    await register(storage);
    same(await running(storage), 0, 'before');
    await hold(storage, [1, 2], 5);
    await hold(storage, [3], 5, 'ä"b');
    await enqueueLimited(storage, [4], 5);
    same(
      await commitOne(storage, starting(execution(5), { charge: { account: 'tok_1', period: '2026-01' } })),
      'stored',
      '',
    );
    same([await running(storage), await running(storage, 'ä"b')], [2, 1], 'held');
  });

  it('commit: a start that no slot is free for stores nothing and is not charged; queued, it is stored', async (storage) => {
    await register(storage);
    await hold(storage, [1, 2], 2);
    same(await commitOne(storage, limited(3, 2)), 'slots-taken', 'the third');
    same(await storage.executions.get(executionId(3)), undefined, 'the refused execution');
    same(await storage.usage.charged('tok_1', '2026-01'), 2, 'charged');
    same(await commitOne(storage, limited(1, 2)), 'stored', 'the first again');
    same(await commitOne(storage, limited(3, 2, {}, 'tok_2')), 'stored', 'another caller');
    same(await commitOne(storage, limited(4, 2, QUEUED)), 'stored', 'queued');
    same(await commitOne(storage, limited(5, 1, QUEUED)), 'stored', 'queued after the plan was lowered');
    same(await running(storage), 2, 'held');
  });

  it('commit: over the quota and without a slot, a start is over the quota', async (storage) => {
    await register(storage);
    const both = (number: number) =>
      limited(number, 1, { charge: { account: 'tok_1', period: '2026-01', limit: 1, slots: 1 } });
    same(await commitOne(storage, both(1)), 'stored', 'the first');
    same(await commitOne(storage, both(2)), 'quota-exceeded', 'the second');
  });

  it('commit: an end and each kind of release give the slot back, once', async (storage) => {
    await register(storage);
    await hold(storage, [1, 2, 3, 4], 4);
    same(await commitOne(storage, entry(1, { end: end() })), 'stored', 'the end');
    same(await commitOne(storage, entry(1, { end: end() })), 'stored', 'the end again');
    same(await running(storage), 3, 'after the end');
    await release(storage, 2, { status: 'waiting', dueAt: T0 + 90_000 });
    await release(storage, 3, { status: 'running', dueAt: T0 + 90_000 });
    await release(storage, 4, { status: 'queued', dueAt: T0 + 90_000 });
    same(await running(storage), 0, 'after the releases');
    same(await commitOne(storage, limited(5, 4, { end: end() })), 'stored', 'a start with its end');
    same(await running(storage), 0, 'after it');
  });

  it('slots: a claim takes as many executions of a caller as it has free slots, the longest due first, and passes over the others', async (storage) => {
    await register(storage);
    await hold(storage, [1], 3);
    await enqueueLimited(storage, [2, 3, 4, 5], 3);
    await enqueueLimited(storage, [6, 7], 1, 'tok_2');
    await commitOne(storage, starting(execution(8), dueAt(T0 + 1)));
    const claimed = idsOf(await claim(storage));
    same([...claimed].sort(), [2, 3, 6, 8].map(executionId), 'claimed');
    same([await running(storage), await running(storage, 'tok_2')], [3, 1], 'held');
    same(await claim(storage), [], 'claimed while all slots are taken');
    same(await nextDueAt(storage), undefined, 'what is due next');
    same((await storage.executions.poll(WORKER, [])).slotsTaken, true, 'slotsTaken');
    same(await commitOne(storage, entry(3, { end: end() })), 'stored', 'an end');
    same(await nextDueAt(storage), T0 + 4, 'what is due next after an end');
    same(idsOf(await claim(storage)), [executionId(4)], 'claimed after an end');
  });

  it('slots: with a claim of 1 at a time, a caller without a free slot hides no other caller', async (storage) => {
    await register(storage);
    await hold(storage, [1], 1);
    await enqueueLimited(storage, [2, 3, 4], 1);
    await enqueueLimited(storage, [5], 1, 'tok_2');
    same(idsOf(await claim(storage, { limit: 1 })), [executionId(5)], 'claimed');
    same(await claim(storage, { limit: 1 }), [], 'claimed again');
  });

  it('slots: of many due executions of one caller, a claim takes exactly as many as it has free slots', async (storage) => {
    await register(storage);
    await enqueueLimited(
      storage,
      Array.from({ length: 40 }, (_, i) => i),
      5,
    );
    await enqueueLimited(storage, [50, 51], 5, 'tok_2');
    same((await claim(storage, { limit: 10 })).length, 7, 'claimed');
    same([await running(storage), await running(storage, 'tok_2')], [5, 2], 'held');
  });

  it('slots: an execution that waited needs a slot to continue, and is claimed when one is free', async (storage) => {
    await register(storage);
    await hold(storage, [1], 1);
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 10 });
    await hold(storage, [2], 1);
    same(await claim(storage), [], 'while the other one runs');
    await storage.signals.put(signal(1, 1));
    same(await claim(storage), [], 'with a signal');
    await commitOne(storage, entry(2, { end: end() }));
    same(idsOf(await claim(storage)), [executionId(1)], 'after that');
  });

  it('slots: `take` returns undefined without a free slot, and takes one', async (storage) => {
    await register(storage);
    await enqueueLimited(storage, [1, 2], 1);
    same((await storage.executions.take(WORKER, executionId(1), T0)) !== undefined, true, 'the first');
    same(await storage.executions.take(WORKER, executionId(2), T0), undefined, 'the second');
    same(await running(storage), 1, 'held');
  });

  it('slots: what was cancelled before it began never had a slot', async (storage) => {
    await register(storage);
    await hold(storage, [1], 1);
    await enqueueLimited(storage, [2, 3], 1);
    await storage.executions.requestCancel(executionId(2), T0 + 5, end({ status: 'cancelled' }));
    await storage.executions.requestCancel(executionId(1), T0 + 5, end({ status: 'cancelled' }));
    same(await running(storage), 1, 'the one that runs keeps its slot until it ends');
    await commitOne(storage, entry(1, { end: end({ status: 'cancelled' }) }));
    same(idsOf(await claim(storage)), [executionId(3)], 'claimed');
  });

  it('commit: many concurrent starts take exactly the slots', async (storage) => {
    await register(storage);
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, number) => commitOne(storage, limited(number, 5))),
    );
    same(answers.filter((answer) => answer === 'stored').length, 5, 'stored');
    same(answers.filter((answer) => answer === 'slots-taken').length, 55, 'refused');
    same([await running(storage), await storage.usage.charged('tok_1', '2026-01')], [5, 5], 'held and charged');
  });

  it('commit: in a batch, starts take slots in their order, and the others of the batch are stored', async (storage) => {
    await register(storage);
    const batch = [
      limited(1, 2),
      limited(2, 1, {}, 'tok_2'),
      limited(3, 2),
      limited(4, 2),
      limited(5, 1, QUEUED, 'tok_2'),
    ];
    same(await storage.commit(WORKER, batch), ['stored', 'stored', 'stored', 'slots-taken', 'stored'], 'answers');
    const ends = [entry(1, { end: end() }), entry(2, { end: end() }), entry(3, { end: end() })];
    same(await storage.commit(WORKER, ends), ['stored', 'stored', 'stored'], 'ends');
    same([await running(storage), await running(storage, 'tok_2')], [0, 0], 'held');
  });
}

/** For stores on which several workers may work at the same time. */
export function sharedSlotCases(it: StorageCase): void {
  it('slots: a worker that is unregistered, or whose lease ends, gives its slots back', async (storage) => {
    await register(storage);
    await register(storage, OTHER);
    await hold(storage, [1, 2], 2);
    await storage.workers.reclaimFromDead(OTHER, T0 + LEASE - 1, T0);
    same(await running(storage), 2, 'before the end of the lease');
    await storage.workers.renew(OTHER, T0 + 10 * LEASE);
    await storage.workers.reclaimFromDead(OTHER, T0 + LEASE, T0);
    same(await running(storage), 0, 'after it');
    const now = T0 + 2 * LEASE;
    same((await claim(storage, { now }, OTHER)).length, 2, 'claimed by the other worker');
    same(await running(storage), 2, 'held again');
    await storage.workers.unregister(OTHER, now);
    same(await running(storage), 0, 'after the other has unregistered');
  });

  it('slots: claims and ends of several workers at once never take more than the slots, and leave none taken', async (storage) => {
    const workers = [1, 2, 3, 4].map(workerId);
    for (const worker of workers) await register(storage, worker);
    await enqueueLimited(
      storage,
      Array.from({ length: 40 }, (_, i) => i),
      5,
    );
    let most = 0;
    let left = 40;
    const work = async (worker: string) => {
      for (let round = 0; left > 0 && round < 400; round++) {
        const claimed = await claim(storage, { limit: 3 }, worker);
        most = Math.max(most, await running(storage));
        left -= claimed.length;
        for (const { execution: accepted, epoch } of claimed)
          await commitOne(storage, { executionId: accepted.id, epoch, steps: [], end: end() }, worker);
      }
    };
    await Promise.all(workers.map(work));
    same(left, 0, 'executions that are left');
    same(most <= 5, true, `${most} held at once is at most 5`);
    same(await running(storage), 0, 'held at the end');
  });
}
