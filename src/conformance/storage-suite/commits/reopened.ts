/** Storage suite: commits on the data that a closed handle has stored. */

import {
  accept,
  change,
  commitOne,
  end,
  enqueue,
  entry,
  everything,
  execution,
  executionId,
  type StorageCase,
  same,
  signal,
  starting,
  step,
  T0,
  WORKER,
} from '../context.ts';

/** For stores that outlive their handle. */
export function reopenedCommitCases(it: StorageCase): void {
  it('reopen: all parts of an entry are stored together', async (storage, reopen) => {
    await accept(storage, execution(1));
    await enqueue(storage, execution(2));
    const whole = { steps: [step('flow[0]')], state: change(0, { a: 1 }), signals: [signal(1, 2)], end: end() };
    const answers = await storage.commit(WORKER, [entry(1, whole), entry(3), starting(execution(4))]);
    same(answers, ['stored', 'fenced', 'stored'], 'answers');
    const before = await everything(storage, 1, 2, 3, 4);
    const next = await reopen();
    same(await everything(next, 1, 2, 3, 4), before, 'what is stored');
    same((await next.executions.get(executionId(1)))?.status, 'completed', 'status of the first');
  });

  it('reopen: a queued start that is repeated is answered `stored`, another one with its id `exists`', async (storage, reopen) => {
    await enqueue(storage, execution(1), T0 + 5);
    const before = await everything(storage, 1);
    const next = await reopen();
    await enqueue(next, execution(1), T0 + 9);
    const another = starting(execution(1, { seed: 'f'.repeat(32) }), { release: { status: 'queued', dueAt: T0 } });
    same(await commitOne(next, another), 'exists', 'answer to another start');
    same(await everything(next, 1), before, 'what is stored');
  });
}
