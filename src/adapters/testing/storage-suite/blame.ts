/** The storage suite's cases of the blame for a death: who bears how much of it, and when it is forgotten. */

import type { Storage } from '../../../engine/ports/storage.ts';
import {
  accept,
  claim,
  commitOne,
  enqueue,
  entry,
  execution,
  join,
  LEASE,
  OTHER,
  OWNER,
  release,
  type StorageCase,
  same,
  step,
  T0,
} from './context.ts';

const END = T0 + LEASE;

/** By number of the execution. */
async function blamesOf(storage: Storage, owner: string, now: number): Promise<Readonly<Record<number, number>>> {
  const claimed = await claim(storage, { now }, owner);
  return Object.fromEntries(claimed.map(({ execution: { id }, blame }) => [Number(id.slice(5)), blame]));
}

/** For stores on which several owners may work at once. */
export function blameCases(it: StorageCase): void {
  /** The owners take turns: one dies after a lease, and the next one claims what it held. @returns its blames */
  const dies = async (
    storage: Storage,
    times: number,
    blameFrom?: number,
  ): Promise<Readonly<Record<number, number>>> => {
    const next = times % 2 === 1 ? OTHER : OWNER;
    const now = T0 + times * LEASE;
    await join(storage, next, now);
    await storage.recover(next, now, blameFrom);
    return blamesOf(storage, next, now);
  };

  it('blame: those that were claimed late, and of which nothing was stored since, are marked, then share it alike', async (storage) => {
    await accept(storage, execution(1));
    for (const number of [2, 3, 4, 5]) await enqueue(storage, execution(number));
    await claim(storage, { now: T0 + 1000 });
    const fresh = step('flow[0]', { startedAt: T0 + 1001 });
    same(await commitOne(storage, entry(5, { steps: [fresh] })), 'stored', 'a step');
    same(await dies(storage, 1, T0 + 1000), { 1: 0, 2: 1, 3: 1, 4: 1, 5: 0 }, 'blame of the first death');
    // Of the two that were not to blame for the first one, this is the first.
    same(await dies(storage, 2, T0 + LEASE), { 1: 1, 2: 201, 3: 201, 4: 201, 5: 1 }, 'blame of the second death');
    const later = step('flow[1]', { startedAt: T0 + 2 * LEASE + 1 });
    for (const number of [1, 2, 3]) {
      const stored = await commitOne(storage, entry(number, { epoch: 3, steps: [later] }));
      same(stored, 'stored', 'a step');
    }
    same(await dies(storage, 3, T0 + 2 * LEASE), { 1: 0, 2: 0, 3: 0, 4: 701, 5: 501 }, 'blame of the third death');
  });

  it('blame: one that was started late bears it too; a record from before it was claimed does not help', async (storage) => {
    await accept(storage, execution(1));
    same(await dies(storage, 1, T0), { 1: 1 }, 'blame of the first death');
    same(await commitOne(storage, entry(1, { epoch: 2, steps: [step('flow[0]')] }), OTHER), 'stored', 'an older step');
    same(await dies(storage, 2, T0 + LEASE), { 1: 1001 }, 'blame of the second death');
    same(await dies(storage, 3, T0 + 2 * LEASE), { 1: 2001 }, 'blame of the third death');
  });

  it('blame: a later death counts for less where other owners joined since', async (storage) => {
    await accept(storage, execution(1));
    same(await dies(storage, 1, T0), { 1: 1 }, 'blame of the first death');
    for (const number of [3, 4, 5, 6]) await join(storage, `own_${'0'.repeat(25)}${number}`, T0 + 2 * LEASE);
    const { 1: blame = 0 } = await dies(storage, 2, T0 + LEASE);
    // A store may count a join more.
    same(blame === 201 || blame === 167, true, `blame: ${blame} is that of one in five or six`);
  });

  it('blame: of each owner apart', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2));
    await join(storage, OTHER, T0);
    for (const number of [1, 2]) await release(storage, number, { status: 'running', dueAt: T0 });
    await storage.claim(OWNER, { now: T0, limit: 1, except: [] });
    await storage.claim(OTHER, { now: T0, limit: 1, except: [] });
    const third = `own_${'0'.repeat(25)}3`;
    await join(storage, third, T0 + LEASE);
    same((await storage.recover(third, T0 + LEASE, T0)).freed, 2, 'freed');
    same(await blamesOf(storage, third, T0 + LEASE), { 1: 1, 2: 1 }, 'blame of the first deaths');
  });

  it('blame: none behind a death long after the claim, none without an instant', async (storage) => {
    await accept(storage, execution(1));
    same(await dies(storage, 1, T0), { 1: 1 }, 'blame');
    same(await dies(storage, 2, T0 + LEASE + 1), { 1: 0 }, 'blame behind a late death');
    same(await dies(storage, 3, T0 + 2 * LEASE), { 1: 1 }, 'blame');
    same(await dies(storage, 4), { 1: 0 }, 'blame without an instant');
  });

  it('blame: none of one that waited, none of what an owner leaves behind', async (storage) => {
    for (const number of [1, 2, 3]) await accept(storage, execution(number));
    same(await dies(storage, 1, T0), { 1: 1, 2: 1, 3: 1 }, 'blame');
    await release(storage, 1, { status: 'waiting', dueAt: END }, { epoch: 2, owner: OTHER });
    await release(storage, 2, { status: 'running', dueAt: END }, { epoch: 2, owner: OTHER });
    same(await blamesOf(storage, OTHER, END), { 1: 0, 2: 1 }, 'blame of what was given back');
    await storage.leave(OTHER, END);
    await join(storage, OWNER, END);
    same(await blamesOf(storage, OWNER, END), { 1: 0, 2: 0, 3: 0 }, 'blame of what was left behind');
  });
}

/** For stores that take one owner alone. */
export function blameOfSuccessionCases(it: StorageCase): void {
  it('blame: one that joins lays it on what the owner before it held', async (storage) => {
    for (const number of [1, 2, 3]) await accept(storage, execution(number));
    same(await commitOne(storage, entry(3, { steps: [step('flow[0]')] })), 'stored', 'a step');
    const joins = (owner: string, blameFrom?: number) =>
      storage.join(owner, { now: END, leaseUntil: END + LEASE, ...(blameFrom !== undefined && { blameFrom }) });
    await joins(OTHER, T0);
    same(await blamesOf(storage, OTHER, END), { 1: 1, 2: 1, 3: 0 }, 'blame of the first death');
    await joins(OWNER, END);
    same(await blamesOf(storage, OWNER, END), { 1: 334, 2: 334, 3: 1 }, 'blame of the second death');
    await joins(OTHER);
    same(await blamesOf(storage, OTHER, END), { 1: 0, 2: 0, 3: 0 }, 'blame without an instant');
  });
}
