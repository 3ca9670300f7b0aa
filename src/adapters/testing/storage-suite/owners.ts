/** The storage suite's cases of owners: joining, leases, leaving, and taking others for dead. */

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
  numbers,
  OTHER,
  OWNER,
  release,
  STRANGER,
  type StorageCase,
  same,
  step,
  stepKeys,
  T0,
} from './context.ts';

export function ownerCases(it: StorageCase): void {
  it('join: again, an owner keeps what it holds, and hears of what it was not told', async (storage) => {
    await accept(storage, execution(1));
    await storage.requestCancel(executionId(1), T0 + 10, end({ status: 'cancelled' }));
    await join(storage, OWNER, T0 + 20);
    const survey = await storage.survey(OWNER, []);
    same([survey.nextDueAt, survey.cancelRequested], [undefined, [executionId(1)]], 'due, and asked to stop');
    same(await commitOne(storage, entry(1)), 'stored', 'its commit');
  });

  it('join: a lease without an end', async (storage) => {
    await storage.join(OWNER, { now: T0, leaseUntil: Number.MAX_SAFE_INTEGER });
    await accept(storage, execution(1));
    same(await storage.renew(OWNER, Number.MAX_SAFE_INTEGER), true, 'renewed');
    same((await storage.recover(OWNER, T0 + 1e12)).freed, 0, 'freed');
    same(await commitOne(storage, entry(1)), 'stored', 'its commit');
  });

  it('renew: says whether the owner is known', async (storage) => {
    same(await storage.renew(OWNER, T0 + LEASE), false, 'before it joined');
    await join(storage);
    same(await storage.renew(OWNER, T0 + 2 * LEASE), true, 'after');
    same(await storage.renew(STRANGER, T0 + LEASE), false, 'one that never joined');
    await storage.leave(OWNER, T0);
    same(await storage.renew(OWNER, T0 + LEASE), false, 'after it left');
  });

  it('renew: an owner that is not known is not made known by it', async (storage) => {
    await storage.renew(OWNER, T0 + LEASE);
    await enqueue(storage, execution(1));
    same(await claim(storage), [], 'claimed');
  });

  it('leave: what the owner holds is free, due at once, without a recovery', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [step('flow[0]')] }));
    await storage.leave(OWNER, T0 + 100);
    same((await storage.getExecution(executionId(1)))?.status, 'running', 'status');
    same(await nextDueAt(storage), T0 + 100, 'due');
    await join(storage, OWNER, T0 + 100);
    same(await claim(storage, { now: T0 + 99 }), [], 'claimed before');
    const [claimed] = await claim(storage, { now: T0 + 100 });
    same(
      claimed,
      {
        execution: execution(1),
        epoch: 2,
        startedAt: T0 + 1,
        begun: true,
        recoveries: 0,
        blame: 0,
        cancelRequested: false,
        signals: 0,
      },
      'claimed',
    );
    same(await stepKeys(storage, 1), ['flow[0]'], 'steps');
  });

  it('leave: queued, waiting and ended executions stay as they are', async (storage) => {
    for (const number of [1, 2]) await accept(storage, execution(number));
    await enqueue(storage, execution(3), T0 + 5000);
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 6000 });
    await commitOne(storage, entry(2, { end: end() }));
    const before = await everything(storage, 1, 2, 3);
    await storage.leave(OWNER, T0 + 100);
    same(await everything(storage, 1, 2, 3), before, 'what is stored');
  });

  it('leave: all of many executions are free', async (storage) => {
    await join(storage);
    for (let number = 0; number < 60; number++) await accept(storage, execution(number));
    await storage.leave(OWNER, T0 + 100);
    await join(storage);
    same((await claim(storage)).length, 60, 'claimed');
  });

  it('leave: one that is not known does nothing, and so does leaving again', async (storage) => {
    await storage.leave(OWNER, T0);
    await accept(storage, execution(1));
    await storage.leave(STRANGER, T0 + 50);
    same(await commitOne(storage, entry(1)), 'stored', 'a commit of who holds it');
    await storage.leave(OWNER, T0 + 100);
    const before = await everything(storage, 1);
    await storage.leave(OWNER, T0 + 200);
    same(await everything(storage, 1), before, 'what is stored');
  });

  it('leave: who has left claims nothing until it joins again', async (storage) => {
    await join(storage);
    await enqueue(storage, execution(1));
    await storage.leave(OWNER, T0);
    same(await claim(storage), [], 'claimed');
    same((await storage.getExecution(executionId(1)))?.status, 'queued', 'status');
    await join(storage);
    same((await claim(storage)).length, 1, 'claimed after joining again');
  });

  it('recover: who asks is not taken for dead, and nothing is freed where nobody else is', async (storage) => {
    await accept(storage, execution(1));
    same((await storage.recover(OWNER, T0 + 10 * LEASE)).freed, 0, 'freed');
    same(await commitOne(storage, entry(1)), 'stored', 'its commit');
  });
}

/** For stores that take one owner alone. */
export function successionCases(it: StorageCase): void {
  it('join: what the owner before it held is free, due at once, with one more recovery', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [step('flow[0]')] }));
    await enqueue(storage, execution(2), T0 + 5000);
    await join(storage, OTHER, T0 + 100);
    same(await claim(storage, { now: T0 + 99 }, OTHER), [], 'claimed before');
    const [claimed] = await claim(storage, { now: T0 + 100 }, OTHER);
    same(
      claimed,
      {
        execution: execution(1),
        epoch: 2,
        startedAt: T0 + 1,
        begun: true,
        recoveries: 1,
        blame: 0,
        cancelRequested: false,
        signals: 0,
      },
      'claimed',
    );
    same(await stepKeys(storage, 1), ['flow[0]'], 'steps');
    same(numbers(await claim(storage, {}, OTHER)), [2], 'claimed later');
  });

  it('join: the owner before it is known no more', async (storage) => {
    await accept(storage, execution(1));
    await join(storage, OTHER, T0 + 100);
    same(await commitOne(storage, entry(1, { end: end() })), 'fenced', 'a late end');
    same(await storage.renew(OWNER, T0 + LEASE), false, 'renewed');
    same(await claim(storage), [], 'claimed');
    same(await storage.purge({ owner: OWNER, before: T0, limit: 10 }), undefined, 'a purge by the one before');
    same((await storage.purge({ owner: OTHER, before: T0, limit: 10 }))?.deleted, 0, 'a purge by the new one');
  });
}
