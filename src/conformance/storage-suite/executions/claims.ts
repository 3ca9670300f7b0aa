/** Storage suite: claims. A worker receives what is due, and each execution goes to one worker only. */

import {
  accept,
  claim,
  commitOne,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  nextDueAt,
  numbers,
  OTHER,
  register,
  release,
  STRANGER,
  type StorageCase,
  same,
  starting,
  step,
  T0,
  WORKER,
  workerId,
} from '../context.ts';

export function claimCases(it: StorageCase): void {
  it('claim: returns nothing if nothing is free', async (storage) => {
    await register(storage);
    same(await claim(storage), [], 'in an empty store');
    await accept(storage, execution(1));
    await accept(storage, execution(2));
    await commitOne(storage, entry(2, { end: end() }));
    same(await claim(storage), [], 'with an execution that is held and one that has ended');
  });

  it('claim: a queued execution begins under epoch 1, and comes back unchanged', async (storage) => {
    await register(storage);
    const queued = execution(1, {
      trigger: { type: 'webhook' },
      input: { list: [1, { deep: null }] },
      deadlineAt: T0 + 90_000,
      retryOf: executionId(0),
    });
    await enqueue(storage, queued);
    same(
      await claim(storage, { now: T0 + 40 }),
      [
        {
          execution: queued,
          epoch: 1,
          startedAt: T0 + 40,
          begun: false,
          recoveries: 0,
          blame: 0,
          cancelRequested: false,
          signals: 0,
          resumedAt: T0 + 40,
        },
      ],
      'claimed',
    );
    const record = await storage.executions.get(executionId(1));
    same([record?.status, record?.startedAt], ['running', T0 + 40], 'status and `startedAt`');
    same(await commitOne(storage, entry(1, { steps: [step('flow[0]')] })), 'stored', 'commit under epoch 1');
    same(await claim(storage), [], 'claimed again');
  });

  it('claim: an execution that has begun keeps `startedAt`, and `begun` is true', async (storage) => {
    await accept(storage, execution(1));
    await enqueue(storage, execution(2));
    await claim(storage, { now: T0 + 40 });
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 50 });
    await release(storage, 2, { status: 'running', dueAt: T0 + 50 });
    const claimed = await claim(storage, { now: T0 + 5000 });
    same(
      claimed
        .map(({ execution: { id }, epoch, startedAt, begun }) => ({ id, epoch, startedAt, begun }))
        .sort((a, b) => (a.id < b.id ? -1 : 1)),
      [
        { id: executionId(1), epoch: 2, startedAt: T0 + 1, begun: true },
        { id: executionId(2), epoch: 2, startedAt: T0 + 40, begun: true },
      ],
      'claimed',
    );
    same((await storage.executions.get(executionId(2)))?.startedAt, T0 + 40, '`startedAt` in the record');
  });

  it('claim: returns what is due at `now`, and nothing that is due later', async (storage) => {
    await register(storage);
    for (const number of [1, 2, 3]) await enqueue(storage, execution(number), T0 + number * 10);
    same(numbers(await claim(storage, { now: T0 + 9 })), [], 'before the first');
    same(numbers(await claim(storage, { now: T0 + 20 })), [1, 2], 'at the second');
    same(numbers(await claim(storage, { now: T0 + 29 })), [], 'before the third');
    same(numbers(await claim(storage, { now: T0 + 1e12 })), [3], 'long after');
  });

  it('claim: returns executions that have been due for a long time, also since instant 0', async (storage) => {
    await register(storage);
    await enqueue(storage, execution(1), T0 - 1e11);
    await enqueue(storage, execution(2), 0);
    same(await nextDueAt(storage), 0, 'due');
    same(numbers(await claim(storage, { now: T0 })), [1, 2], 'claimed');
  });

  it('claim: returns at most `limit` executions, and the rest with later claims', async (storage) => {
    await register(storage);
    for (let number = 0; number < 25; number++) await enqueue(storage, execution(number));
    const sizes: number[] = [];
    const all: number[] = [];
    for (let times = 0; times < 4; times++) {
      const claimed = numbers(await claim(storage, { limit: 10 }));
      sizes.push(claimed.length);
      all.push(...claimed);
    }
    same(sizes, [10, 10, 5, 0], 'sizes');
    same(new Set(all).size, 25, 'different executions');
  });

  it('claim: leaves out the versions in `excludeVersions`', async (storage) => {
    await register(storage);
    for (const [number, version] of ['a', 'b', 'c', 'a'].entries())
      await enqueue(storage, execution(number, { version }));
    same(numbers(await claim(storage, { excludeVersions: ['a', 'c', 'unknown', "it's"] })), [1], 'without a and c');
    same(numbers(await claim(storage, { excludeVersions: ['a', 'b', 'c'] })), [], 'without a, b and c');
    same(numbers(await claim(storage, { excludeVersions: ['c'] })), [0, 3], 'without c');
    same(numbers(await claim(storage)), [2], 'the rest');
  });

  it('claim: many executions of excluded versions do not hide one that the worker can run', async (storage) => {
    await register(storage);
    const batch = Array.from({ length: 500 }, (_, number) =>
      starting(execution(number, { version: number === 499 ? 'new' : `old-${number % 7}` }), {
        release: { status: 'queued', dueAt: T0 + number },
      }),
    );
    await storage.commit(WORKER, batch);
    const excludeVersions = Array.from({ length: 7 }, (_, i) => `old-${i}`);
    same(numbers(await claim(storage, { limit: 5, excludeVersions })), [499], 'claimed');
  });

  it('claim: an unregistered worker receives nothing, and nothing changes', async (storage) => {
    await register(storage);
    await enqueue(storage, execution(1));
    same(await claim(storage, {}, STRANGER), [], 'claimed');
    same((await storage.executions.get(executionId(1)))?.status, 'queued', 'status');
    same((await claim(storage))[0]?.epoch, 1, 'epoch of the first claim');
  });

  it('claim: within an ensemble, the execution with the earliest `dueAt` comes first', async (storage) => {
    await register(storage);
    const dueAts = [50, 10, 70, 30, 90, 20, 80, 40, 60];
    for (const [number, dueAt] of dueAts.entries()) await enqueue(storage, execution(number), T0 + dueAt);
    const order: (readonly number[])[] = [];
    for (let times = 0; times < 3; times++) {
      const claimed = numbers(await claim(storage, { limit: 3 }));
      order.push(claimed.map((number) => dueAts[number] as number).sort((a, b) => a - b));
    }
    same(
      order,
      [
        [10, 20, 30],
        [40, 50, 60],
        [70, 80, 90],
      ],
      'order',
    );
  });

  it('claim: concurrent claims return each execution once', async (storage) => {
    await register(storage);
    const batch = Array.from({ length: 200 }, (_, number) =>
      starting(execution(number), { release: { status: 'queued', dueAt: T0 } }),
    );
    await storage.commit(WORKER, batch);
    const claims = await Promise.all(Array.from({ length: 25 }, () => claim(storage, { limit: 10 })));
    const all = claims.flatMap(numbers);
    same([all.length, new Set(all).size], [200, 200], 'claimed, and different ones');
    same([...new Set(claims.flat().map(({ epoch }) => epoch))], [1], 'epochs');
  });

  it('claim: an execution that becomes free twice at one instant is returned once', async (storage) => {
    await accept(storage, execution(1));
    const given = { status: 'waiting', dueAt: T0 + 100 } as const;
    await release(storage, 1, given);
    await storage.executions.requestCancel(executionId(1), T0 + 50, end({ status: 'cancelled' }));
    await claim(storage, { now: T0 + 60, limit: 1 });
    await storage.workers.unregister(WORKER, T0 + 100);
    await register(storage);
    const claimed = await claim(storage, { now: T0 + 1000 });
    same(
      claimed.map(({ epoch }) => epoch),
      [3],
      'epochs',
    );
  });
}

/** For stores on which several workers may work at the same time. */
export function sharedClaimCases(it: StorageCase): void {
  it('claim: with several concurrent workers, each execution goes to one of them', async (storage) => {
    const workers = Array.from({ length: 4 }, (_, i) => workerId(i + 1));
    for (const worker of workers) await register(storage, worker);
    const batch = Array.from({ length: 200 }, (_, number) =>
      starting(execution(number, { ensemble: `e-${number % 3}` }), { release: { status: 'queued', dueAt: T0 } }),
    );
    await storage.commit(WORKER, batch);
    const claims = await Promise.all(
      Array.from({ length: 40 }, (_, i) => claim(storage, { limit: 7 }, workers[i % workers.length])),
    );
    const all = claims.flatMap(numbers);
    same([all.length, new Set(all).size], [200, 200], 'claimed, and different ones');
    for (const [i, claimed] of claims.entries()) {
      const first = numbers(claimed)[0];
      if (first === undefined) continue;
      const answers = await Promise.all(workers.map((worker) => commitOne(storage, entry(first), worker)));
      same(
        answers.map((answer, at) => (answer === 'stored' ? at : -1)).filter((at) => at >= 0),
        [i % workers.length],
        'index of the worker that may write',
      );
    }
  });

  it('claim: another worker continues what a worker has released', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [step('flow[0]')] }));
    await release(storage, 1, { status: 'running', dueAt: T0 + 10 });
    await register(storage, OTHER);
    const [claimed] = await claim(storage, {}, OTHER);
    same([claimed?.epoch, claimed?.begun, claimed?.recoveries], [2, true, 0], 'epoch, begun, recoveries');
    const last = entry(1, { epoch: 2, steps: [step('flow[1]')], end: end({ agents: 2 }) });
    same(await commitOne(storage, last, OTHER), 'stored', 'its end');
  });
}
