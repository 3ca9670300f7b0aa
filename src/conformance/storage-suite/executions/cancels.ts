/** Storage suite: requests to cancel an execution, in each of its statuses. */

import type { Storage } from '../../../engine/storage/storage.port.ts';
import {
  accept,
  claim,
  commitOne,
  end,
  enqueue,
  entry,
  everything,
  execution,
  executionId,
  LEASE,
  nextDueAt,
  OTHER,
  register,
  release,
  type StorageCase,
  same,
  T0,
  UNTROUBLED,
  WORKER,
} from '../context.ts';

const error = { code: 'CANCELLED', message: 'it was cancelled' };
const cancelled = end({ status: 'cancelled', output: null, error, finishedAt: T0 + 50, duration: 49, agents: 0 });

const ask = (storage: Storage, number: number, now = T0 + 50) =>
  storage.executions.requestCancel(executionId(number), now, cancelled);

export function cancelCases(it: StorageCase): void {
  it('requestCancel: the answer for an unknown execution is undefined, and none is created', async (storage) => {
    await register(storage);
    same(await ask(storage, 1), undefined, 'answer');
    same(await storage.executions.get(executionId(1)), undefined, 'record');
  });

  it('requestCancel: a queued execution ends at once with `end`', async (storage) => {
    const { seed, ...accepted } = execution(1);
    await register(storage);
    await enqueue(storage, { seed, ...accepted });
    same(await ask(storage, 1), 'cancelled', 'answer');
    const expected = {
      ...accepted,
      status: 'cancelled',
      error,
      finishedAt: T0 + 50,
      duration: 49,
      tags: [],
      metrics: { totalDuration: 49, agents: 0, queued: 49, waited: 0 },
      ...UNTROUBLED,
      agents: [],
    };
    same(await storage.executions.get(executionId(1)), expected, 'record');
    same(await claim(storage), [], 'claimed');
    same(await storage.executions.countQueued(10), 0, 'queued');
    same(await storage.executions.findEnded([executionId(1)]), [executionId(1)], 'ended');
    same(await nextDueAt(storage), undefined, 'due');
  });

  it('requestCancel: an execution that was released as queued ends at once', async (storage) => {
    await register(storage);
    await enqueue(storage, execution(1));
    await claim(storage);
    await release(storage, 1, { status: 'queued', dueAt: T0 });
    same(await ask(storage, 1), 'cancelled', 'answer');
    same((await storage.executions.get(executionId(1)))?.finishedAt, T0 + 50, 'end');
    same(await claim(storage), [], 'claimed');
  });

  for (const status of ['waiting', 'running'] as const) {
    it(`requestCancel: an execution that was released as ${status} is due at once, and its claim carries the request`, async (storage) => {
      await accept(storage, execution(1));
      await release(storage, 1, { status, dueAt: T0 + 86_400_000 });
      same(await ask(storage, 1), status, 'answer');
      same((await storage.executions.get(executionId(1)))?.status, status, 'status');
      same(await nextDueAt(storage), T0 + 50, 'due');
      const claimed = await claim(storage, { now: T0 + 50 });
      same(
        claimed.map(({ cancelRequested, epoch }) => [cancelRequested, epoch]),
        [[true, 2]],
        'cancel requested, and epoch',
      );
      same(await commitOne(storage, entry(1, { epoch: 2, end: cancelled })), 'stored', 'its end');
    });
  }

  it('requestCancel: an execution that is already due stays due', async (storage) => {
    await accept(storage, execution(1));
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 20 });
    await ask(storage, 1);
    same((await claim(storage, { now: T0 + 50 })).length, 1, 'claimed');
  });

  it('requestCancel: `poll` reports the request to the worker that holds the execution', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2));
    same(await ask(storage, 1), 'running', 'answer');
    same((await storage.executions.poll(WORKER, [])).cancelRequested, [executionId(1)], 'cancel requested');
    same(await claim(storage), [], 'claimed');
    same(await commitOne(storage, entry(1, { end: cancelled })), 'stored', "its worker's end");
    same((await storage.executions.get(executionId(1)))?.status, 'cancelled', 'status');
  });

  it('poll: reports no request for an execution that the worker no longer holds', async (storage) => {
    for (const number of [1, 2]) await accept(storage, execution(number));
    for (const number of [1, 2]) await ask(storage, number);
    await commitOne(storage, entry(1, { end: end() }));
    await release(storage, 2, { status: 'waiting', dueAt: T0 + 100 });
    same((await storage.executions.poll(WORKER, [])).cancelRequested, [], 'cancel requested');
  });

  it('poll: reports many requests at once', async (storage) => {
    await register(storage);
    for (let number = 0; number < 50; number++) await accept(storage, execution(number));
    for (let number = 0; number < 50; number += 2) await ask(storage, number);
    const { cancelRequested } = await storage.executions.poll(WORKER, []);
    same(
      [...new Set(cancelRequested)].sort(),
      Array.from({ length: 25 }, (_, i) => executionId(2 * i)),
      'cancel requested',
    );
  });

  it('requestCancel: an execution that has ended keeps its end, and the answer is its status', async (storage) => {
    const statuses = ['completed', 'failed', 'timed_out', 'cancelled'] as const;
    for (const [number, status] of statuses.entries()) {
      await accept(storage, execution(number));
      await commitOne(storage, entry(number, { end: end({ status }) }));
    }
    const before = await everything(storage, 0, 1, 2, 3);
    for (const [number, status] of statuses.entries()) same(await ask(storage, number), status, 'answer');
    same(await everything(storage, 0, 1, 2, 3), before, 'what is stored');
  });

  it('requestCancel: a repeated request changes nothing, in any status', async (storage) => {
    for (const number of [1, 2]) await accept(storage, execution(number));
    await enqueue(storage, execution(3));
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 5000 });
    const first = [await ask(storage, 1), await ask(storage, 2), await ask(storage, 3)];
    const before = await everything(storage, 1, 2, 3);
    const later = { ...cancelled, finishedAt: T0 + 900, duration: 899 };
    const again = [];
    for (const number of [1, 2, 3])
      again.push(await storage.executions.requestCancel(executionId(number), T0 + 900, later));
    same(again, first, 'answers');
    same(await everything(storage, 1, 2, 3), before, 'what is stored');
    same((await claim(storage, { now: T0 + 50 })).length, 1, 'claimed');
  });

  for (const status of ['waiting', 'running', 'queued'] as const) {
    it(`requestCancel: a request is not lost if the execution is released as ${status} before its worker polled`, async (storage) => {
      await accept(storage, execution(1));
      await ask(storage, 1);
      await release(storage, 1, { status, dueAt: T0 + 86_400_000 });
      const claimed = await claim(storage, { now: T0 + 60 });
      same(
        claimed.map(({ cancelRequested }) => cancelRequested),
        [true],
        'cancel requested',
      );
    });
  }

  it('requestCancel: a request outlives the worker that held the execution', async (storage) => {
    await accept(storage, execution(1));
    await ask(storage, 1);
    await storage.workers.unregister(WORKER, T0 + 100);
    await register(storage, WORKER, T0 + 100);
    same((await claim(storage))[0]?.cancelRequested, true, 'cancel requested');
  });

  it('requestCancel: affects only the execution that it names', async (storage) => {
    await register(storage);
    for (const number of [1, 2]) await enqueue(storage, execution(number));
    await accept(storage, execution(3));
    await release(storage, 3, { status: 'waiting', dueAt: T0 });
    await ask(storage, 1);
    const claimed = await claim(storage);
    same(
      claimed.map(({ cancelRequested }) => cancelRequested),
      [false, false],
      'cancel requested',
    );
  });

  it('requestCancel: with a concurrent claim, the execution ends at once or its worker sees the request', async (storage) => {
    await register(storage);
    for (let number = 0; number < 20; number++) await enqueue(storage, execution(number));
    const [claimed, ...answers] = await Promise.all([
      claim(storage),
      ...Array.from({ length: 20 }, async (_, number) => ask(storage, number)),
    ]);
    const { cancelRequested } = await storage.executions.poll(WORKER, []);
    const reported = new Set([
      ...cancelRequested,
      ...claimed.filter((one) => one.cancelRequested).map((one) => one.execution.id),
    ]);
    const claimedIds = new Set(claimed.map((one) => one.execution.id));
    for (const [number, answer] of answers.entries()) {
      const id = executionId(number);
      same([answer, claimedIds.has(id)], answer === 'cancelled' ? ['cancelled', false] : ['running', true], 'answer');
      if (answer === 'running') same(reported.has(id), true, 'whether its worker sees the request');
    }
  });
}

/** For stores on which several workers may work at the same time. */
export function sharedCancelCases(it: StorageCase): void {
  it('requestCancel: only the worker that holds the execution sees the request', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2), OTHER);
    await ask(storage, 1);
    await ask(storage, 2);
    same((await storage.executions.poll(WORKER, [])).cancelRequested, [executionId(1)], 'what the first worker sees');
    same((await storage.executions.poll(OTHER, [])).cancelRequested, [executionId(2)], 'what the second worker sees');
  });

  it('requestCancel: the worker that claims the execution of a dead worker sees the request', async (storage) => {
    await accept(storage, execution(1));
    await register(storage, OTHER, T0 + LEASE);
    await ask(storage, 1);
    await storage.workers.reclaimFromDead(OTHER, T0 + LEASE);
    same((await claim(storage, {}, OTHER))[0]?.cancelRequested, true, 'cancel requested');
  });
}
