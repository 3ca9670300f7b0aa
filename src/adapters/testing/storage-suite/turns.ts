/** The storage suite's cases of fairness: ensembles take turns when executions are claimed. */

import type { ClaimedExecution } from '../../../engine/model/stored-execution.ts';
import { claim, enqueue, execution, join, OWNER, type StorageCase, same, starting, T0 } from './context.ts';

/** 1,000 of `busy`, due long before the others. */
const busy = () =>
  Array.from({ length: 1000 }, (_, number) =>
    starting(execution(number, { ensemble: 'busy' }), { release: { status: 'queued', dueAt: T0 + number } }),
  );

const ensembles = (claimed: readonly ClaimedExecution[]) => claimed.map(({ execution: { ensemble } }) => ensemble);

export function turnCases(it: StorageCase): void {
  it('claim: one execution of an ensemble does not wait for 1,000 of another', async (storage) => {
    await join(storage);
    await storage.commit(OWNER, busy());
    await enqueue(storage, execution(5000, { ensemble: 'rare' }), T0 + 5000);
    const claimed = ensembles(await claim(storage, { limit: 10 }));
    same([claimed.length, claimed.filter((name) => name === 'rare').length], [10, 1], 'claimed, and of the rare one');
  });

  it('claim: nor does it when they are claimed one at a time', async (storage) => {
    await join(storage);
    await storage.commit(OWNER, busy());
    await enqueue(storage, execution(5000, { ensemble: 'rare' }), T0 + 5000);
    const claimed: string[] = [];
    for (let times = 0; times < 10; times++) claimed.push(...ensembles(await claim(storage, { limit: 1 })));
    same([claimed.length, claimed.includes('rare')], [10, true], 'claimed, and whether the rare one is among them');
  });

  it('claim: of many ensembles, each comes within a few turns', async (storage) => {
    await join(storage);
    await storage.commit(OWNER, busy());
    for (let number = 0; number < 20; number++)
      await enqueue(storage, execution(5000 + number, { ensemble: `rare-${number}` }), T0 + 5000 + number);
    const claimed: string[] = [];
    for (let times = 0; times < 10; times++) claimed.push(...ensembles(await claim(storage, { limit: 5 })));
    same(new Set(claimed).size, 21, 'different ensembles among 50');
  });

  it('claim: what the others leave of the limit is filled up', async (storage) => {
    await join(storage);
    await storage.commit(OWNER, busy());
    await enqueue(storage, execution(5000, { ensemble: 'rare' }), T0 + 5000);
    const claimed = ensembles(await claim(storage, { limit: 100 }));
    same([claimed.length, claimed.includes('rare')], [100, true], 'claimed, and whether the rare one is among them');
  });

  it('claim: an ensemble of which nothing is due, or nothing for this owner, takes no place', async (storage) => {
    await join(storage);
    await storage.commit(OWNER, busy());
    await enqueue(storage, execution(5000, { ensemble: 'later' }), T0 + 1e9);
    await enqueue(storage, execution(5001, { ensemble: 'elsewhere', version: 'other' }), T0);
    const claimed = ensembles(await claim(storage, { limit: 20, except: ['other'] }));
    same(claimed, Array.from({ length: 20 }).fill('busy'), 'claimed');
  });
}
