/**
 * Measures how many executions of one step a process completes a second while many are queued. The queue keeps its length: what was
 * completed is queued again by SQL. Prints one line of JSON.
 * Usage: node durable/backlog.mjs <sqlite|postgres> <queued> <seconds>, with BENCH_POSTGRES as the URL of an empty database
 */

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { importLibrary } from '../library.mjs';
import { openCopies } from './copies.mjs';
import { openStore } from './library-store.mjs';
import { ownFolder } from './own-folder.mjs';
import { printMeasured } from './unavailable.mjs';

/** How many executions are queued again at once. */
const REFILL = 500;
const [kind, queued, seconds] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const folder = ownFolder();
const where = kind === 'sqlite' ? join(folder, 'backlog.db') : process.env.BENCH_POSTGRES;

await printMeasured(measure);

async function measure() {
  const first = await open({ concurrency: 0 });
  await first.orchestrator.start('hop', {});
  await first.close();
  const database = await openCopies(kind, where);
  await database.add(queued);
  await database.analyze();

  let completed = 0;
  const { orchestrator, close } = await open({ concurrency: 50 });
  orchestrator.on('execution.completed', () => {
    completed += 1;
  });
  let added = 0;
  const until = async (ms) => {
    for (const end = performance.now() + ms; performance.now() < end; await sleep(1)) {
      if (completed - added < REFILL) continue;
      added += REFILL;
      await database.add(REFILL);
    }
  };
  await orchestrator.ready();
  await until(400 * seconds);
  const [before, begun] = [completed, performance.now()];
  await until(1000 * seconds);
  const perSecond = ((completed - before) / (performance.now() - begun)) * 1000;
  await close();
  const left = await database.count('queued');
  await database.close();
  // The first execution and those that were under way at the end.
  if (Math.abs(left - (queued + added + 1 - completed)) > 100)
    throw new Error(`${completed} were completed, and ${left} of ${queued + added + 1} are left`);
  return { perSecond };
}

async function open(engine) {
  const { createOrchestrator, embeddedEngine } = await importLibrary();
  const { storage, close } = await openStore(kind, where);
  const orchestrator = createOrchestrator({
    storage,
    engine: embeddedEngine(engine),
    ensembles: [{ name: 'hop', flow: [{ agent: 's', operation: 'code', config: { script: 'step' } }] }],
    scripts: { step: () => 1 },
  });
  return {
    orchestrator,
    async close() {
      await orchestrator.close();
      await close();
    },
  };
}
