/** Storage suite: the deletion of old executions, of everything that belongs to them, and by which worker. */

import type { Storage } from '../../../engine/storage/storage.port.ts';
import {
  accept,
  change,
  claim,
  commitOne,
  end,
  enqueue,
  entry,
  everything,
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
  step,
  T0,
  WORKER,
} from '../context.ts';

const DAY = 86_400_000;

/** Calls `purge` batch by batch until there is no next one. @returns the number of deleted executions per batch */
async function purgeAll(storage: Storage, before: number, limit: number, worker = WORKER): Promise<number[]> {
  const deleted: number[] = [];
  let after: string | undefined;
  for (let batches = 0; batches < 1000; batches++) {
    const found = await storage.executions.purge({ worker, before, limit, ...(after !== undefined && { after }) });
    if (!found) throw new Error('purge answered undefined to the worker that registered first');
    deleted.push(found.deleted);
    after = found.next;
    if (after === undefined) return deleted;
  }
  throw new Error('purge still returns `next` after 1,000 batches');
}

const sum = (all: readonly number[]) => all.reduce((total, one) => total + one, 0);

/** Stores executions that ended at these instants, each with an agent run and a decision. */
async function ended(storage: Storage, finishedAts: readonly number[]): Promise<void> {
  await register(storage);
  await storage.commit(
    WORKER,
    finishedAts.map((_, number) => starting(execution(number))),
  );
  await storage.commit(
    WORKER,
    finishedAts.map((finishedAt, number) =>
      entry(number, {
        steps: [step('flow[0]'), step('flow[1]', { name: '', note: true })],
        end: end({ finishedAt }),
      }),
    ),
  );
}

/** Nothing is left of the first execution, and another one can have its id. */
async function expectGone(storage: Storage): Promise<void> {
  const id = executionId(0);
  same(await storage.executions.get(id), undefined, 'record');
  same(await storage.executions.listSteps(id, { limit: 10, notes: true }), [], 'steps');
  same(await storage.executions.findEnded([id]), [id], 'ended or unknown');
  same(
    await storage.executions.requestCancel(id, T0, end({ status: 'cancelled' })),
    undefined,
    'answer to a cancel request',
  );
  same(await commitOne(storage, entry(0, { steps: [step('flow[0]')] })), 'fenced', 'answer to a late commit');
  await accept(storage, execution(0));
  same(await storage.executions.listSteps(id, { limit: 10, notes: true }), [], 'steps of a new execution with that id');
}

export function purgeCases(it: StorageCase): void {
  it('purge: an empty store has nothing to delete', async (storage) => {
    await register(storage);
    same(await purgeAll(storage, T0, 10), [0], 'deleted');
  });

  it('purge: deletes executions that ended before the instant, and none that ended at it or later', async (storage) => {
    await ended(storage, [T0 + 100, T0 + 99, T0 + 101, T0 + 5]);
    same(sum(await purgeAll(storage, T0 + 100, 10)), 2, 'deleted');
    same(
      (await storage.executions.list({ limit: 10 })).map(({ id }) => id),
      [2, 0].map(executionId),
      'executions',
    );
    same(sum(await purgeAll(storage, T0 + 100, 10)), 0, 'deleted the second time');
  });

  it('purge: deletes executions of every final status', async (storage) => {
    const statuses = ['completed', 'failed', 'timed_out', 'cancelled'] as const;
    for (const [number, status] of statuses.entries()) {
      await accept(storage, execution(number));
      await commitOne(storage, entry(number, { end: end({ status }) }));
    }
    await enqueue(storage, execution(4));
    await storage.executions.requestCancel(executionId(4), T0, end({ status: 'cancelled' }));
    same(sum(await purgeAll(storage, T0 + DAY, 10)), 5, 'deleted');
    same(await storage.executions.list({ limit: 10 }), [], 'executions');
  });

  it('purge: deletes everything that is stored of an execution', async (storage) => {
    await ended(storage, [T0 + 10]);
    same(sum(await purgeAll(storage, T0 + DAY, 10)), 1, 'deleted');
    await expectGone(storage);
  });

  it('purge: keeps other executions, their steps, states and definitions', async (storage) => {
    await ended(storage, [T0 + 10, T0 + 2 * DAY]);
    await accept(storage, execution(2));
    const more = { steps: [step('flow[0]')], state: change(0, { a: 1 }) };
    await commitOne(storage, entry(2, more));
    const definition = { version: execution(0).version, definition: { name: 'orders', flow: [] }, needs: [] };
    await storage.definitions.put(definition);
    const before = await everything(storage, 1, 2);
    same(sum(await purgeAll(storage, T0 + DAY, 10)), 1, 'deleted');
    same(await everything(storage, 1, 2), before, 'what is stored of the others');
    same(await storage.definitions.get(definition.version), definition, 'definition');
    same(await commitOne(storage, entry(2)), 'stored', 'a commit of a running execution');
  });

  it('purge: keeps executions that have not ended, however old they are', async (storage) => {
    for (const number of [1, 2, 3]) await accept(storage, execution(number));
    await enqueue(storage, execution(4));
    await release(storage, 2, { status: 'waiting', dueAt: T0 });
    await release(storage, 3, { status: 'running', dueAt: T0 });
    const before = await everything(storage, 1, 2, 3, 4);
    same(sum(await purgeAll(storage, T0 + 1000 * DAY, 10)), 0, 'deleted');
    same(await everything(storage, 1, 2, 3, 4), before, 'what is stored');
    same((await claim(storage)).length, 3, 'claimed');
  });

  it('purge: deletes at most `limit` executions per call, and `next` leads to the end', async (storage) => {
    await ended(
      storage,
      Array.from({ length: 100 }, (_, number) => T0 + (number % 4 === 0 ? 10 * DAY : number)),
    );
    for (let number = 100; number < 120; number++) await accept(storage, execution(number));
    const deleted = await purgeAll(storage, T0 + DAY, 10);
    same(sum(deleted), 75, 'deleted');
    same(Math.max(...deleted), 10, 'the largest batch');
    same((await storage.executions.list({ limit: 250 })).length, 45, 'remaining executions');
  });

  it('purge: an unregistered worker deletes nothing', async (storage) => {
    await ended(storage, [T0 + 10]);
    same(await storage.executions.purge({ worker: STRANGER, before: T0 + DAY, limit: 10 }), undefined, 'answer');
    same((await storage.executions.list({ limit: 10 })).length, 1, 'executions');
  });
}

/** For stores on which several workers may work at the same time. */
export function sharedPurgeCases(it: StorageCase): void {
  it('purge: only the worker that registered first deletes', async (storage) => {
    await ended(storage, [T0 + 10]);
    await register(storage, OTHER, T0 + 1);
    same(
      await storage.executions.purge({ worker: OTHER, before: T0 + DAY, limit: 10 }),
      undefined,
      'answer to the other',
    );
    same((await storage.executions.list({ limit: 10 })).length, 1, 'executions');
    same(sum(await purgeAll(storage, T0 + DAY, 10)), 1, 'deleted by the first');
  });

  it('purge: the next worker deletes once the first has unregistered', async (storage) => {
    await ended(storage, [T0 + 10]);
    await register(storage, OTHER, T0 + 1);
    await storage.workers.unregister(WORKER, T0 + 2);
    same(sum(await purgeAll(storage, T0 + DAY, 10, OTHER)), 1, 'deleted');
    await register(storage, WORKER, T0 + 3);
    same(
      await storage.executions.purge({ worker: WORKER, before: T0 + DAY, limit: 10 }),
      undefined,
      'answer to the worker that registered again',
    );
  });

  it('purge: the next worker deletes once the first was considered dead', async (storage) => {
    await ended(storage, [T0 + 10]);
    await register(storage, OTHER, T0 + LEASE);
    await storage.workers.reclaimFromDead(OTHER, T0 + LEASE);
    same(sum(await purgeAll(storage, T0 + DAY, 10, OTHER)), 1, 'deleted');
    same(
      await storage.executions.purge({ worker: WORKER, before: T0 + DAY, limit: 10 }),
      undefined,
      'answer to the dead worker',
    );
  });

  it('purge: a worker that registers again keeps its place', async (storage) => {
    await register(storage);
    await register(storage, OTHER, T0 + 1);
    await register(storage, WORKER, T0 + 2);
    same(
      (await storage.executions.purge({ worker: WORKER, before: T0, limit: 10 }))?.deleted,
      0,
      'answer to the first',
    );
    same(await storage.executions.purge({ worker: OTHER, before: T0, limit: 10 }), undefined, 'answer to the other');
  });
}

export function deletionCases(it: StorageCase): void {
  it('delete: deletes everything that is stored of ended executions, and keeps the others', async (storage) => {
    await ended(storage, [T0 + 10, T0 + 10]);
    await accept(storage, execution(2));
    await commitOne(storage, entry(2, { steps: [step('flow[0]')], state: change(0, { a: 1 }) }));
    const before = await everything(storage, 1, 2);
    const ids = [0, 0, 7].map(executionId);
    same(await storage.executions.delete(ids), 1, 'deleted');
    same(await everything(storage, 1, 2), before, 'what is stored of the others');
    same(await storage.executions.delete(ids), 0, 'deleted the second time');
    await expectGone(storage);
  });

  it('delete: keeps executions that have not ended', async (storage) => {
    await accept(storage, execution(0));
    await enqueue(storage, execution(1));
    await accept(storage, execution(2));
    await release(storage, 2, { status: 'waiting', dueAt: T0 });
    const before = await everything(storage, 0, 1, 2);
    same(await storage.executions.delete([0, 1, 2].map(executionId)), 0, 'deleted');
    same(await storage.executions.delete([]), 0, 'deleted of none');
    same(await everything(storage, 0, 1, 2), before, 'what is stored');
    same(await commitOne(storage, entry(0)), 'stored', 'a commit of a running execution');
  });

  it('delete: deletes tags, so that no listing by tag shows the execution', async (storage) => {
    await accept(storage, { ...execution(0), tags: ['order=1', 'paid'] });
    await accept(storage, { ...execution(1), tags: ['order=1'] });
    await commitOne(storage, entry(0, { end: end() }));
    same(await storage.executions.delete([executionId(0)]), 1, 'deleted');
    const listed = async (query: object) => (await storage.executions.list({ limit: 9, ...query })).map(({ id }) => id);
    same(await listed({ tag: 'paid' }), [], 'executions of its tag');
    same(await listed({ tag: 'order=1' }), [executionId(1)], 'executions of a tag that another one has too');
    same(await listed({ search: 'paid' }), [], 'executions found by the text of its tag');
  });
}
