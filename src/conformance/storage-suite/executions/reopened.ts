/** Storage suite: what the next handle reads, claims and purges of the executions that a closed handle has stored. */

import type { ExecutionTrigger } from '../../../engine/execution/execution.ts';
import type { Storage } from '../../../engine/storage/storage.port.ts';
import {
  accept,
  claim,
  commitOne,
  decision,
  EVERY_KIND,
  end,
  enqueue,
  entry,
  everything,
  execution,
  executionId,
  handover,
  LEASE,
  nextDueAt,
  OTHER,
  register,
  release,
  retrying,
  type StorageCase,
  same,
  step,
  T0,
  WORKER,
} from '../context.ts';

const CHILD: ExecutionTrigger = {
  ...{ type: 'ensemble', parentId: executionId(1), rootId: executionId(1) },
  ...{ key: 'flow[2].foreach[7].steps[0]', depth: 1, detached: true },
};
const TICK: ExecutionTrigger = { type: 'schedule', cron: '0 * * * *', timezone: 'Europe/Oslo', scheduledAt: T0 - 1 };
const ERROR = { code: 'AGENT_FAILED', message: 'ä漢👍', agent: 'agent', details: EVERY_KIND };

/** Stores one execution of each status, with records of every kind. */
async function storeAll(storage: Storage): Promise<void> {
  const about = { input: EVERY_KIND, deadlineAt: T0 + 1e9, retryOf: executionId(0) };
  for (const number of [1, 2, 3]) await accept(storage, execution(number, about));
  const steps = [
    step('flow[0]', { output: EVERY_KIND }),
    decision('flow[1].wait', EVERY_KIND),
    { ...decision('flow[2].wait', { signal: 'sig' }), name: 'go' },
    retrying('flow[3]', 1),
    step('flow[4]', { status: 'failed', attempts: 3, output: null, error: ERROR }),
  ];
  await commitOne(storage, entry(1, { steps }));
  await commitOne(storage, entry(1, { steps: [step('flow[3]', { attempts: 2, output: 'replaced' })] }));
  await commitOne(storage, entry(2, { steps }));
  await commitOne(
    storage,
    entry(2, { end: end({ status: 'failed', output: EVERY_KIND, error: ERROR, agents: 9, waited: 77 }) }),
  );
  await enqueue(storage, execution(6), T0);
  same((await claim(storage, { now: T0 })).length, 1, 'claimed');
  await enqueue(storage, execution(7), T0 + 800);
  await storage.executions.take(WORKER, executionId(7), T0);
  await release(storage, 3, { status: 'waiting', dueAt: T0 + 500, handover: handover() });
  const named = { idempotencyKey: 'key', tags: ['vip', 'ä=漢'] };
  await enqueue(storage, execution(4, { trigger: CHILD, ensemble: 'agent:ä', ...named }), T0 + 700);
  await enqueue(storage, execution(5, { trigger: TICK, version: 'f'.repeat(32) }), T0 + 600);
}

/** The answers of all reads of these executions. */
async function readAll(storage: Storage): Promise<unknown> {
  const { executions } = storage;
  const found: unknown[] = [
    await everything(storage, 1, 2, 3, 4, 5, 6, 7, 8),
    await executions.list({ limit: 10 }),
    await executions.list({ limit: 10, ensemble: 'agent:ä' }),
    await executions.list({ limit: 10, status: 'waiting' }),
    await executions.list({ limit: 10, parentId: executionId(1) }),
    await executions.list({ limit: 10, tag: 'ä=漢', since: T0 }),
    await executions.list({ limit: 10, search: 'vi' }),
    await executions.findByKey('key'),
    await executions.countOpen(10),
    await executions.countAccepted(T0, 10),
    await executions.countDescendants(executionId(1), 10),
    await nextDueAt(storage, [execution(1).version]),
  ];
  for (const number of [1, 2, 3, 4, 5, 6, 7, 8]) {
    const id = executionId(number);
    found.push(
      await executions.getStatus(id),
      await executions.listSteps(id, { limit: 2, after: 'flow[0]', notes: true }),
      await executions.getStep(id, 'flow[4]'),
      await executions.skipSteps(id, 2),
      await executions.listEndedWaits(id, 'go', 0),
    );
  }
  return found;
}

/** For stores that outlive their handle. */
export function reopenedExecutionCases(it: StorageCase): void {
  it('reopen: every read has the same answer, for values of every kind', async (storage, reopen) => {
    await storeAll(storage);
    const before = await readAll(storage);
    same(await readAll(await reopen()), before, 'what is stored');
  });

  it('reopen: what is free is due when it was, with its requests for cancellation', async (storage, reopen) => {
    for (const number of [1, 2, 3, 4]) await accept(storage, execution(number));
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 500 });
    await release(storage, 2, { status: 'running', dueAt: T0 + 600 });
    await release(storage, 3, { status: 'waiting', dueAt: T0 + 1e9 });
    await storage.executions.requestCancel(executionId(3), T0 + 400, end({ status: 'cancelled' }));
    await storage.executions.requestCancel(executionId(4), T0 + 650, end({ status: 'cancelled' }));
    await enqueue(storage, execution(5), T0 + 700);
    await enqueue(storage, execution(6), T0 + 800);
    await enqueue(storage, execution(7, { version: 'f'.repeat(32) }), T0);
    await storage.workers.unregister(WORKER, T0 + 650);
    const next = await reopen();
    await register(next, OTHER, T0);
    const claimed = await claim(next, { now: T0 + 700, excludeVersions: ['f'.repeat(32)] }, OTHER);
    same(
      claimed.map(({ execution: { id }, epoch, begun, cancelRequested }) => [id, epoch, begun, cancelRequested]),
      [
        [executionId(3), 2, true, true],
        [executionId(1), 2, true, false],
        [executionId(2), 2, true, false],
        [executionId(4), 2, true, true],
        [executionId(5), 1, false, false],
      ],
      'claimed',
    );
    same(await nextDueAt(next, ['f'.repeat(32)]), T0 + 800, 'due next');
  });

  it('reopen: what a worker held that did not unregister goes to the next worker', async (storage, reopen) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [step('flow[0]'), retrying('flow[1]', 1)] }));
    const next = await reopen();
    await register(next, OTHER, T0 + LEASE);
    await next.workers.reclaimFromDead(OTHER, T0 + LEASE);
    const [claimed] = await claim(next, {}, OTHER);
    same([claimed?.execution, claimed?.epoch, claimed?.begun], [execution(1), 2, true], 'claimed');
    same(await commitOne(next, entry(1, { steps: [step('flow[2]')] })), 'fenced', 'a late write of the first worker');
    const steps = [step('flow[0]', { output: 'another' }), step('flow[1]', { attempts: 2 })];
    same(await commitOne(next, entry(1, { epoch: 2, steps, end: end({ agents: 2 }) }), OTHER), 'stored', 'its end');
    const expected = [step('flow[0]'), step('flow[1]', { attempts: 2 })];
    same(await next.executions.listSteps(executionId(1), { limit: 10 }), expected, 'steps');
  });

  it('reopen: a deleted execution stays deleted', async (storage, reopen) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2));
    await accept(storage, execution(3));
    await commitOne(storage, entry(1, { steps: [step('flow[0]')], end: end() }));
    await storage.executions.purge({ worker: WORKER, before: T0 + 1000, limit: 10 });
    await commitOne(storage, entry(3, { end: end() }));
    await storage.executions.delete([executionId(3)]);
    const next = await reopen();
    same(
      (await next.executions.list({ limit: 10 })).map(({ id }) => id),
      [executionId(2)],
      'executions',
    );
    same(await next.executions.listSteps(executionId(1), { limit: 10 }), [], 'steps of the deleted one');
  });
}
