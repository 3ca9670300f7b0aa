/** A refused write of one run is a sign that the process was considered dead: its other runs stop at once, not at the next renewal. */

import { expect, it } from 'vitest';
import { hostTurn, manualClock } from '../../src/adapters/clock/manual-clock.ts';
import { embeddedEngine, memoryStorage } from '../../src/index.ts';
import { createOrchestrator } from '../../src/orchestrator/create-orchestrator.ts';
import { changeStorage } from '../../src/testing-kit/processes/change-storage.ts';

it('the other runs of the process stop, and nothing waits for the next renewal', async () => {
  const clock = manualClock();
  const inner = memoryStorage({ shared: true });
  let worker = '';
  const storage = changeStorage(inner, {
    workers: {
      register(id, about) {
        worker = id;
        return inner.workers.register(id, about);
      },
    },
  });
  const ended: (() => void)[] = [];
  const aborted: string[] = [];
  const orchestrator = createOrchestrator({
    ...{ storage, clock, logger: false as const, engine: embeddedEngine({ leaseMs: 60_000 }) },
    ensembles: [{ name: 'held', flow: [{ agent: 'a', operation: 'code', config: { script: 'hold' } }] }],
    scripts: {
      hold: ({ signal, input }) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => aborted.push(input.nr));
          ended.push(() => resolve(null));
        }),
    },
  });
  for (const nr of ['one', 'two']) await orchestrator.start('held', { nr });
  for (let turn = 0; turn < 10; turn++) await hostTurn();
  expect(ended).toHaveLength(2);
  // Another process considers it dead.
  await inner.workers.unregister(worker, clock.now());
  ended[0]?.();
  for (let turn = 0; turn < 20; turn++) await hostTurn();
  expect(aborted).toContain('two');
  void orchestrator.close({ grace: 0 });
});
