/** The storage suite's cases of asking that an execution be stopped, in each of its statuses. */

import type { Storage } from '../../../engine/ports/storage.ts';
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
  join,
  LEASE,
  nextDueAt,
  OTHER,
  OWNER,
  release,
  type StorageCase,
  same,
  T0,
} from './context.ts';

const error = { code: 'CANCELLED', message: 'it was cancelled' };
const cancelled = end({ status: 'cancelled', output: null, error, finishedAt: T0 + 50, duration: 49, agents: 0 });

const ask = (storage: Storage, number: number, now = T0 + 50) =>
  storage.requestCancel(executionId(number), now, cancelled);

export function cancelCases(it: StorageCase): void {
  it('requestCancel: an unknown execution gives undefined, and there is none behind it', async (storage) => {
    await join(storage);
    same(await ask(storage, 1), undefined, 'answer');
    same(await storage.getExecution(executionId(1)), undefined, 'record');
  });

  it('requestCancel: one that is queued ends at once with `end`', async (storage) => {
    const { seed, ...accepted } = execution(1);
    await join(storage);
    await enqueue(storage, { seed, ...accepted });
    same(await ask(storage, 1), 'cancelled', 'answer');
    const expected = {
      ...accepted,
      status: 'cancelled',
      output: null,
      error,
      finishedAt: T0 + 50,
      duration: 49,
      metrics: { totalDuration: 49, agents: 0 },
      agents: [],
    };
    same(await storage.getExecution(executionId(1)), expected, 'record');
    same(await claim(storage), [], 'claimed');
    same(await storage.countQueued(10), 0, 'queued');
    same(await storage.findEnded([executionId(1)]), [executionId(1)], 'ended');
    same(await nextDueAt(storage), undefined, 'due');
  });

  it('requestCancel: one that was given back to the queue ends at once too', async (storage) => {
    await join(storage);
    await enqueue(storage, execution(1));
    await claim(storage);
    await release(storage, 1, { status: 'queued', dueAt: T0 });
    same(await ask(storage, 1), 'cancelled', 'answer');
    same((await storage.getExecution(executionId(1)))?.finishedAt, T0 + 50, 'end');
    same(await claim(storage), [], 'claimed');
  });

  for (const status of ['waiting', 'running'] as const) {
    it(`requestCancel: one that is free and ${status} is due at once, and whoever claims it is told`, async (storage) => {
      await accept(storage, execution(1));
      await release(storage, 1, { status, dueAt: T0 + 86_400_000 });
      same(await ask(storage, 1), status, 'answer');
      same((await storage.getExecution(executionId(1)))?.status, status, 'status');
      same(await nextDueAt(storage), T0 + 50, 'due');
      const claimed = await claim(storage, { now: T0 + 50 });
      same(
        claimed.map(({ cancelRequested, epoch }) => [cancelRequested, epoch]),
        [[true, 2]],
        'asked to stop, and epoch',
      );
      same(await commitOne(storage, entry(1, { epoch: 2, end: cancelled })), 'stored', 'its end');
    });
  }

  it('requestCancel: one that waits and is due already is not put off', async (storage) => {
    await accept(storage, execution(1));
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 20 });
    await ask(storage, 1);
    same((await claim(storage, { now: T0 + 50 })).length, 1, 'claimed');
  });

  it('requestCancel: of one that is held, its owner hears by `survey`', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2));
    same(await ask(storage, 1), 'running', 'answer');
    same((await storage.survey(OWNER, [])).cancelRequested, [executionId(1)], 'asked to stop');
    same(await claim(storage), [], 'claimed');
    same(await commitOne(storage, entry(1, { end: cancelled })), 'stored', "its owner's end");
    same((await storage.getExecution(executionId(1)))?.status, 'cancelled', 'status');
  });

  it('survey: tells of no execution that its owner holds no more', async (storage) => {
    for (const number of [1, 2]) await accept(storage, execution(number));
    for (const number of [1, 2]) await ask(storage, number);
    await commitOne(storage, entry(1, { end: end() }));
    await release(storage, 2, { status: 'waiting', dueAt: T0 + 100 });
    same((await storage.survey(OWNER, [])).cancelRequested, [], 'asked to stop');
  });

  it('survey: tells of many at once', async (storage) => {
    await join(storage);
    for (let number = 0; number < 50; number++) await accept(storage, execution(number));
    for (let number = 0; number < 50; number += 2) await ask(storage, number);
    const told = (await storage.survey(OWNER, [])).cancelRequested;
    same(
      [...new Set(told)].sort(),
      Array.from({ length: 25 }, (_, i) => executionId(2 * i)),
      'asked to stop',
    );
  });

  it('requestCancel: one that has ended keeps its end; its status is the answer', async (storage) => {
    const statuses = ['completed', 'failed', 'timed_out', 'cancelled'] as const;
    for (const [number, status] of statuses.entries()) {
      await accept(storage, execution(number));
      await commitOne(storage, entry(number, { end: end({ status }) }));
    }
    const before = await everything(storage, 0, 1, 2, 3);
    for (const [number, status] of statuses.entries()) same(await ask(storage, number), status, 'answer');
    same(await everything(storage, 0, 1, 2, 3), before, 'what is stored');
  });

  it('requestCancel: asking again changes nothing, in any status', async (storage) => {
    for (const number of [1, 2]) await accept(storage, execution(number));
    await enqueue(storage, execution(3));
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 5000 });
    const first = [await ask(storage, 1), await ask(storage, 2), await ask(storage, 3)];
    const before = await everything(storage, 1, 2, 3);
    const later = { ...cancelled, finishedAt: T0 + 900, duration: 899 };
    const again = [];
    for (const number of [1, 2, 3]) again.push(await storage.requestCancel(executionId(number), T0 + 900, later));
    same(again, first, 'answers');
    same(await everything(storage, 1, 2, 3), before, 'what is stored');
    same((await claim(storage, { now: T0 + 50 })).length, 1, 'claimed');
  });

  for (const status of ['waiting', 'running', 'queued'] as const) {
    it(`requestCancel: a request is not lost when the execution is given up as ${status} before its owner heard`, async (storage) => {
      await accept(storage, execution(1));
      await ask(storage, 1);
      await release(storage, 1, { status, dueAt: T0 + 86_400_000 });
      const claimed = await claim(storage, { now: T0 + 60 });
      same(
        claimed.map(({ cancelRequested }) => cancelRequested),
        [true],
        'asked to stop',
      );
    });
  }

  it('requestCancel: a request outlives the owner that it was meant for', async (storage) => {
    await accept(storage, execution(1));
    await ask(storage, 1);
    await storage.leave(OWNER, T0 + 100);
    await join(storage, OWNER, T0 + 100);
    same((await claim(storage))[0]?.cancelRequested, true, 'asked to stop');
  });

  it('requestCancel: of one, and of none beside it', async (storage) => {
    await join(storage);
    for (const number of [1, 2]) await enqueue(storage, execution(number));
    await accept(storage, execution(3));
    await release(storage, 3, { status: 'waiting', dueAt: T0 });
    await ask(storage, 1);
    const claimed = await claim(storage);
    same(
      claimed.map(({ cancelRequested }) => cancelRequested),
      [false, false],
      'asked to stop',
    );
  });

  it('requestCancel: beside a claim at the same time, it ends at once or its owner hears of it', async (storage) => {
    await join(storage);
    for (let number = 0; number < 20; number++) await enqueue(storage, execution(number));
    const [claimed, ...answers] = await Promise.all([
      claim(storage),
      ...Array.from({ length: 20 }, async (_, number) => ask(storage, number)),
    ]);
    const { cancelRequested } = await storage.survey(OWNER, []);
    const told = new Set([
      ...cancelRequested,
      ...claimed.filter((one) => one.cancelRequested).map((one) => one.execution.id),
    ]);
    const given = new Set(claimed.map((one) => one.execution.id));
    for (const [number, answer] of answers.entries()) {
      const id = executionId(number);
      same([answer, given.has(id)], answer === 'cancelled' ? ['cancelled', false] : ['running', true], 'answer');
      if (answer === 'running') same(told.has(id), true, 'whether its owner hears of it');
    }
  });
}

/** For stores on which several owners may work at once. */
export function sharedCancelCases(it: StorageCase): void {
  it('requestCancel: the owner that holds it hears of it, and no other', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2), OTHER);
    await ask(storage, 1);
    await ask(storage, 2);
    same((await storage.survey(OWNER, [])).cancelRequested, [executionId(1)], 'what the one hears');
    same((await storage.survey(OTHER, [])).cancelRequested, [executionId(2)], 'what the other hears');
  });

  it('requestCancel: who goes on after a death is told', async (storage) => {
    await accept(storage, execution(1));
    await join(storage, OTHER, T0 + LEASE);
    await ask(storage, 1);
    await storage.recover(OTHER, T0 + LEASE);
    same((await claim(storage, {}, OTHER))[0]?.cancelRequested, true, 'asked to stop');
  });
}
