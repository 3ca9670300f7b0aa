/** Storage suite: the blame for the death of a worker. Which executions bear how much of it, and what resets it. */

import type { Storage } from '../../../engine/storage/storage.port.ts';
import {
  accept,
  claim,
  commitOne,
  enqueue,
  entry,
  execution,
  LEASE,
  OTHER,
  register,
  release,
  type StorageCase,
  same,
  step,
  T0,
  WORKER,
  workerId,
} from '../context.ts';

const END = T0 + LEASE;

/** Claims all that is due. @returns the blame by number of the execution */
async function blamesOf(storage: Storage, worker: string, now: number): Promise<Readonly<Record<number, number>>> {
  const claimed = await claim(storage, { now }, worker);
  return Object.fromEntries(claimed.map(({ execution: { id }, blame }) => [Number(id.slice(5)), blame]));
}

/** For stores on which several workers may work at the same time. */
export function sharedBlameCases(it: StorageCase): void {
  /** Two workers take turns: the lease of one expires, and the other one claims what it held. @returns the blames */
  const dies = async (
    storage: Storage,
    times: number,
    blameFrom?: number,
  ): Promise<Readonly<Record<number, number>>> => {
    const next = times % 2 === 1 ? OTHER : WORKER;
    const now = T0 + times * LEASE;
    await register(storage, next, now);
    await storage.workers.reclaimFromDead(next, now, blameFrom);
    return blamesOf(storage, next, now);
  };

  it('blame: executions that were claimed since `blameFrom` and stored nothing since bear 1, then share it equally', async (storage) => {
    await accept(storage, execution(1));
    for (const number of [2, 3, 4, 5]) await enqueue(storage, execution(number));
    await claim(storage, { now: T0 + 1000 });
    const fresh = step('flow[0]', { startedAt: T0 + 1001 });
    same(await commitOne(storage, entry(5, { steps: [fresh] })), 'stored', 'answer to a step');
    same(await dies(storage, 1, T0 + 1000), { 1: 0, 2: 1, 3: 1, 4: 1, 5: 0 }, 'blame of the first death');
    // For executions 1 and 5, this is the first death that they bear blame for.
    same(await dies(storage, 2, T0 + LEASE), { 1: 1, 2: 201, 3: 201, 4: 201, 5: 1 }, 'blame of the second death');
    const later = step('flow[1]', { startedAt: T0 + 2 * LEASE + 1 });
    for (const number of [1, 2, 3]) {
      const stored = await commitOne(storage, entry(number, { epoch: 3, steps: [later] }));
      same(stored, 'stored', 'answer to a step');
    }
    same(await dies(storage, 3, T0 + 2 * LEASE), { 1: 0, 2: 0, 3: 0, 4: 701, 5: 501 }, 'blame of the third death');
  });

  it('blame: an execution that was started since `blameFrom` bears it; a record that began before the claim does not count', async (storage) => {
    await accept(storage, execution(1));
    same(await dies(storage, 1, T0), { 1: 1 }, 'blame of the first death');
    same(
      await commitOne(storage, entry(1, { epoch: 2, steps: [step('flow[0]')] }), OTHER),
      'stored',
      'answer to an older step',
    );
    same(await dies(storage, 2, T0 + LEASE), { 1: 1001 }, 'blame of the second death');
    same(await dies(storage, 3, T0 + 2 * LEASE), { 1: 2001 }, 'blame of the third death');
  });

  it('blame: an execution that was started, and has a record that began after that, bears none', async (storage) => {
    for (const number of [1, 2]) await accept(storage, execution(number));
    same(await commitOne(storage, entry(2, { steps: [step('flow[0]')] })), 'stored', 'answer to a step');
    same(await dies(storage, 1, T0), { 1: 1, 2: 0 }, 'blame');
  });

  it('blame: a later death counts for less if other workers have registered since', async (storage) => {
    await accept(storage, execution(1));
    same(await dies(storage, 1, T0), { 1: 1 }, 'blame of the first death');
    for (const number of [3, 4, 5, 6]) await register(storage, workerId(number), T0 + 2 * LEASE);
    const { 1: blame = 0 } = await dies(storage, 2, T0 + LEASE);
    // A store may count one more registration.
    same(blame === 201 || blame === 167, true, `the blame is 201 or 167 (it is ${blame})`);
  });

  it('blame: is divided separately for each dead worker', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2));
    await register(storage, OTHER, T0);
    for (const number of [1, 2]) await release(storage, number, { status: 'running', dueAt: T0 });
    await storage.executions.claim(WORKER, { now: T0, limit: 1, excludeVersions: [] });
    await storage.executions.claim(OTHER, { now: T0, limit: 1, excludeVersions: [] });
    const third = workerId(3);
    await register(storage, third, T0 + LEASE);
    same((await storage.workers.reclaimFromDead(third, T0 + LEASE, T0)).freed, 2, 'freed');
    same(await blamesOf(storage, third, T0 + LEASE), { 1: 1, 2: 1 }, 'blame of the first deaths');
  });

  it('blame: is 0 after a death long after the claim, and without `blameFrom`', async (storage) => {
    await accept(storage, execution(1));
    same(await dies(storage, 1, T0), { 1: 1 }, 'blame');
    same(await dies(storage, 2, T0 + LEASE + 1), { 1: 0 }, 'blame after a late death');
    same(await dies(storage, 3, T0 + 2 * LEASE), { 1: 1 }, 'blame');
    same(await dies(storage, 4), { 1: 0 }, 'blame without `blameFrom`');
  });

  it('blame: is 0 for an execution that waited, and for what a worker held when it unregistered', async (storage) => {
    for (const number of [1, 2, 3]) await accept(storage, execution(number));
    same(await dies(storage, 1, T0), { 1: 1, 2: 1, 3: 1 }, 'blame');
    await release(storage, 1, { status: 'waiting', dueAt: END }, { epoch: 2, worker: OTHER });
    await release(storage, 2, { status: 'running', dueAt: END }, { epoch: 2, worker: OTHER });
    same(await blamesOf(storage, OTHER, END), { 1: 0, 2: 1 }, 'blame of what was released');
    await storage.workers.unregister(OTHER, END);
    await register(storage, WORKER, END);
    same(
      await blamesOf(storage, WORKER, END),
      { 1: 0, 2: 0, 3: 0 },
      'blame of what the worker held when it unregistered',
    );
  });
}

/** For stores that have a single worker. */
export function successionBlameCases(it: StorageCase): void {
  it('blame: a worker that registers puts it on what the worker before it held', async (storage) => {
    for (const number of [1, 2, 3]) await accept(storage, execution(number));
    same(await commitOne(storage, entry(3, { steps: [step('flow[0]')] })), 'stored', 'answer to a step');
    const joins = (worker: string, blameFrom?: number) =>
      storage.workers.register(worker, {
        now: END,
        leaseUntil: END + LEASE,
        ...(blameFrom !== undefined && { blameFrom }),
      });
    await joins(OTHER, T0);
    same(await blamesOf(storage, OTHER, END), { 1: 1, 2: 1, 3: 0 }, 'blame of the first death');
    await joins(WORKER, END);
    same(await blamesOf(storage, WORKER, END), { 1: 334, 2: 334, 3: 1 }, 'blame of the second death');
    await joins(OTHER);
    same(await blamesOf(storage, OTHER, END), { 1: 0, 2: 0, 3: 0 }, 'blame without `blameFrom`');
  });
}

/** For stores that outlive their handle. */
export function reopenedBlameCases(it: StorageCase): void {
  it('reopen: each restart adds an epoch and a recovery to what a worker held, and its blame grows', async (storage, reopen) => {
    for (const number of [1, 2]) await accept(storage, execution(number));
    const expected = [
      [
        [1, 2, 1, 1],
        [2, 2, 1, 0],
      ],
      [
        [1, 3, 2, 1001],
        [2, 3, 2, 0],
      ],
      [
        [1, 4, 3, 2001],
        [2, 4, 3, 0],
      ],
    ];
    let [current, worker] = [storage, WORKER];
    for (const [i, wanted] of expected.entries()) {
      const now = T0 + (i + 1) * LEASE;
      // Execution 2 makes progress, so it bears no blame.
      const progress = entry(2, { epoch: i + 1, steps: [step(`flow[${i}]`, { startedAt: now - 1 })] });
      same(await commitOne(current, progress, worker), 'stored', 'answer to a step');
      current = await reopen();
      worker = workerId(i + 2);
      await current.workers.register(worker, { now, leaseUntil: now + LEASE, blameFrom: T0 });
      await current.workers.reclaimFromDead(worker, now, T0);
      const claimed = await claim(current, { now }, worker);
      const found = claimed.map(({ execution: { id }, epoch, recoveries, blame }) => [
        Number(id.slice(5)),
        epoch,
        recoveries,
        blame,
      ]);
      same(
        found.sort(([a = 0], [b = 0]) => a - b),
        wanted,
        `executions, epochs, recoveries and blame after ${i + 1} restarts`,
      );
    }
    same(await current.workers.renew(WORKER, T0 + 9 * LEASE), false, 'whether the first worker is known');
  });
}
