/** Storage suite: several workers on one store. What happens to executions when a worker dies. */

import {
  accept,
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
  release,
  type StorageCase,
  same,
  step,
  T0,
  WORKER,
  workerId,
} from '../context.ts';

const THIRD = workerId(3);

/** For stores on which several workers may work at the same time. */
export function reclaimCases(it: StorageCase): void {
  it('reclaimFromDead: what a worker held whose lease has expired is free, due at once, with one more recovery', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2));
    await accept(storage, execution(3), OTHER);
    same((await storage.workers.reclaimFromDead(OTHER, T0 + LEASE - 1)).freed, 0, 'freed while its lease lasts');
    await storage.workers.renew(OTHER, T0 + 2 * LEASE);
    same((await storage.workers.reclaimFromDead(OTHER, T0 + LEASE)).freed, 2, 'freed when its lease has expired');
    same((await storage.executions.get(executionId(1)))?.status, 'running', 'status');
    same(await nextDueAt(storage), T0 + LEASE, 'due');
    const claimed = await claim(storage, { now: T0 + LEASE }, OTHER);
    same(numbers(claimed), [1, 2], 'claimed');
    same(
      claimed.map(({ epoch, begun, recoveries }) => [epoch, begun, recoveries]),
      [
        [2, true, 1],
        [2, true, 1],
      ],
      'epoch, begun, recoveries',
    );
    same(await commitOne(storage, entry(3), OTHER), 'stored', 'a commit of the worker that is alive');
  });

  it('reclaimFromDead: a worker that has renewed its lease keeps what it holds until the new lease expires', async (storage) => {
    await accept(storage, execution(1));
    await register(storage, OTHER);
    await storage.workers.renew(WORKER, T0 + 2 * LEASE);
    same((await storage.workers.reclaimFromDead(OTHER, T0 + 2 * LEASE - 1)).freed, 0, 'freed');
    same(await commitOne(storage, entry(1)), 'stored', 'its commit');
    same((await storage.workers.reclaimFromDead(OTHER, T0 + 2 * LEASE)).freed, 1, 'freed after the new lease');
  });

  it('reclaimFromDead: registering again sets a new lease', async (storage) => {
    await accept(storage, execution(1));
    await register(storage, OTHER, T0 + LEASE);
    await register(storage, WORKER, T0 + LEASE);
    same((await storage.workers.reclaimFromDead(OTHER, T0 + 2 * LEASE - 1)).freed, 0, 'freed');
    same(await commitOne(storage, entry(1)), 'stored', 'its commit');
  });

  it('reclaimFromDead: a lease without an end never expires', async (storage) => {
    await storage.workers.register(WORKER, { now: T0, leaseUntil: Number.MAX_SAFE_INTEGER });
    await accept(storage, execution(1));
    await register(storage, OTHER);
    same((await storage.workers.reclaimFromDead(OTHER, T0 + 1e14)).freed, 0, 'freed');
    same(await commitOne(storage, entry(1)), 'stored', 'its commit');
  });

  it('reclaimFromDead: a worker that was considered dead is unknown', async (storage) => {
    await accept(storage, execution(1));
    await register(storage, OTHER, T0 + LEASE);
    await storage.workers.reclaimFromDead(OTHER, T0 + LEASE);
    same(await storage.workers.renew(WORKER, T0 + 9 * LEASE), false, 'renewed');
    same(await claim(storage), [], 'claimed');
    await register(storage, WORKER, T0 + LEASE);
    same((await claim(storage))[0]?.epoch, 2, 'epoch of what it claims after registering again');
  });

  it('reclaimFromDead: a dead worker that held nothing is unknown, too', async (storage) => {
    await register(storage);
    await register(storage, OTHER, T0 + LEASE);
    same((await storage.workers.reclaimFromDead(OTHER, T0 + LEASE)).freed, 0, 'freed');
    same(await storage.workers.renew(WORKER, T0 + 9 * LEASE), false, 'renewed');
  });

  it('reclaimFromDead: frees what several dead workers held, and nothing of a live worker', async (storage) => {
    for (let number = 0; number < 9; number++)
      await accept(storage, execution(number), [WORKER, OTHER, THIRD][number % 3]);
    await storage.workers.renew(THIRD, T0 + 2 * LEASE);
    same((await storage.workers.reclaimFromDead(THIRD, T0 + LEASE)).freed, 6, 'freed');
    same(numbers(await claim(storage, {}, THIRD)), [0, 1, 3, 4, 6, 7], 'claimed');
    same((await storage.workers.reclaimFromDead(THIRD, T0 + LEASE)).freed, 0, 'freed the second time');
  });

  it('reclaimFromDead: queued, waiting and ended executions of a dead worker stay unchanged', async (storage) => {
    for (const number of [1, 2]) await accept(storage, execution(number));
    await enqueue(storage, execution(3), T0 + 5000);
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 6000 });
    await commitOne(storage, entry(2, { end: end() }));
    await register(storage, OTHER, T0 + LEASE);
    const before = await everything(storage, 1, 2, 3);
    same((await storage.workers.reclaimFromDead(OTHER, T0 + LEASE)).freed, 0, 'freed');
    same(await everything(storage, 1, 2, 3), before, 'what is stored');
    const claimed = await claim(storage, {}, OTHER);
    same(
      claimed.map(({ recoveries }) => recoveries),
      [0, 0],
      'recoveries',
    );
  });

  it('reclaimFromDead: the worker that claims sees what the dead worker wrote', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [step('flow[0]'), step('flow[1]', { name: '', note: true })] }));
    await register(storage, OTHER, T0 + LEASE);
    await storage.workers.reclaimFromDead(OTHER, T0 + LEASE);
    same((await claim(storage, {}, OTHER)).length, 1, 'claimed');
    const steps = await storage.executions.listSteps(executionId(1), { limit: 10, notes: true });
    same(
      steps.map(({ key }) => key),
      ['flow[0]', 'flow[1]'],
      'records',
    );
  });

  it('reclaimFromDead: each death adds a recovery and an epoch', async (storage) => {
    await accept(storage, execution(1));
    const found: (readonly unknown[])[] = [];
    for (let times = 1; times <= 3; times++) {
      const alive = times % 2 === 1 ? OTHER : WORKER;
      const now = T0 + times * LEASE;
      await register(storage, alive, now);
      same((await storage.workers.reclaimFromDead(alive, now)).freed, 1, 'freed');
      const [claimed] = await claim(storage, { now }, alive);
      found.push([claimed?.recoveries, claimed?.epoch, claimed?.startedAt]);
    }
    same(
      found,
      [1, 2, 3].map((times) => [times, times + 1, T0 + 1]),
      'recoveries, epochs and `startedAt`',
    );
  });

  it('reclaimFromDead: two concurrent calls free each execution once', async (storage) => {
    await register(storage);
    for (let number = 0; number < 30; number++) await accept(storage, execution(number));
    const alive = [OTHER, THIRD];
    for (const worker of alive) await register(storage, worker, T0 + LEASE);
    const reclaimed = await Promise.all(
      alive.map(async (worker) => storage.workers.reclaimFromDead(worker, T0 + LEASE)),
    );
    same(
      reclaimed.reduce((sum, { freed }) => sum + freed, 0),
      30,
      'freed by both calls',
    );
    const claimed = await claim(storage, {}, OTHER);
    same([...new Set(claimed.map(({ recoveries }) => recoveries))], [1], 'recoveries');
  });

  it('unregister: other workers keep what they hold', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2), OTHER);
    await storage.workers.unregister(OTHER, T0 + 100);
    same(await commitOne(storage, entry(1)), 'stored', 'a commit of the other worker');
    same(numbers(await claim(storage)), [2], 'claimed');
  });
}
