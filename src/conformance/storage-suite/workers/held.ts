/** Storage suite: what a worker holds. */

import {
  accept,
  claim,
  commitOne,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  LEASE,
  OTHER,
  register,
  release,
  STRANGER,
  type StorageCase,
  same,
  starting,
  T0,
  WORKER,
} from '../context.ts';

const byId = (held: readonly { readonly executionId: string; readonly epoch: number }[]) =>
  [...held].sort((a, b) => (a.executionId < b.executionId ? -1 : 1));

export function heldCases(it: StorageCase): void {
  it('listHeld: returns nothing for a worker that holds nothing or is unknown', async (storage) => {
    same(await storage.workers.listHeld(STRANGER), [], 'of an unknown worker');
    await accept(storage, execution(1));
    await enqueue(storage, execution(2));
    same(await storage.workers.listHeld(STRANGER), [], 'of an unknown worker, with held and queued executions');
    await release(storage, 1, { status: 'waiting', dueAt: T0 });
    same(await storage.workers.listHeld(WORKER), [], 'of a worker that has released everything');
  });

  it('listHeld: returns what the worker started and claimed, with epochs, until it ends or is released', async (storage) => {
    for (const number of [1, 2, 3, 4]) await accept(storage, execution(number));
    for (const number of [5, 6]) await enqueue(storage, execution(number), T0 + number);
    await release(storage, 2, { status: 'running', dueAt: T0 + 1 });
    await claim(storage, { limit: 2 });
    await release(storage, 3, { status: 'waiting', dueAt: T0 + 1e9 });
    await commitOne(storage, entry(4, { end: end() }));
    same(
      byId(await storage.workers.listHeld(WORKER)),
      [
        { executionId: executionId(1), epoch: 1 },
        { executionId: executionId(2), epoch: 2 },
        { executionId: executionId(5), epoch: 1 },
      ],
      'held',
    );
    await storage.workers.unregister(WORKER, T0 + 10);
    same(await storage.workers.listHeld(WORKER), [], 'held by a worker that has unregistered');
  });

  it('listHeld: returns all of many executions', async (storage) => {
    await register(storage);
    const batch = Array.from({ length: 400 }, (_, number) => starting(execution(number)));
    await storage.commit(WORKER, batch);
    same((await storage.workers.listHeld(WORKER)).length, 400, 'held');
  });
}

/** For stores on which several workers may work at the same time. */
export function sharedHeldCases(it: StorageCase): void {
  it('listHeld: leaves out what other workers hold, and what was freed or claimed since', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2), OTHER);
    same(
      await storage.workers.listHeld(OTHER),
      [{ executionId: executionId(2), epoch: 1 }],
      'held by the second worker',
    );
    await storage.workers.renew(OTHER, T0 + 2 * LEASE);
    await storage.workers.reclaimFromDead(OTHER, T0 + LEASE);
    same(await storage.workers.listHeld(WORKER), [], 'held by a worker that was considered dead');
    await claim(storage, {}, OTHER);
    same(
      byId(await storage.workers.listHeld(OTHER)),
      [
        { executionId: executionId(1), epoch: 2 },
        { executionId: executionId(2), epoch: 1 },
      ],
      'held by the worker that claimed it',
    );
  });
}

/** For stores that outlive their handle. */
export function reopenedHeldCases(it: StorageCase): void {
  it('reopen: what a worker holds is held by it, under the same epochs', async (storage, reopen) => {
    for (const number of [1, 2]) await accept(storage, execution(number));
    await release(storage, 1, { status: 'running', dueAt: T0 });
    await claim(storage);
    await accept(storage, execution(3));
    await commitOne(storage, entry(3, { end: end() }));
    const next = await reopen();
    const expected = [
      { executionId: executionId(1), epoch: 2 },
      { executionId: executionId(2), epoch: 1 },
    ];
    same(byId(await next.workers.listHeld(WORKER)), expected, 'held');
  });
}
