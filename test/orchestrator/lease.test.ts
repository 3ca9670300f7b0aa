/** The lease of an owner: from when it is sure of it, when it asks before it goes on, and what it hears then. */

import { describe, expect, it } from 'vitest';
import { createOwner } from '../../src/adapters/engine/owner.ts';
import { createPatience } from '../../src/adapters/engine/patience.ts';
import { memoryStorage } from '../../src/adapters/storage/memory-storage.ts';
import { hostTurn, manualClock } from '../../src/adapters/testing/manual-clock.ts';
import { JournalLostError } from '../../src/engine/ports/journal.ts';
import type { Storage } from '../../src/engine/ports/storage.ts';

const LEASE_MS = 300;
const RENEW_MS = 100;

/** An owner that joined; its renewals are answered when the test says so. */
async function scene(renew?: (storage: Storage, until: number) => Promise<boolean>, shared = true) {
  const clock = manualClock();
  const inner = memoryStorage({ shared });
  const warnings: string[] = [];
  const warn = (_about: object, message = '') => void warnings.push(message);
  const logger = { debug() {}, info() {}, warn, error: warn };
  let asked = 0;
  let owners = 0;
  let lost = 0;
  const storage: Storage = {
    ...inner,
    renew(owner, until) {
      asked += 1;
      return renew ? renew(inner, until) : inner.renew(owner, until);
    },
  };
  const owner = createOwner({
    ...{ storage, clock, logger, leaseMs: LEASE_MS, renewMs: RENEW_MS, blameFrom: () => 0 },
    patiently: createPatience(clock, logger, LEASE_MS),
    newOwner: () => `own_${++owners}`,
    onLost: () => {
      lost += 1;
    },
  });
  const id = await owner.join();
  return { clock, inner, owner, id, warnings, asked: () => asked, lost: () => lost };
}

/** @returns how a promise stands */
function watched(promise: Promise<void>) {
  let state = 'open';
  promise.then(
    () => {
      state = 'sure';
    },
    (error) => {
      state = error instanceof JournalLostError ? 'lost' : String(error);
    },
  );
  return async () => {
    for (let i = 0; i < 5; i++) await hostTurn();
    return state;
  };
}

describe('an owner', () => {
  it('is sure while its lease lasts, counted from when it was asked for; of no other owner ever', async () => {
    const answers: (() => void)[] = [];
    const { clock, owner, id } = await scene(
      () => new Promise<boolean>((resolve) => answers.push(() => resolve(true))),
    );
    expect([owner.isSure(id), owner.isSure('own_9')]).toEqual([true, false]);
    await clock.advance(LEASE_MS - 1);
    expect(owner.isSure(id)).toBe(true);
    answers[0]?.();
    await hostTurn();
    // It was asked for at 100.
    await clock.advance(RENEW_MS);
    expect(owner.isSure(id)).toBe(true);
    await clock.advance(1);
    expect(owner.isSure(id)).toBe(false);
  });

  it('is not sure behind a sleep of the whole machine, in which wall time alone went on', async () => {
    const { clock, owner, id } = await scene();
    clock.setNow(clock.now() + LEASE_MS);
    expect(owner.isSure(id)).toBe(false);
    await owner.confirm(id);
    expect(owner.isSure(id)).toBe(true);
    clock.setNow(clock.now() - 3_600_000);
    expect(owner.isSure(id)).toBe(true);
  });

  it('goes on when the storage still knows it, with one question for all who wait', async () => {
    let answer = (_known: boolean) => {};
    const { clock, owner, id, asked, warnings } = await scene(
      () =>
        new Promise<boolean>((resolve) => {
          answer = resolve;
        }),
    );
    await clock.advance(RENEW_MS);
    answer(true);
    await hostTurn();
    await clock.advance(RENEW_MS + LEASE_MS + 1);
    const before = asked();
    const states = [1, 2, 3].map(() => watched(owner.confirm(id)));
    expect(await Promise.all(states.map((state) => state()))).toEqual(['open', 'open', 'open']);
    answer(true);
    // What was asked for a lease ago is answered now: that says nothing of now, so it is asked again at once.
    await hostTurn();
    await clock.advance(0);
    answer(true);
    expect(await Promise.all(states.map((state) => state()))).toEqual(['sure', 'sure', 'sure']);
    expect(asked() - before).toBe(1);
    expect(warnings.filter((text) => /the lease was not renewed for/.test(text))).not.toEqual([]);
  });

  it('waits while the storage fails, until it answers', async () => {
    let fails = true;
    const { clock, owner, id } = await scene(async () => {
      if (fails) throw new Error('away');
      return true;
    });
    await clock.advance(LEASE_MS + 1);
    const state = watched(owner.confirm(id));
    expect(await state()).toBe('open');
    await clock.advance(5000);
    expect(await state()).toBe('open');
    fails = false;
    await clock.advance(RENEW_MS);
    expect(await state()).toBe('sure');
  });

  it('hears that it was taken for dead, or has left', async () => {
    const first = await scene();
    await first.clock.advance(0);
    await first.inner.leave(first.id, 0);
    first.clock.setNow(first.clock.now() + LEASE_MS);
    const state = watched(first.owner.confirm(first.id));
    expect([await state(), first.lost()]).toEqual(['lost', 1]);
    expect(await first.owner.join()).toBe('own_2');
    expect(await watched(first.owner.confirm(first.id))()).toBe('lost');
    const second = await scene(() => new Promise(() => undefined));
    await second.clock.advance(LEASE_MS + 1);
    const waits = watched(second.owner.confirm(second.id));
    expect(await waits()).toBe('open');
    await second.owner.leave();
    expect(await waits()).toBe('lost');
  });

  it('is always sure where nobody else can take over', async () => {
    const { clock, owner, id, warnings } = await scene(undefined, false);
    await clock.advance(1e9);
    expect(owner.isSure(id)).toBe(true);
    await owner.doubt();
    expect(warnings).toEqual([]);
    expect(clock.nextIn).toBeUndefined();
  });
});
