/** The storage suite's cases of several owners on one store: what becomes of executions when one of them is dead. */

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
  join,
  LEASE,
  nextDueAt,
  numbers,
  OTHER,
  OWNER,
  release,
  type StorageCase,
  same,
  step,
  T0,
} from './context.ts';

const THIRD = `own_${'0'.repeat(25)}3`;

/** For stores on which several owners may work at once. */
export function recoveryCases(it: StorageCase): void {
  it('recover: an owner whose lease has ended; what it held is free, due at once, with one more recovery', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2));
    await accept(storage, execution(3), OTHER);
    same((await storage.recover(OTHER, T0 + LEASE - 1)).freed, 0, 'freed while its lease lasts');
    await storage.renew(OTHER, T0 + 2 * LEASE);
    same((await storage.recover(OTHER, T0 + LEASE)).freed, 2, 'freed when it has ended');
    same((await storage.getExecution(executionId(1)))?.status, 'running', 'status');
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
    same(await commitOne(storage, entry(3), OTHER), 'stored', 'a commit of the one that is alive');
  });

  it('recover: an owner that has renewed its lease is left alone until the new one has ended', async (storage) => {
    await accept(storage, execution(1));
    await join(storage, OTHER);
    await storage.renew(OWNER, T0 + 2 * LEASE);
    same((await storage.recover(OTHER, T0 + 2 * LEASE - 1)).freed, 0, 'freed');
    same(await commitOne(storage, entry(1)), 'stored', 'its commit');
    same((await storage.recover(OTHER, T0 + 2 * LEASE)).freed, 1, 'freed in the end');
  });

  it('recover: an owner that joined again has the lease that it joined with', async (storage) => {
    await accept(storage, execution(1));
    await join(storage, OTHER, T0 + LEASE);
    await join(storage, OWNER, T0 + LEASE);
    same((await storage.recover(OTHER, T0 + 2 * LEASE - 1)).freed, 0, 'freed');
    same(await commitOne(storage, entry(1)), 'stored', 'its commit');
  });

  it('recover: a lease without an end does not end', async (storage) => {
    await storage.join(OWNER, { now: T0, leaseUntil: Number.MAX_SAFE_INTEGER });
    await accept(storage, execution(1));
    await join(storage, OTHER);
    same((await storage.recover(OTHER, T0 + 1e14)).freed, 0, 'freed');
    same(await commitOne(storage, entry(1)), 'stored', 'its commit');
  });

  it('recover: an owner that was taken for dead is known no more', async (storage) => {
    await accept(storage, execution(1));
    await join(storage, OTHER, T0 + LEASE);
    await storage.recover(OTHER, T0 + LEASE);
    same(await storage.renew(OWNER, T0 + 9 * LEASE), false, 'renewed');
    same(await claim(storage), [], 'claimed');
    await join(storage, OWNER, T0 + LEASE);
    same((await claim(storage))[0]?.epoch, 2, 'epoch of what it claims after joining again');
  });

  it('recover: an owner that held nothing is known no more either', async (storage) => {
    await join(storage);
    await join(storage, OTHER, T0 + LEASE);
    same((await storage.recover(OTHER, T0 + LEASE)).freed, 0, 'freed');
    same(await storage.renew(OWNER, T0 + 9 * LEASE), false, 'renewed');
  });

  it('recover: several owners at once, and not the one that is alive', async (storage) => {
    for (let number = 0; number < 9; number++)
      await accept(storage, execution(number), [OWNER, OTHER, THIRD][number % 3]);
    await storage.renew(THIRD, T0 + 2 * LEASE);
    same((await storage.recover(THIRD, T0 + LEASE)).freed, 6, 'freed');
    same(numbers(await claim(storage, {}, THIRD)), [0, 1, 3, 4, 6, 7], 'claimed');
    same((await storage.recover(THIRD, T0 + LEASE)).freed, 0, 'freed the second time');
  });

  it('recover: queued, waiting and ended executions of a dead owner stay as they are', async (storage) => {
    for (const number of [1, 2]) await accept(storage, execution(number));
    await enqueue(storage, execution(3), T0 + 5000);
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 6000 });
    await commitOne(storage, entry(2, { end: end() }));
    await join(storage, OTHER, T0 + LEASE);
    const before = await everything(storage, 1, 2, 3);
    same((await storage.recover(OTHER, T0 + LEASE)).freed, 0, 'freed');
    same(await everything(storage, 1, 2, 3), before, 'what is stored');
    const claimed = await claim(storage, {}, OTHER);
    same(
      claimed.map(({ recoveries }) => recoveries),
      [0, 0],
      'recoveries',
    );
  });

  it('recover: what the dead owner wrote is seen by whoever claims', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [step('flow[0]'), step('flow[1]', { name: '', note: true })] }));
    await join(storage, OTHER, T0 + LEASE);
    await storage.recover(OTHER, T0 + LEASE);
    same((await claim(storage, {}, OTHER)).length, 1, 'claimed');
    const steps = await storage.listSteps(executionId(1), { limit: 10, notes: true });
    same(
      steps.map(({ key }) => key),
      ['flow[0]', 'flow[1]'],
      'records',
    );
  });

  it('recover: each death counts', async (storage) => {
    await accept(storage, execution(1));
    const found: (readonly unknown[])[] = [];
    for (let times = 1; times <= 3; times++) {
      const alive = times % 2 === 1 ? OTHER : OWNER;
      const now = T0 + times * LEASE;
      await join(storage, alive, now);
      same((await storage.recover(alive, now)).freed, 1, 'freed');
      const [claimed] = await claim(storage, { now }, alive);
      found.push([claimed?.recoveries, claimed?.epoch, claimed?.startedAt]);
    }
    same(
      found,
      [1, 2, 3].map((times) => [times, times + 1, T0 + 1]),
      'recoveries, epochs and begin',
    );
  });

  it('recover: two owners at the same time free each execution once', async (storage) => {
    await join(storage);
    for (let number = 0; number < 30; number++) await accept(storage, execution(number));
    const alive = [OTHER, THIRD];
    for (const owner of alive) await join(storage, owner, T0 + LEASE);
    const looks = await Promise.all(alive.map(async (owner) => storage.recover(owner, T0 + LEASE)));
    same(
      looks.reduce((sum, { freed }) => sum + freed, 0),
      30,
      'freed by both',
    );
    const claimed = await claim(storage, {}, OTHER);
    same([...new Set(claimed.map(({ recoveries }) => recoveries))], [1], 'recoveries');
  });

  it('leave: what other owners hold stays with them', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2), OTHER);
    await storage.leave(OTHER, T0 + 100);
    same(await commitOne(storage, entry(1)), 'stored', 'a commit of the one that stayed');
    same(numbers(await claim(storage)), [2], 'claimed');
  });
}
