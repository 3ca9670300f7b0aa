/** Storage suite: fair claims. Ensembles take turns when executions are claimed. */

import type { ClaimedExecution } from '../../../engine/execution/stored-execution.ts';
import { claim, enqueue, execution, register, type StorageCase, same, starting, T0, WORKER } from '../context.ts';

/** 1,000 executions of `busy`, due long before the others. */
const busy = () =>
  Array.from({ length: 1000 }, (_, number) =>
    starting(execution(number, { ensemble: 'busy' }), { release: { status: 'queued', dueAt: T0 + number } }),
  );

const ensembles = (claimed: readonly ClaimedExecution[]) => claimed.map(({ execution: { ensemble } }) => ensemble);

export function turnCases(it: StorageCase): void {
  it('claim: one execution of an ensemble does not wait for 1,000 executions of another ensemble', async (storage) => {
    await register(storage);
    await storage.commit(WORKER, busy());
    await enqueue(storage, execution(5000, { ensemble: 'rare' }), T0 + 5000);
    const claimed = ensembles(await claim(storage, { limit: 10 }));
    same(
      [claimed.length, claimed.filter((name) => name === 'rare').length],
      [10, 1],
      'number of claimed executions, and of `rare` among them',
    );
  });

  it('claim: ensembles take turns also when executions are claimed one at a time', async (storage) => {
    await register(storage);
    await storage.commit(WORKER, busy());
    await enqueue(storage, execution(5000, { ensemble: 'rare' }), T0 + 5000);
    const claimed: string[] = [];
    for (let times = 0; times < 10; times++) claimed.push(...ensembles(await claim(storage, { limit: 1 })));
    same(
      [claimed.length, claimed.includes('rare')],
      [10, true],
      'number of claimed executions, and whether `rare` is among them',
    );
  });

  it('claim: each of many ensembles gets its turn within a few claims', async (storage) => {
    await register(storage);
    await storage.commit(WORKER, busy());
    for (let number = 0; number < 20; number++)
      await enqueue(storage, execution(5000 + number, { ensemble: `rare-${number}` }), T0 + 5000 + number);
    const claimed: string[] = [];
    for (let times = 0; times < 10; times++) claimed.push(...ensembles(await claim(storage, { limit: 5 })));
    same(new Set(claimed).size, 21, 'different ensembles among 50 claimed executions');
  });

  it('claim: one ensemble fills the places that other ensembles leave', async (storage) => {
    await register(storage);
    await storage.commit(WORKER, busy());
    await enqueue(storage, execution(5000, { ensemble: 'rare' }), T0 + 5000);
    const claimed = ensembles(await claim(storage, { limit: 100 }));
    same(
      [claimed.length, claimed.includes('rare')],
      [100, true],
      'number of claimed executions, and whether `rare` is among them',
    );
  });

  it('claim: an ensemble without due executions that the worker can run takes no place', async (storage) => {
    await register(storage);
    await storage.commit(WORKER, busy());
    await enqueue(storage, execution(5000, { ensemble: 'later' }), T0 + 1e9);
    await enqueue(storage, execution(5001, { ensemble: 'elsewhere', version: 'other' }), T0);
    const claimed = ensembles(await claim(storage, { limit: 20, excludeVersions: ['other'] }));
    same(claimed, Array.from({ length: 20 }).fill('busy'), 'claimed');
  });
}
