/** The lease of a worker: how long it is valid, when the worker asks the storage before it continues, and the possible answers. */

import { describe, expect, it } from 'vitest';
import { hostTurn, manualClock } from '../../src/adapters/clock/manual-clock.ts';
import { createWorker } from '../../src/adapters/embedded-engine/worker.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { JournalLostError } from '../../src/engine/execution/journal.port.ts';
import { createStorageRetry } from '../../src/engine/running/storage-retry.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { changeStorage } from '../../src/testing-kit/processes/change-storage.ts';

const LEASE_MS = 300;
const RENEW_MS = 100;

/** A registered worker. The test answers its renewals. */
async function scene(renew?: (storage: Storage, until: number) => Promise<boolean>, shared = true) {
  const clock = manualClock();
  const inner = memoryStorage({ shared });
  const warnings: string[] = [];
  const warn = (_about: object, message = '') => void warnings.push(message);
  const logger = { debug() {}, info() {}, warn, error: warn };
  let asked = 0;
  let workers = 0;
  let lost = 0;
  const storage = changeStorage(inner, {
    workers: {
      renew(id, until) {
        asked += 1;
        return renew ? renew(inner, until) : inner.workers.renew(id, until);
      },
    },
  });
  const worker = createWorker({
    ...{ storage, clock, logger, leaseMs: LEASE_MS, renewMs: RENEW_MS, blameFrom: () => 0 },
    withRetry: createStorageRetry(clock, logger, LEASE_MS),
    newWorkerId: () => `own_${++workers}`,
    onLost: () => {
      lost += 1;
    },
  });
  const id = await worker.register();
  return { clock, inner, worker, id, warnings, asked: () => asked, lost: () => lost };
}

/** @returns a function that returns the state of a promise */
function watched(promise: Promise<void>) {
  let state = 'open';
  promise.then(
    () => {
      state = 'valid';
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

describe('a worker', () => {
  it('has a valid lease until it ends, counted from the request; a lease of another worker is never valid', async () => {
    const answers: (() => void)[] = [];
    const { clock, worker, id } = await scene(
      () => new Promise<boolean>((resolve) => answers.push(() => resolve(true))),
    );
    expect([worker.isLeaseValid(id), worker.isLeaseValid('own_9')]).toEqual([true, false]);
    await clock.advance(LEASE_MS - 1);
    expect(worker.isLeaseValid(id)).toBe(true);
    answers[0]?.();
    await hostTurn();
    // The renewal was requested at 100.
    await clock.advance(RENEW_MS);
    expect(worker.isLeaseValid(id)).toBe(true);
    await clock.advance(1);
    expect(worker.isLeaseValid(id)).toBe(false);
  });

  it('has no valid lease after the machine slept, when only wall time advanced', async () => {
    const { clock, worker, id } = await scene();
    clock.setNow(clock.now() + LEASE_MS);
    expect(worker.isLeaseValid(id)).toBe(false);
    await worker.waitForLease(id);
    expect(worker.isLeaseValid(id)).toBe(true);
    clock.setNow(clock.now() - 3_600_000);
    expect(worker.isLeaseValid(id)).toBe(true);
  });

  it('continues if the storage still knows it, with one request for all that wait', async () => {
    let answer = (_known: boolean) => {};
    const { clock, worker, id, asked, warnings } = await scene(
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
    const states = [1, 2, 3].map(() => watched(worker.waitForLease(id)));
    expect(await Promise.all(states.map((state) => state()))).toEqual(['open', 'open', 'open']);
    answer(true);
    // The answer to a request of one lease ago says nothing about now, so the worker asks again at once.
    await hostTurn();
    await clock.advance(0);
    answer(true);
    expect(await Promise.all(states.map((state) => state()))).toEqual(['valid', 'valid', 'valid']);
    expect(asked() - before).toBe(1);
    expect(warnings.filter((text) => /the lease was not renewed for/.test(text))).not.toEqual([]);
  });

  it('waits while the storage fails, until it answers', async () => {
    let fails = true;
    const { clock, worker, id } = await scene(async () => {
      if (fails) throw new Error('away');
      return true;
    });
    await clock.advance(LEASE_MS + 1);
    const state = watched(worker.waitForLease(id));
    expect(await state()).toBe('open');
    await clock.advance(5000);
    expect(await state()).toBe('open');
    fails = false;
    await clock.advance(RENEW_MS);
    expect(await state()).toBe('valid');
  });

  it('is lost if it was considered dead, or is unregistered', async () => {
    const first = await scene();
    await first.clock.advance(0);
    await first.inner.workers.unregister(first.id, 0);
    first.clock.setNow(first.clock.now() + LEASE_MS);
    const state = watched(first.worker.waitForLease(first.id));
    expect([await state(), first.lost()]).toEqual(['lost', 1]);
    expect(await first.worker.register()).toBe('own_2');
    expect(await watched(first.worker.waitForLease(first.id))()).toBe('lost');
    const second = await scene(() => new Promise(() => undefined));
    await second.clock.advance(LEASE_MS + 1);
    const waits = watched(second.worker.waitForLease(second.id));
    expect(await waits()).toBe('open');
    await second.worker.unregister();
    expect(await waits()).toBe('lost');
  });

  it('always has a valid lease if no other process can take over', async () => {
    const { clock, worker, id, warnings } = await scene(undefined, false);
    await clock.advance(1e9);
    expect(worker.isLeaseValid(id)).toBe(true);
    await worker.verifyLease();
    expect(warnings).toEqual([]);
    expect(clock.nextIn).toBeUndefined();
  });
});
