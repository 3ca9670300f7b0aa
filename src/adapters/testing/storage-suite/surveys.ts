/** The storage suite's cases of what an owner asks between its writes: what it holds, what is due, queued, and ended. */

import {
  accept,
  claim,
  commitOne,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  join,
  LEASE,
  nextDueAt,
  OTHER,
  OWNER,
  release,
  STRANGER,
  type StorageCase,
  same,
  starting,
  T0,
} from './context.ts';

export function surveyCases(it: StorageCase): void {
  it('survey: an empty store has nothing due, and nothing to stop', async (storage) => {
    await join(storage);
    same(await storage.survey(OWNER, []), { cancelRequested: [], signalled: [] }, 'survey');
    same('nextDueAt' in (await storage.survey(OWNER, [])), false, 'whether `nextDueAt` is there');
  });

  it('survey: the earliest of all that is free, whatever its status', async (storage) => {
    for (const number of [1, 2]) await accept(storage, execution(number));
    await enqueue(storage, execution(3), T0 + 300);
    same(await nextDueAt(storage), T0 + 300, 'one that is queued');
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 200 });
    same(await nextDueAt(storage), T0 + 200, 'one that waits');
    await release(storage, 2, { status: 'running', dueAt: T0 + 100 });
    same(await nextDueAt(storage), T0 + 100, 'one that another is to go on with');
    await enqueue(storage, execution(4, { ensemble: 'others' }), T0 + 50);
    same(await nextDueAt(storage), T0 + 50, 'one of another ensemble');
  });

  it('survey: the next one, once the earliest is claimed or has ended', async (storage) => {
    await join(storage);
    for (const number of [1, 2, 3]) await enqueue(storage, execution(number), T0 + number);
    await claim(storage, { limit: 1 });
    same(await nextDueAt(storage), T0 + 2, 'after a claim');
    await storage.requestCancel(executionId(2), T0, end({ status: 'cancelled' }));
    same(await nextDueAt(storage), T0 + 3, 'after an end');
    await claim(storage);
    same(await nextDueAt(storage), undefined, 'when all are claimed');
  });

  it('survey: leaves out the versions in `except`', async (storage) => {
    await join(storage);
    for (const [number, version] of ['a', 'b', 'c', 'b'].entries())
      await enqueue(storage, execution(number, { version }), T0 + number);
    same(await nextDueAt(storage, ['a']), T0 + 1, 'without a');
    same(await nextDueAt(storage, ['a', 'b', 'unknown', "it's"]), T0 + 2, 'without a and b');
    same(await nextDueAt(storage, ['a', 'b', 'c']), undefined, 'without any');
    same(await nextDueAt(storage, ['b']), T0, 'without b');
  });

  it('countQueued: what is queued, and nothing else', async (storage) => {
    same(await storage.countQueued(10), 0, 'in an empty store');
    for (const number of [1, 2, 3]) await accept(storage, execution(number));
    await release(storage, 1, { status: 'waiting', dueAt: T0 });
    await release(storage, 2, { status: 'running', dueAt: T0 });
    await commitOne(storage, entry(3, { end: end() }));
    same(await storage.countQueued(10), 0, 'beside others');
    for (const number of [4, 5, 6]) await enqueue(storage, execution(number), T0 + 1e9);
    same(await storage.countQueued(10), 3, 'due or not');
  });

  it('countQueued: through start, claim, release, a request to stop, and a start again', async (storage) => {
    await join(storage);
    const counts: number[] = [];
    const count = async () => counts.push(await storage.countQueued(100));
    for (const number of [1, 2, 3, 4]) await enqueue(storage, execution(number), T0 + number);
    await count();
    await claim(storage, { limit: 2 });
    await count();
    await release(storage, 1, { status: 'queued', dueAt: T0 });
    await count();
    await release(storage, 2, { status: 'waiting', dueAt: T0 });
    await count();
    await storage.requestCancel(executionId(3), T0, end({ status: 'cancelled' }));
    await count();
    await enqueue(storage, execution(4), T0 + 4);
    await count();
    await claim(storage);
    await count();
    await commitOne(storage, entry(4, { end: end() }));
    await storage.leave(OWNER, T0);
    await count();
    same(counts, [4, 2, 3, 3, 2, 2, 0, 0], 'counts');
  });

  it('countQueued: no further than `limit`', async (storage) => {
    await join(storage);
    const batch = Array.from({ length: 40 }, (_, number) =>
      starting(execution(number, { ensemble: `e-${number % 3}` }), { release: { status: 'queued', dueAt: T0 } }),
    );
    await storage.commit(OWNER, batch);
    const counts: number[] = [];
    for (const limit of [1, 39, 40, 41, 10_000]) counts.push(await storage.countQueued(limit));
    same(counts, [1, 39, 40, 40, 40], 'counts');
  });

  it('findEnded: those that have ended or are unknown, and no other', async (storage) => {
    for (const number of [1, 2, 3, 4]) await accept(storage, execution(number));
    await enqueue(storage, execution(5));
    await enqueue(storage, execution(6));
    await commitOne(storage, entry(1, { end: end() }));
    await commitOne(storage, entry(2, { end: end({ status: 'failed' }) }));
    await release(storage, 3, { status: 'waiting', dueAt: T0 });
    await storage.requestCancel(executionId(6), T0, end({ status: 'cancelled' }));
    const ended = await storage.findEnded([1, 2, 3, 4, 5, 6, 7].map(executionId));
    same([...ended].sort(), [1, 2, 6, 7].map(executionId), 'ended');
  });

  it('findEnded: of no ids, and of a thousand', async (storage) => {
    await join(storage);
    await storage.commit(
      OWNER,
      Array.from({ length: 500 }, (_, number) => starting(execution(number))),
    );
    await storage.commit(
      OWNER,
      Array.from({ length: 250 }, (_, number) => entry(number, { end: end() })),
    );
    const ended = await storage.findEnded(Array.from({ length: 1000 }, (_, number) => executionId(number)));
    const expected = Array.from({ length: 1000 }, (_, number) => number).filter((n) => n < 250 || n >= 500);
    same([...ended].sort(), expected.map(executionId), 'ended');
    same(await storage.findEnded([]), [], 'of none');
  });
}

const byId = (held: readonly { readonly executionId: string; readonly epoch: number }[]) =>
  [...held].sort((a, b) => (a.executionId < b.executionId ? -1 : 1));

export function heldCases(it: StorageCase): void {
  it('listHeld: nothing, of an owner that holds nothing or is not known', async (storage) => {
    same(await storage.listHeld(STRANGER), [], 'of one that is not known');
    await accept(storage, execution(1));
    await enqueue(storage, execution(2));
    same(await storage.listHeld(STRANGER), [], 'beside what others hold and what is free');
    await release(storage, 1, { status: 'waiting', dueAt: T0 });
    same(await storage.listHeld(OWNER), [], 'of one that gave all up');
  });

  it('listHeld: what the owner started and claimed, under their epochs, until it ends or is given up', async (storage) => {
    for (const number of [1, 2, 3, 4]) await accept(storage, execution(number));
    for (const number of [5, 6]) await enqueue(storage, execution(number), T0 + number);
    await release(storage, 2, { status: 'running', dueAt: T0 + 1 });
    await claim(storage, { limit: 2 });
    await release(storage, 3, { status: 'waiting', dueAt: T0 + 1e9 });
    await commitOne(storage, entry(4, { end: end() }));
    same(
      byId(await storage.listHeld(OWNER)),
      [
        { executionId: executionId(1), epoch: 1 },
        { executionId: executionId(2), epoch: 2 },
        { executionId: executionId(5), epoch: 1 },
      ],
      'held',
    );
    await storage.leave(OWNER, T0 + 10);
    same(await storage.listHeld(OWNER), [], 'held by one that has left');
  });

  it('listHeld: all of many', async (storage) => {
    await join(storage);
    const batch = Array.from({ length: 400 }, (_, number) => starting(execution(number)));
    await storage.commit(OWNER, batch);
    same((await storage.listHeld(OWNER)).length, 400, 'held');
  });
}

/** For stores on which several owners may work at once. */
export function rivalHeldCases(it: StorageCase): void {
  it('listHeld: what another owner holds is not listed, nor what was freed or claimed since', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2), OTHER);
    same(await storage.listHeld(OTHER), [{ executionId: executionId(2), epoch: 1 }], 'held by the other');
    await storage.renew(OTHER, T0 + 2 * LEASE);
    await storage.recover(OTHER, T0 + LEASE);
    same(await storage.listHeld(OWNER), [], 'held by one that was taken for dead');
    await claim(storage, {}, OTHER);
    same(
      byId(await storage.listHeld(OTHER)),
      [
        { executionId: executionId(1), epoch: 2 },
        { executionId: executionId(2), epoch: 1 },
      ],
      'held by who goes on',
    );
  });
}
