/** Storage suite: releases of an execution before its end. */

import {
  accept,
  claim,
  commitOne,
  enqueue,
  entry,
  execution,
  executionId,
  nextDueAt,
  register,
  release,
  retrying,
  type StorageCase,
  same,
  step,
  T0,
  UNTROUBLED,
} from '../context.ts';

export function releaseCases(it: StorageCase): void {
  for (const status of ['waiting', 'running'] as const) {
    it(`release: as ${status}, the execution is free from \`dueAt\` on, and its record shows the status`, async (storage) => {
      const { seed, ...accepted } = execution(1, { deadlineAt: T0 + 90_000 });
      await accept(storage, { seed, ...accepted });
      await commitOne(
        storage,
        entry(1, { steps: [step('flow[0]'), retrying('flow[1]', 1)], release: { status, dueAt: T0 + 100 } }),
      );
      const { retryAt: _retryAt, ...between } = retrying('flow[1]', 1);
      const expected = {
        ...accepted,
        status,
        output: null,
        startedAt: T0 + 1,
        tags: [],
        metrics: { totalDuration: 0, agents: 1, queued: 0, waited: 0 },
        ...UNTROUBLED,
        agents: [step('flow[0]'), { ...between, status: 'retrying' }],
      };
      same(await storage.executions.get(executionId(1)), expected, 'record');
      same(await nextDueAt(storage), T0 + 100, 'due');
      same(await claim(storage, { now: T0 + 99 }), [], 'claimed before');
      same((await claim(storage, { now: T0 + 100 })).length, 1, 'claimed');
      same((await storage.executions.get(executionId(1)))?.status, 'running', 'status after the claim');
    });
  }

  it('release: as queued, the execution has not begun; the next claim begins it', async (storage) => {
    const { seed, ...accepted } = execution(1);
    await register(storage);
    await enqueue(storage, { seed, ...accepted });
    await claim(storage, { now: T0 + 40 });
    await release(storage, 1, { status: 'queued', dueAt: T0 + 100 });
    const expected = {
      ...accepted,
      status: 'queued',
      output: null,
      tags: [],
      metrics: { totalDuration: 0, agents: 0, waited: 0 },
      ...UNTROUBLED,
      agents: [],
    };
    same(await storage.executions.get(executionId(1)), expected, 'record');
    same(await storage.executions.countQueued(10), 1, 'queued');
    const [claimed] = await claim(storage, { now: T0 + 200 });
    same([claimed?.epoch, claimed?.begun, claimed?.startedAt], [2, false, T0 + 200], 'epoch, begun, `startedAt`');
  });

  it('release: as waiting, many times; each claim has the next epoch', async (storage) => {
    await accept(storage, execution(1));
    for (let epoch = 1; epoch <= 5; epoch++) {
      const waits = entry(1, {
        epoch,
        steps: [step(`flow[${epoch}]`)],
        release: { status: 'waiting', dueAt: T0 + epoch * 100 },
      });
      same(await commitOne(storage, waits), 'stored', 'answer');
      const [claimed] = await claim(storage, { now: T0 + epoch * 100 });
      same([claimed?.epoch, claimed?.recoveries], [epoch + 1, 0], 'epoch and recoveries');
    }
    const record = await storage.executions.get(executionId(1));
    same([record?.agents.length, record?.startedAt], [5, T0 + 1], 'runs and `startedAt`');
  });

  it('release: `dueAt` may be far in the future', async (storage) => {
    await accept(storage, execution(1));
    const dueAt = T0 + 100 * 365 * 86_400_000;
    await release(storage, 1, { status: 'waiting', dueAt });
    same(await nextDueAt(storage), dueAt, 'due');
  });
}
