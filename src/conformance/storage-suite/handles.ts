/** Storage suite: the capabilities of a storage, `close`, and several handles on the same data at the same time. */

import type { Storage } from '../../engine/storage/storage.port.ts';
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
  nextDueAt,
  numbers,
  OTHER,
  register,
  type StorageCase,
  same,
  starting,
  step,
  T0,
  WORKER,
} from './context.ts';

/** One handle. */
export function closeCases(it: StorageCase): void {
  it('capabilities: each is a boolean', async ({ capabilities }) => {
    for (const [name, value] of Object.entries(capabilities)) same(typeof value, 'boolean', name);
  });

  it('close: a second call does nothing', async (storage) => {
    await accept(storage, execution(1));
    await storage.close();
    await storage.close();
  });

  it('close: closes a store that was never used', async (storage) => {
    await storage.close();
  });
}

/** Declares a case that opens more handles on the data of its store. They are closed after the case. */
export type HandlesCase = (
  name: string,
  body: (storage: Storage, open: () => Promise<Storage>) => Promise<void>,
) => void;

/** Handles that are open at the same time, for stores on which several workers may work at the same time. */
export function concurrentHandleCases(it: HandlesCase): void {
  it('handles: each handle sees what a finished call of another handle has stored', async (storage, open) => {
    const other = await open();
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [step('flow[0]')], state: change(0, { a: 1 }) }));
    same(await everything(other, 1), await everything(storage, 1), 'what is stored');
    await enqueue(other, execution(2), T0 + 5);
    same(await nextDueAt(storage), T0 + 5, 'due');
  });

  it('handles: a worker is known on every handle, and its fence holds on each', async (storage, open) => {
    const other = await open();
    await accept(storage, execution(1));
    await register(other, OTHER, T0 + LEASE);
    same((await other.workers.reclaimFromDead(OTHER, T0 + LEASE)).freed, 1, 'freed');
    same(await storage.workers.renew(WORKER, T0 + 9 * LEASE), false, 'renewed');
    same(await commitOne(storage, entry(1, { steps: [step('flow[0]')] })), 'fenced', 'a late write');
    same((await claim(other, {}, OTHER))[0]?.epoch, 2, 'epoch');
    same(await commitOne(other, entry(1, { epoch: 2, end: end() }), OTHER), 'stored', "the new worker's end");
    same(await storage.executions.findEnded([executionId(1)]), [executionId(1)], 'ended');
  });

  it('handles: concurrent claims on two handles return each execution once', async (storage, open) => {
    const other = await open();
    await register(storage);
    await register(other, OTHER);
    const batch = Array.from({ length: 100 }, (_, number) =>
      starting(execution(number, { ensemble: `e-${number % 3}` }), { release: { status: 'queued', dueAt: T0 } }),
    );
    await storage.commit(WORKER, batch);
    const claims = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        i % 2 === 0 ? claim(storage, { limit: 5 }) : claim(other, { limit: 5 }, OTHER),
      ),
    );
    const all = claims.flatMap(numbers);
    same([all.length, new Set(all).size], [100, 100], 'claimed, and different ones');
  });

  it('handles: of concurrent changes of one state on two handles, exactly one is stored', async (storage, open) => {
    const other = await open();
    for (const number of [1, 3, 5]) await accept(storage, execution(number));
    for (const number of [2, 4, 6]) await accept(other, execution(number), OTHER);
    const answers = await Promise.all(
      [1, 2, 3, 4, 5, 6].map((by) => {
        const [handle, worker] = by % 2 === 1 ? [storage, WORKER] : [other, OTHER];
        return commitOne(handle, entry(by, { steps: [step('flow[0]')], state: change(0, { by }) }), worker);
      }),
    );
    same(answers.filter((answer) => answer === 'stored').length, 1, 'stored changes');
    same(answers.filter((answer) => answer === 'state-conflict').length, 5, 'refused changes');
    same((await storage.state.read('orders'))?.value, { by: answers.indexOf('stored') + 1 }, 'state');
  });

  it('handles: `poll` on one handle reports a cancel request made on another handle', async (storage, open) => {
    const other = await open();
    await accept(storage, execution(1));
    same(
      await other.executions.requestCancel(executionId(1), T0 + 5, end({ status: 'cancelled' })),
      'running',
      'answer',
    );
    same((await storage.executions.poll(WORKER, [])).cancelRequested, [executionId(1)], 'cancel requested');
  });

  it('watch: if the store has it, it notifies a handle of what another handle has queued', async (storage, open) => {
    if (!storage.watch) return;
    const other = await open();
    let notify = () => {};
    const notified = new Promise<void>((resolve) => {
      notify = resolve;
    });
    const stop = await storage.watch(() => notify());
    await enqueue(other, execution(1));
    await notified;
    await stop();
  });
}
