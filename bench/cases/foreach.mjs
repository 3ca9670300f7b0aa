/** One `foreach` over 10,000 items with one trivial step each, in memory or with each item durable in a SQLite file. */

import { join } from 'node:path';
import { importStore } from '../durable/library-store.mjs';
import { ownFolder } from '../durable/own-folder.mjs';
import { importLibrary } from '../library.mjs';

const ITEMS = 10_000;

/** @param concurrency - number of items that run at the same time; @param kind - `memory` or `sqlite` */
export async function setup([concurrency, kind = 'memory']) {
  const { createOrchestrator } = await importLibrary();
  const steps = [{ agent: 'increment', operation: 'code', config: { script: 'increment' } }];
  const orchestrator = createOrchestrator({
    storage: await open(kind),
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
      if (status !== 'completed' || metrics.agents !== ITEMS) throw new Error(`the status of the run is ${status}`);
    },
  };
}

async function open(kind) {
  if (kind === 'memory') return (await importLibrary()).memoryStorage({ keep: 5 });
  const { sqliteStorage } = await importStore('sqlite');
  return sqliteStorage({ path: join(ownFolder(), 'library.db') });
}
