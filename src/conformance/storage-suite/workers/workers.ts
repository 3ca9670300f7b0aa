/** Storage suite: workers. Their registration, their leases, and what happens when they unregister or are replaced. */

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
  numbers,
  OTHER,
  register,
  release,
  STRANGER,
  type StorageCase,
  same,
  step,
  stepKeys,
  T0,
  WORKER,
} from '../context.ts';

export function workerCases(it: StorageCase): void {
  it('register: a worker that registers again keeps what it holds, and sees requests that it has not seen', async (storage) => {
    await accept(storage, execution(1));
    await storage.executions.requestCancel(executionId(1), T0 + 10, end({ status: 'cancelled' }));
    await register(storage, WORKER, T0 + 20);
    const poll = await storage.executions.poll(WORKER, []);
    same([poll.nextDueAt, poll.cancelRequested], [undefined, [executionId(1)]], 'due, and cancel requested');
    same(await commitOne(storage, entry(1)), 'stored', 'its commit');
  });

  it('register: takes a lease without an end', async (storage) => {
    await storage.workers.register(WORKER, { now: T0, leaseUntil: Number.MAX_SAFE_INTEGER });
    await accept(storage, execution(1));
    same(await storage.workers.renew(WORKER, Number.MAX_SAFE_INTEGER), true, 'renewed');
    same((await storage.workers.reclaimFromDead(WORKER, T0 + 1e12)).freed, 0, 'freed');
    same(await commitOne(storage, entry(1)), 'stored', 'its commit');
  });

  it('renew: returns whether the worker is known', async (storage) => {
    same(await storage.workers.renew(WORKER, T0 + LEASE), false, 'before it registered');
    await register(storage);
    same(await storage.workers.renew(WORKER, T0 + 2 * LEASE), true, 'after it registered');
    same(await storage.workers.renew(STRANGER, T0 + LEASE), false, 'a worker that never registered');
    await storage.workers.unregister(WORKER, T0);
    same(await storage.workers.renew(WORKER, T0 + LEASE), false, 'after it unregistered');
  });

  it('renew: does not register an unknown worker', async (storage) => {
    await storage.workers.renew(WORKER, T0 + LEASE);
    await enqueue(storage, execution(1));
    same(await claim(storage), [], 'claimed');
  });

  it('unregister: what the worker held is free, due at once, without a recovery', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [step('flow[0]')] }));
    await storage.workers.unregister(WORKER, T0 + 100);
    same((await storage.executions.get(executionId(1)))?.status, 'running', 'status');
    same(await nextDueAt(storage), T0 + 100, 'due');
    await register(storage, WORKER, T0 + 100);
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
        resumedAt: T0 + 100,
      },
      'claimed',
    );
    same(await stepKeys(storage, 1), ['flow[0]'], 'steps');
  });

  it('unregister: queued, waiting and ended executions stay unchanged', async (storage) => {
    for (const number of [1, 2]) await accept(storage, execution(number));
    await enqueue(storage, execution(3), T0 + 5000);
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 6000 });
    await commitOne(storage, entry(2, { end: end() }));
    const before = await everything(storage, 1, 2, 3);
    await storage.workers.unregister(WORKER, T0 + 100);
    same(await everything(storage, 1, 2, 3), before, 'what is stored');
  });

  it('unregister: frees all of many executions', async (storage) => {
    await register(storage);
    for (let number = 0; number < 60; number++) await accept(storage, execution(number));
    await storage.workers.unregister(WORKER, T0 + 100);
    await register(storage);
    same((await claim(storage)).length, 60, 'claimed');
  });

  it('unregister: does nothing for an unknown worker, and the second time', async (storage) => {
    await storage.workers.unregister(WORKER, T0);
    await accept(storage, execution(1));
    await storage.workers.unregister(STRANGER, T0 + 50);
    same(await commitOne(storage, entry(1)), 'stored', 'a commit of the worker that holds it');
    await storage.workers.unregister(WORKER, T0 + 100);
    const before = await everything(storage, 1);
    await storage.workers.unregister(WORKER, T0 + 200);
    same(await everything(storage, 1), before, 'what is stored');
  });

  it('unregister: a worker that has unregistered claims nothing until it registers again', async (storage) => {
    await register(storage);
    await enqueue(storage, execution(1));
    await storage.workers.unregister(WORKER, T0);
    same(await claim(storage), [], 'claimed');
    same((await storage.executions.get(executionId(1)))?.status, 'queued', 'status');
    await register(storage);
    same((await claim(storage)).length, 1, 'claimed after registering again');
  });

  it('reclaimFromDead: the calling worker is never considered dead, and without other workers nothing is freed', async (storage) => {
    await accept(storage, execution(1));
    same((await storage.workers.reclaimFromDead(WORKER, T0 + 10 * LEASE)).freed, 0, 'freed');
    same(await commitOne(storage, entry(1)), 'stored', 'its commit');
  });
}

/** For stores that have a single worker. */
export function successionCases(it: StorageCase): void {
  it('register: what the worker before it held is free, due at once, with one more recovery', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [step('flow[0]')] }));
    await enqueue(storage, execution(2), T0 + 5000);
    await register(storage, OTHER, T0 + 100);
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
        resumedAt: T0 + 100,
      },
      'claimed',
    );
    same(await stepKeys(storage, 1), ['flow[0]'], 'steps');
    same(numbers(await claim(storage, {}, OTHER)), [2], 'claimed later');
  });

  it('register: the worker before it is unknown from then on', async (storage) => {
    await accept(storage, execution(1));
    await register(storage, OTHER, T0 + 100);
    same(await commitOne(storage, entry(1, { end: end() })), 'fenced', 'a late end');
    same(await storage.workers.renew(WORKER, T0 + LEASE), false, 'renewed');
    same(await claim(storage), [], 'claimed');
    same(
      await storage.executions.purge({ worker: WORKER, before: T0, limit: 10 }),
      undefined,
      'a purge by the worker before it',
    );
    same(
      (await storage.executions.purge({ worker: OTHER, before: T0, limit: 10 }))?.deleted,
      0,
      'a purge by the new worker',
    );
  });
}
