/** Storage suite: what a worker asks between its writes. What is due, what is queued, what has ended, and what it holds. */

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
  register,
  release,
  type StorageCase,
  same,
  starting,
  T0,
  WORKER,
} from '../context.ts';

export function pollCases(it: StorageCase): void {
  it('poll: an empty store reports nothing', async (storage) => {
    await register(storage);
    same(await storage.executions.poll(WORKER, []), { cancelRequested: [], signalled: [] }, 'poll');
    same('nextDueAt' in (await storage.executions.poll(WORKER, [])), false, 'whether `nextDueAt` is present');
  });

  it('poll: `nextDueAt` is the earliest `dueAt` of all free executions, whatever their status', async (storage) => {
    for (const number of [1, 2]) await accept(storage, execution(number));
    await enqueue(storage, execution(3), T0 + 300);
    same(await nextDueAt(storage), T0 + 300, 'with a queued execution');
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 200 });
    same(await nextDueAt(storage), T0 + 200, 'with a waiting execution');
    await release(storage, 2, { status: 'running', dueAt: T0 + 100 });
    same(await nextDueAt(storage), T0 + 100, 'with an execution that was released as running');
    await enqueue(storage, execution(4, { ensemble: 'others' }), T0 + 50);
    same(await nextDueAt(storage), T0 + 50, 'with an execution of another ensemble');
  });

  it('poll: `nextDueAt` moves to the next execution once the earliest is claimed or has ended', async (storage) => {
    await register(storage);
    for (const number of [1, 2, 3]) await enqueue(storage, execution(number), T0 + number);
    await claim(storage, { limit: 1 });
    same(await nextDueAt(storage), T0 + 2, 'after a claim');
    await storage.executions.requestCancel(executionId(2), T0, end({ status: 'cancelled' }));
    same(await nextDueAt(storage), T0 + 3, 'after an end');
    await claim(storage);
    same(await nextDueAt(storage), undefined, 'when all are claimed');
  });

  it('poll: `nextDueAt` leaves out the versions in `excludeVersions`', async (storage) => {
    await register(storage);
    for (const [number, version] of ['a', 'b', 'c', 'b'].entries())
      await enqueue(storage, execution(number, { version }), T0 + number);
    same(await nextDueAt(storage, ['a']), T0 + 1, 'without a');
    same(await nextDueAt(storage, ['a', 'b', 'unknown', "it's"]), T0 + 2, 'without a and b');
    same(await nextDueAt(storage, ['a', 'b', 'c']), undefined, 'without a, b and c');
    same(await nextDueAt(storage, ['b']), T0, 'without b');
  });

  it('countQueued: counts queued executions, and nothing else', async (storage) => {
    same(await storage.executions.countQueued(10), 0, 'in an empty store');
    for (const number of [1, 2, 3]) await accept(storage, execution(number));
    await release(storage, 1, { status: 'waiting', dueAt: T0 });
    await release(storage, 2, { status: 'running', dueAt: T0 });
    await commitOne(storage, entry(3, { end: end() }));
    same(await storage.executions.countQueued(10), 0, 'with executions of other statuses');
    for (const number of [4, 5, 6]) await enqueue(storage, execution(number), T0 + 1e9);
    same(await storage.executions.countQueued(10), 3, 'with executions that are not due yet');
  });

  it('countQueued: follows starts, claims, releases, cancellations, and a repeated start', async (storage) => {
    await register(storage);
    const counts: number[] = [];
    const count = async () => counts.push(await storage.executions.countQueued(100));
    for (const number of [1, 2, 3, 4]) await enqueue(storage, execution(number), T0 + number);
    await count();
    await claim(storage, { limit: 2 });
    await count();
    await release(storage, 1, { status: 'queued', dueAt: T0 });
    await count();
    await release(storage, 2, { status: 'waiting', dueAt: T0 });
    await count();
    await storage.executions.requestCancel(executionId(3), T0, end({ status: 'cancelled' }));
    await count();
    await enqueue(storage, execution(4), T0 + 4);
    await count();
    await claim(storage);
    await count();
    await commitOne(storage, entry(4, { end: end() }));
    await storage.workers.unregister(WORKER, T0);
    await count();
    same(counts, [4, 2, 3, 3, 2, 2, 0, 0], 'counts');
  });

  it('countQueued: counts up to `limit`', async (storage) => {
    await register(storage);
    const batch = Array.from({ length: 40 }, (_, number) =>
      starting(execution(number, { ensemble: `e-${number % 3}` }), { release: { status: 'queued', dueAt: T0 } }),
    );
    await storage.commit(WORKER, batch);
    const counts: number[] = [];
    for (const limit of [1, 39, 40, 41, 10_000]) counts.push(await storage.executions.countQueued(limit));
    same(counts, [1, 39, 40, 40, 40], 'counts');
  });

  it('countAccepted: counts the executions from an instant on, whatever their status is, up to a limit', async (storage) => {
    same(await storage.executions.countAccepted(T0, 10), 0, 'in an empty store');
    await register(storage);
    for (const number of [1, 2, 3]) await accept(storage, execution(number));
    await commitOne(storage, entry(1, { end: end() }));
    for (const number of [4, 5]) await enqueue(storage, execution(number));
    const counts: number[] = [];
    for (const since of [T0, T0 + 3, T0 + 6]) counts.push(await storage.executions.countAccepted(since, 10));
    same(counts, [5, 3, 0], 'counts');
    same(await storage.executions.countAccepted(T0, 2), 2, 'up to a limit');
  });

  it('countOpen: counts the executions that have not ended, by status, with the instant of the oldest', async (storage) => {
    const none = { count: 0 };
    const all = { queued: none, running: none, waiting: none, paused: none, unresolved: none };
    same(await storage.executions.countOpen(10), all, 'in an empty store');
    await register(storage);
    for (const number of [1, 2, 3, 4, 5, 6]) await accept(storage, execution(number));
    await release(storage, 2, { status: 'running', dueAt: T0 });
    await release(storage, 3, { status: 'waiting', dueAt: T0 + 1e9 });
    await release(storage, 4, { status: 'waiting', dueAt: T0 });
    await commitOne(storage, entry(5, { end: end() }));
    await commitOne(storage, entry(6, { end: end({ status: 'failed' }) }));
    for (const number of [7, 8, 9]) await enqueue(storage, execution(number), T0 + 1e9);
    const counted = {
      ...{ running: { count: 2, oldestAt: T0 + 1 }, waiting: { count: 2, oldestAt: T0 + 3 }, paused: none },
      unresolved: { count: 1, oldestAt: T0 + 6 },
    };
    same(await storage.executions.countOpen(10), { queued: { count: 3, oldestAt: T0 + 7 }, ...counted }, 'all');
    const { queued, running } = await storage.executions.countOpen(1);
    same(
      [queued, running],
      [
        { count: 1, oldestAt: T0 + 7 },
        { count: 1, oldestAt: T0 + 1 },
      ],
      'up to a limit',
    );
  });

  it('findEnded: returns the ids that have ended or are unknown, and no others', async (storage) => {
    for (const number of [1, 2, 3, 4]) await accept(storage, execution(number));
    await enqueue(storage, execution(5));
    await enqueue(storage, execution(6));
    await commitOne(storage, entry(1, { end: end() }));
    await commitOne(storage, entry(2, { end: end({ status: 'failed' }) }));
    await release(storage, 3, { status: 'waiting', dueAt: T0 });
    await storage.executions.requestCancel(executionId(6), T0, end({ status: 'cancelled' }));
    const ended = await storage.executions.findEnded([1, 2, 3, 4, 5, 6, 7].map(executionId));
    same([...ended].sort(), [1, 2, 6, 7].map(executionId), 'ended');
  });

  it('findEnded: takes no ids, and 1,000 ids', async (storage) => {
    await register(storage);
    await storage.commit(
      WORKER,
      Array.from({ length: 500 }, (_, number) => starting(execution(number))),
    );
    await storage.commit(
      WORKER,
      Array.from({ length: 250 }, (_, number) => entry(number, { end: end() })),
    );
    const ended = await storage.executions.findEnded(Array.from({ length: 1000 }, (_, number) => executionId(number)));
    const expected = Array.from({ length: 1000 }, (_, number) => number).filter((n) => n < 250 || n >= 500);
    same([...ended].sort(), expected.map(executionId), 'ended');
    same(await storage.executions.findEnded([]), [], 'with no ids');
  });
}
