/** Storage suite: executions that are paused. */

import type { Storage } from '../../../engine/storage/storage.port.ts';
import {
  accept,
  claim,
  commitOne,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  nextDueAt,
  numbers,
  register,
  release,
  type StorageCase,
  same,
  signal,
  T0,
  WORKER,
} from '../context.ts';

const pause = (storage: Storage, number: number) => storage.executions.pause(executionId(number), 'execution');
const resume = (storage: Storage, number: number) => storage.executions.resume(executionId(number), 'execution');
const claimed = async (storage: Storage, now = T0) => numbers(await claim(storage, { now }));
const toPause = async (storage: Storage) => (await storage.executions.poll(WORKER, [])).pauseRequested ?? [];

export function pauseCases(it: StorageCase): void {
  it('pause and resume: one that is queued is not claimed meanwhile, and is queued after that', async (storage) => {
    await register(storage);
    await enqueue(storage, execution(1));
    await enqueue(storage, execution(2));
    same([await pause(storage, 1), await pause(storage, 1)], ['paused', 'paused'], 'paused twice');
    same((await storage.executions.get(executionId(1)))?.status, 'paused', 'the status');
    same(await claimed(storage), [2], 'claimed');
    same(await nextDueAt(storage), undefined, 'what is due next');
    const { paused } = await storage.executions.countOpen(10);
    same(paused.count, 1, 'how many are paused');
    same([await resume(storage, 1), await resume(storage, 1)], ['queued', 'queued'], 'resumed twice');
    same([await nextDueAt(storage), await claimed(storage)], [T0, [1]], 'when it is due, and what is claimed');
  });

  it('pause and resume: a wait keeps its instant; one whose time has passed is due at once', async (storage) => {
    await register(storage);
    for (const number of [1, 2]) {
      await enqueue(storage, execution(number));
      await claim(storage);
      await release(storage, number, { status: 'waiting', dueAt: T0 + 1000 * number });
      await pause(storage, number);
    }
    same(await claimed(storage, T0 + 1500), [], 'claimed while they are paused');
    same([await resume(storage, 1), await resume(storage, 2)], ['waiting', 'waiting'], 'resumed');
    same(await claimed(storage, T0 + 1500), [1], 'claimed after that');
    same(await claimed(storage, T0 + 2000), [2], 'claimed when it is due');
  });

  it('pause and resume: a signal that came meanwhile makes it due when it is resumed', async (storage) => {
    await register(storage);
    await enqueue(storage, execution(1));
    await claim(storage);
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 90_000, waitsFor: ['go'] });
    await pause(storage, 1);
    await storage.signals.put(signal(1, 1));
    same(await claimed(storage, T0 + 1000), [], 'claimed while it is paused');
    await resume(storage, 1);
    same(await claimed(storage, T0 + 1000), [1], 'claimed after that');
  });

  it('pause and release: one that is held is reported to its worker, and paused when that releases it', async (storage) => {
    await register(storage);
    await enqueue(storage, execution(1));
    await claim(storage);
    same([await pause(storage, 1), await toPause(storage)], ['running', [executionId(1)]], 'asked for');
    await release(storage, 1, { status: 'waiting', dueAt: T0 });
    same((await storage.executions.get(executionId(1)))?.status, 'paused', 'the status');
    same([await claimed(storage), await toPause(storage)], [[], []], 'claimed, and asked for');
    await resume(storage, 1);
    same(await claimed(storage), [1], 'claimed after it is resumed');
    await pause(storage, 1);
    await resume(storage, 1);
    same(await toPause(storage), [], 'asked for after a pause that ended before the release');
    await pause(storage, 1);
    same(await commitOne(storage, { ...entry(1, { end: end() }), epoch: 2 }), 'stored', 'its end');
    same([await pause(storage, 1), await resume(storage, 1)], ['completed', 'completed'], 'after its end');
  });

  it('pause: what is freed from a dead worker is paused when the next one releases it', async (storage) => {
    await register(storage);
    await enqueue(storage, execution(1));
    await claim(storage);
    await pause(storage, 1);
    await storage.workers.unregister(WORKER, T0);
    await register(storage);
    const [found] = await claim(storage);
    if (found) {
      same(found.pauseRequested, true, 'the claim says so');
      await release(storage, 1, { status: 'running', dueAt: T0 }, { epoch: 2 });
    }
    same((await storage.executions.get(executionId(1)))?.status, 'paused', 'the status');
    same(await claimed(storage), [], 'claimed');
  });

  it('pause and resume: each scope is ended by itself', async (storage) => {
    await register(storage);
    await enqueue(storage, execution(1));
    await pause(storage, 1);
    await storage.executions.pause(executionId(1), 'ensemble');
    same(await storage.executions.resume(executionId(1), 'all'), 'paused', 'by a scope that has not paused it');
    same(await resume(storage, 1), 'paused', 'while its ensemble is paused');
    same(await storage.executions.resume(executionId(1), 'ensemble'), 'queued', 'after both');
  });

  it('pauseAll and resumeAll: those of an ensemble, or all, a portion at a time', async (storage) => {
    await register(storage);
    for (const number of [1, 2, 3]) await enqueue(storage, execution(number));
    await enqueue(storage, execution(4, { ensemble: 'bills' }));
    await pause(storage, 1);
    await accept(storage, execution(5, { ensemble: 'mails' }));
    const { pauseAll, resumeAll } = storage.executions;
    same([await pauseAll('ensemble', 'orders', 2), await pauseAll('ensemble', 'orders', 2)], [2, 1], 'of an ensemble');
    same(await pauseAll('ensemble', 'orders', 2), 0, 'when none is left');
    same(await pauseAll('all', undefined, 10), 5, 'all, with one that is held');
    same(await toPause(storage), [executionId(5)], 'asked for');
    same(await resumeAll('all', [], 10), 5, 'when not all are paused any more');
    same([await claimed(storage), await toPause(storage)], [[4], []], 'claimed, and asked for');
    same(await resumeAll('ensemble', ['orders'], 10), 0, 'while the ensemble is paused');
    same([await resumeAll('ensemble', ['bills'], 10), await claimed(storage)], [3, [2, 3]], 'after that');
    same([await resume(storage, 1), await claimed(storage)], ['queued', [1]], 'the one that was paused by itself');
  });

  it('pause and requestCancel: a cancellation ends the pause, and one that is cancelled is not paused', async (storage) => {
    await register(storage);
    for (const number of [1, 2]) {
      await enqueue(storage, execution(number));
      await claim(storage);
      await release(storage, number, { status: 'waiting', dueAt: T0 + 90_000 });
    }
    const cancelled = end({ status: 'cancelled' });
    await pause(storage, 1);
    same(await storage.executions.requestCancel(executionId(1), T0, cancelled), 'waiting', 'the status after it');
    await storage.executions.requestCancel(executionId(2), T0, cancelled);
    same(await pause(storage, 2), 'waiting', 'the status of the other');
    same(await claimed(storage), [1, 2], 'claimed');
  });

  it('pause: an execution under limits gives its slot back, and needs one after that', async (storage) => {
    await register(storage);
    const limits = [{ name: 'orders', key: 'a', max: 1, since: 1 }];
    for (const number of [1, 2])
      await enqueue(storage, execution(number, { seed: String(number).padStart(32, '0'), limits }));
    same(await claimed(storage), [1], 'claimed');
    await pause(storage, 1);
    await release(storage, 1, { status: 'waiting', dueAt: T0 });
    same(await claimed(storage), [2], 'claimed while it is paused');
    await resume(storage, 1);
    same(await claimed(storage), [], 'claimed while the slot is taken');
    await commitOne(storage, entry(2, { end: end() }));
    same(await claimed(storage), [1], 'claimed after the end of the other');
  });
}
