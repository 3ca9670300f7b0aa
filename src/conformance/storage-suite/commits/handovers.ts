/** Storage suite: what the last run of an execution left, in the record of the execution and for the next claim. */

import {
  accept,
  claim,
  commitOne,
  end,
  entry,
  execution,
  executionId,
  handover,
  OTHER,
  register,
  release,
  type StorageCase,
  same,
  step,
  T0,
  WORKER,
} from '../context.ts';

export function handoverCases(it: StorageCase): void {
  it('handover: the record of a waiting execution shows what it waits for, in a listing too', async (storage) => {
    await accept(storage, execution(1));
    const left = handover();
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 100, handover: left });
    const expected = { waitingFor: left.waitingFor, waitingForOmitted: 100_000, waited: 5 };
    for (const found of [
      await storage.executions.get(executionId(1)),
      (await storage.executions.list({ limit: 1 }))[0],
    ]) {
      const { waitingFor, waitingForOmitted, metrics } = found ?? {};
      same({ waitingFor, waitingForOmitted, waited: metrics?.waited }, expected, 'in the record');
    }
    await claim(storage, { now: T0 + 130 });
    const { waitingFor, waitingForOmitted, metrics } = (await storage.executions.get(executionId(1))) ?? {};
    const running = { waitingFor: [], waited: 105 };
    same({ waitingFor, waitingForOmitted, waited: metrics?.waited }, running, 'in the record after the claim');
  });

  it('handover: the next claim returns it, with the instant of the first claim since the release', async (storage) => {
    await accept(storage, execution(1));
    await release(storage, 1, { status: 'waiting', dueAt: T0, handover: handover() });
    const [first] = await claim(storage, { now: T0 + 40 });
    same([first?.handover, first?.resumedAt], [handover(), T0 + 40], 'of the first claim');
    await release(storage, 1, { status: 'running', dueAt: T0 }, { epoch: 2 });
    const [second] = await claim(storage, { now: T0 + 50 });
    same([second?.handover, second?.resumedAt], [handover(), T0 + 40], 'after a release without a handover');
    const other = handover({ waitingFor: [], waited: 9 });
    await release(storage, 1, { status: 'running', dueAt: T0, handover: other }, { epoch: 3 });
    const taken = await storage.executions.take(WORKER, executionId(1), T0 + 60);
    if (!taken || 'damage' in taken) throw new Error('it was not taken');
    same([taken.handover, taken.resumedAt], [other, T0 + 60], 'after a release with another one');
  });

  it('handover: the record says what the models of an execution used, before its end and after', async (storage) => {
    const usage = { inputTokens: 1_000_000_007, outputTokens: 12, cost: 0.0125 };
    const used = async (number: number) => (await storage.executions.get(executionId(number)))?.metrics.usage;
    await accept(storage, execution(1));
    same(await used(1), undefined, 'of an execution without models');
    await release(storage, 1, { status: 'waiting', dueAt: T0, handover: handover({ usage }) });
    same(await used(1), usage, 'while it waits');
    await claim(storage);
    const total = { inputTokens: 2, outputTokens: 3 };
    const last = entry(1, { epoch: 2, end: end({ usage: total }) });
    same(await commitOne(storage, last), 'stored', 'answer');
    same(await commitOne(storage, last), 'stored', 'answer to the same end again');
    same([await used(1), (await storage.executions.get(executionId(1)))?.metrics.waited], [total, 0], 'of the end');
  });

  it('handover: the end of an execution says how long it waited', async (storage) => {
    await accept(storage, execution(1));
    await release(storage, 1, { status: 'waiting', dueAt: T0, handover: handover() });
    await claim(storage);
    const last = entry(1, { epoch: 2, steps: [step('flow[0]')], end: end({ waited: 4321 }) });
    same(await commitOne(storage, last), 'stored', 'answer');
    same(await commitOne(storage, last), 'stored', 'answer to the same end again');
    const record = await storage.executions.get(executionId(1));
    same([record?.waitingFor, record?.metrics.waited], [[], 4321], 'in the record');
    await accept(storage, execution(2));
    await release(storage, 2, { status: 'waiting', dueAt: T0, handover: handover() });
    await claim(storage);
    await commitOne(storage, entry(2, { epoch: 2, end: end() }));
    same((await storage.executions.get(executionId(2)))?.metrics.waited, 0, 'of an end that says nothing');
  });
}

/** For stores on which several workers may work at the same time. */
export function sharedHandoverCases(it: StorageCase): void {
  it('handover: stays when a worker is considered dead, and the record counts the recovery', async (storage) => {
    await accept(storage, execution(1));
    await release(storage, 1, { status: 'waiting', dueAt: T0, handover: handover() });
    await claim(storage, { now: T0 + 40 });
    await register(storage, OTHER, T0 + 100_000);
    await storage.workers.reclaimFromDead(OTHER, T0 + 100_000);
    same((await storage.executions.get(executionId(1)))?.recoveries, 1, 'recoveries in the record');
    const [next] = await claim(storage, { now: T0 + 100_000 }, OTHER);
    same([next?.handover, next?.resumedAt, next?.recoveries], [handover(), T0 + 40, 1], 'of the next claim');
  });
}
