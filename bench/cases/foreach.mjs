/** One `foreach` over 10,000 items with one trivial step each. */

import { importLibrary } from '../library.mjs';

const ITEMS = 10_000;

/** @param concurrency - items at work at a time */
export async function setup([concurrency]) {
  const { createOrchestrator, memoryStorage } = await importLibrary();
  const steps = [{ agent: 'increment', operation: 'code', config: { script: 'increment' } }];
  const orchestrator = createOrchestrator({
    storage: memoryStorage({ keep: 5 }),
    ensembles: [
      { name: 'bench', flow: [{ foreach: '${input.items}', concurrency: Number(concurrency), steps, name: 'all' }] },
    ],
    scripts: { increment: async () => 1 },
  });
  const items = Array.from({ length: ITEMS }, (_, i) => i);
  return {
    units: ITEMS,
    async run() {
      const { status, metrics } = await orchestrator.execute('bench', { items });
      if (status !== 'completed' || metrics.agents !== ITEMS) throw new Error(`the run came out as ${status}`);
    },
  };
}
