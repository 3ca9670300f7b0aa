/** The storage suite's cases of deleting what is old: which executions, what belongs to them, and who does it. */

import type { Storage } from '../../../engine/ports/storage.ts';
import {
  accept,
  change,
  claim,
  commitOne,
  delivery,
  end,
  enqueue,
  entry,
  everything,
  execution,
  executionId,
  join,
  LEASE,
  OTHER,
  OWNER,
  release,
  STRANGER,
  type StorageCase,
  same,
  starting,
  step,
  T0,
} from './context.ts';

const DAY = 86_400_000;

/** Deletes to the end, batch after batch. @returns how many were deleted by each */
async function purgeAll(storage: Storage, before: number, limit: number, owner = OWNER): Promise<number[]> {
  const deleted: number[] = [];
  let after: string | undefined;
  for (let batches = 0; batches < 1000; batches++) {
    const found = await storage.purge({ owner, before, limit, ...(after !== undefined && { after }) });
    if (!found) throw new Error('the owner that joined first was told that another one deletes');
    deleted.push(found.deleted);
    after = found.next;
    if (after === undefined) return deleted;
  }
  throw new Error('1,000 batches did not come to an end');
}

const sum = (all: readonly number[]) => all.reduce((total, one) => total + one, 0);

/** Executions that ended, each with a step, a note and a delivery. */
async function ended(storage: Storage, finishedAts: readonly number[]): Promise<void> {
  await join(storage);
  await storage.commit(
    OWNER,
    finishedAts.map((_, number) => starting(execution(number))),
  );
  await storage.commit(
    OWNER,
    finishedAts.map((finishedAt, number) =>
      entry(number, {
        steps: [step('flow[0]'), step('flow[1]', { name: '', note: true })],
        deliveries: [delivery(number)],
        end: end({ finishedAt }),
      }),
    ),
  );
}

export function purgeCases(it: StorageCase): void {
  it('purge: an empty store has nothing to delete', async (storage) => {
    await join(storage);
    same(await purgeAll(storage, T0, 10), [0], 'deleted');
  });

  it('purge: what ended before the instant, and nothing that ended at it or later', async (storage) => {
    await ended(storage, [T0 + 100, T0 + 99, T0 + 101, T0 + 5]);
    same(sum(await purgeAll(storage, T0 + 100, 10)), 2, 'deleted');
    same(
      (await storage.listExecutions({ limit: 10 })).map(({ id }) => id),
      [2, 0].map(executionId),
      'executions',
    );
    same(sum(await purgeAll(storage, T0 + 100, 10)), 0, 'deleted the second time');
  });

  it('purge: whatever way they ended', async (storage) => {
    const statuses = ['completed', 'failed', 'timed_out', 'cancelled'] as const;
    for (const [number, status] of statuses.entries()) {
      await accept(storage, execution(number));
      await commitOne(storage, entry(number, { end: end({ status }) }));
    }
    await enqueue(storage, execution(4));
    await storage.requestCancel(executionId(4), T0, end({ status: 'cancelled' }));
    same(sum(await purgeAll(storage, T0 + DAY, 10)), 5, 'deleted');
    same(await storage.listExecutions({ limit: 10 }), [], 'executions');
  });

  it('purge: all that is stored of an execution is gone with it', async (storage) => {
    await ended(storage, [T0 + 10]);
    same(sum(await purgeAll(storage, T0 + DAY, 10)), 1, 'deleted');
    const id = executionId(0);
    same(await storage.getExecution(id), undefined, 'record');
    same(await storage.listSteps(id, { limit: 10, notes: true }), [], 'steps');
    same(await storage.listDeliveries(id), [], 'deliveries');
    same(await storage.findEnded([id]), [id], 'those that are not there');
    same(await storage.requestCancel(id, T0, end({ status: 'cancelled' })), undefined, 'a request to stop');
    same(await commitOne(storage, entry(0, { steps: [step('flow[0]')] })), 'fenced', 'a late commit');
    await accept(storage, execution(0));
    same(await storage.listSteps(id, { limit: 10, notes: true }), [], 'steps of a new one under its id');
    same(await storage.listDeliveries(id), [], 'deliveries of a new one under its id');
  });

  it('purge: what others have stays: executions, steps, deliveries, state, definitions', async (storage) => {
    await ended(storage, [T0 + 10, T0 + 2 * DAY]);
    await accept(storage, execution(2));
    const more = { steps: [step('flow[0]')], deliveries: [delivery(9)], state: change(0, { a: 1 }) };
    await commitOne(storage, entry(2, more));
    const definition = { version: execution(0).version, definition: { name: 'orders', flow: [] }, needs: [] };
    await storage.putDefinition(definition);
    const before = await everything(storage, 1, 2);
    same(sum(await purgeAll(storage, T0 + DAY, 10)), 1, 'deleted');
    same(await everything(storage, 1, 2), before, 'what is stored of the others');
    same(await storage.getDefinition(definition.version), definition, 'definition');
    same(await commitOne(storage, entry(2)), 'stored', 'a commit of one that runs');
  });

  it('purge: executions that have not ended stay, however old they are', async (storage) => {
    for (const number of [1, 2, 3]) await accept(storage, execution(number));
    await enqueue(storage, execution(4));
    await release(storage, 2, { status: 'waiting', dueAt: T0 });
    await release(storage, 3, { status: 'running', dueAt: T0 });
    const before = await everything(storage, 1, 2, 3, 4);
    same(sum(await purgeAll(storage, T0 + 1000 * DAY, 10)), 0, 'deleted');
    same(await everything(storage, 1, 2, 3, 4), before, 'what is stored');
    same((await claim(storage)).length, 3, 'claimed');
  });

  it('purge: at most `limit` at a time, and `next` leads to the end', async (storage) => {
    await ended(
      storage,
      Array.from({ length: 100 }, (_, number) => T0 + (number % 4 === 0 ? 10 * DAY : number)),
    );
    for (let number = 100; number < 120; number++) await accept(storage, execution(number));
    const deleted = await purgeAll(storage, T0 + DAY, 10);
    same(sum(deleted), 75, 'deleted');
    same(Math.max(...deleted), 10, 'the largest batch');
    same((await storage.listExecutions({ limit: 250 })).length, 45, 'executions that are left');
  });

  it('purge: an owner that is not known deletes nothing', async (storage) => {
    await ended(storage, [T0 + 10]);
    same(await storage.purge({ owner: STRANGER, before: T0 + DAY, limit: 10 }), undefined, 'answer');
    same((await storage.listExecutions({ limit: 10 })).length, 1, 'executions');
  });
}

/** For stores on which several owners may work at once. */
export function electedPurgeCases(it: StorageCase): void {
  it('purge: the owner that joined first deletes, and no other', async (storage) => {
    await ended(storage, [T0 + 10]);
    await join(storage, OTHER, T0 + 1);
    same(await storage.purge({ owner: OTHER, before: T0 + DAY, limit: 10 }), undefined, 'answer to the other');
    same((await storage.listExecutions({ limit: 10 })).length, 1, 'executions');
    same(sum(await purgeAll(storage, T0 + DAY, 10)), 1, 'deleted by the first');
  });

  it('purge: the next one does it once the first has left', async (storage) => {
    await ended(storage, [T0 + 10]);
    await join(storage, OTHER, T0 + 1);
    await storage.leave(OWNER, T0 + 2);
    same(sum(await purgeAll(storage, T0 + DAY, 10, OTHER)), 1, 'deleted');
    await join(storage, OWNER, T0 + 3);
    same(await storage.purge({ owner: OWNER, before: T0 + DAY, limit: 10 }), undefined, 'answer to who came back');
  });

  it('purge: the next one does it once the first was taken for dead', async (storage) => {
    await ended(storage, [T0 + 10]);
    await join(storage, OTHER, T0 + LEASE);
    await storage.recover(OTHER, T0 + LEASE);
    same(sum(await purgeAll(storage, T0 + DAY, 10, OTHER)), 1, 'deleted');
    same(await storage.purge({ owner: OWNER, before: T0 + DAY, limit: 10 }), undefined, 'answer to the dead one');
  });

  it('purge: an owner that joins again keeps its turn', async (storage) => {
    await join(storage);
    await join(storage, OTHER, T0 + 1);
    await join(storage, OWNER, T0 + 2);
    same((await storage.purge({ owner: OWNER, before: T0, limit: 10 }))?.deleted, 0, 'answer to the first');
    same(await storage.purge({ owner: OTHER, before: T0, limit: 10 }), undefined, 'answer to the other');
  });
}
