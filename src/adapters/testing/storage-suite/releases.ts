/** The storage suite's cases of giving an execution up before its end, and of what records and listings say then. */

import type { ExecutionQuery } from '../../../engine/ports/storage.ts';
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
  nextDueAt,
  OWNER,
  release,
  retrying,
  type StorageCase,
  same,
  step,
  T0,
} from './context.ts';

export function releaseCases(it: StorageCase): void {
  for (const status of ['waiting', 'running'] as const) {
    it(`release: as ${status}, it is free from its instant on, and its record says so`, async (storage) => {
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
        metrics: { totalDuration: 0, agents: 1 },
        agents: [step('flow[0]'), { ...between, status: 'retrying' }],
      };
      same(await storage.getExecution(executionId(1)), expected, 'record');
      same(await nextDueAt(storage), T0 + 100, 'due');
      same(await claim(storage, { now: T0 + 99 }), [], 'claimed before');
      same((await claim(storage, { now: T0 + 100 })).length, 1, 'claimed');
      same((await storage.getExecution(executionId(1)))?.status, 'running', 'status when it is claimed');
    });
  }

  it('release: as queued, it has not begun: the next claim begins it', async (storage) => {
    const { seed, ...accepted } = execution(1);
    await join(storage);
    await enqueue(storage, { seed, ...accepted });
    await claim(storage, { now: T0 + 40 });
    await release(storage, 1, { status: 'queued', dueAt: T0 + 100 });
    const expected = {
      ...accepted,
      status: 'queued',
      output: null,
      metrics: { totalDuration: 0, agents: 0 },
      agents: [],
    };
    same(await storage.getExecution(executionId(1)), expected, 'record');
    same(await storage.countQueued(10), 1, 'queued');
    const [claimed] = await claim(storage, { now: T0 + 200 });
    same([claimed?.epoch, claimed?.begun, claimed?.startedAt], [2, false, T0 + 200], 'epoch, begun, begin');
  });

  it('release: to wait, again and again; the epoch counts on', async (storage) => {
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
    const record = await storage.getExecution(executionId(1));
    same([record?.agents.length, record?.startedAt], [5, T0 + 1], 'runs and begin');
  });

  it('release: an instant long ahead', async (storage) => {
    await accept(storage, execution(1));
    const dueAt = T0 + 100 * 365 * 86_400_000;
    await release(storage, 1, { status: 'waiting', dueAt });
    same(await nextDueAt(storage), dueAt, 'due');
  });

  it('listExecutions: by status, through all that an execution goes through', async (storage) => {
    await join(storage);
    const statuses = async () => {
      const found: string[] = [];
      for (const status of ['queued', 'running', 'waiting', 'completed', 'cancelled'] as const) {
        const [first, second] = await storage.listExecutions({ status, limit: 10 });
        if (second) throw new Error('one execution is listed twice');
        if (first) found.push(status, first.status);
      }
      return found;
    };
    await enqueue(storage, execution(1));
    same(await statuses(), ['queued', 'queued'], 'when it is queued');
    await claim(storage);
    same(await statuses(), ['running', 'running'], 'when it is claimed');
    await release(storage, 1, { status: 'waiting', dueAt: T0 });
    same(await statuses(), ['waiting', 'waiting'], 'when it waits');
    await claim(storage);
    await release(storage, 1, { status: 'running', dueAt: T0 }, { epoch: 2 });
    same(await statuses(), ['running', 'running'], 'when another is to go on');
    await claim(storage);
    await storage.leave(OWNER, T0);
    same(await statuses(), ['running', 'running'], 'when its owner has left');
    await join(storage);
    await claim(storage);
    await commitOne(storage, entry(1, { epoch: 4, end: end() }));
    same(await statuses(), ['completed', 'completed'], 'when it has ended');
  });

  it('listExecutions: queued, waiting and running ones beside each other, as getExecution gives them', async (storage) => {
    for (let number = 0; number < 9; number++) {
      if (number % 3 === 0) await enqueue(storage, execution(number));
      else await accept(storage, execution(number, { ensemble: number > 5 ? 'late' : 'orders' }));
      if (number % 3 === 1) await release(storage, number, { status: 'waiting', dueAt: T0 + 500 });
    }
    const ids = async (query: Omit<ExecutionQuery, 'limit'>) =>
      (await storage.listExecutions({ ...query, limit: 100 })).map(({ id }) => Number(id.slice(5)));
    same(await ids({ status: 'queued' }), [6, 3, 0], 'queued');
    same(await ids({ status: 'waiting' }), [7, 4, 1], 'waiting');
    same(await ids({ status: 'running' }), [8, 5, 2], 'running');
    same(await ids({ status: 'waiting', ensemble: 'orders', before: executionId(4) }), [1], 'some of those that wait');
    const expected = [];
    for (let number = 8; number >= 0; number--)
      expected.push({ ...(await storage.getExecution(executionId(number))), agents: [] });
    same(await storage.listExecutions({ limit: 100 }), expected, 'all');
  });
}
