/**
 * Measures what a wake-up costs late in a loop, in ms of CPU time: of a round that sleeps and asks, or of an item of a `foreach`. Prints
 * one line of JSON: `{ early, late }`.
 * Usage: node durable/loops.mjs <memory|sqlite|postgres> <flat|foreach|parallel|items> <rounds or items>, with BENCH_POSTGRES as the URL of
 * an empty database
 */

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { importEntry, importLibrary } from '../library.mjs';
import { openStore } from './library-store.mjs';
import { ownFolder } from './own-folder.mjs';
import { printMeasured } from './unavailable.mjs';

const [kind, shape, count] = [process.argv[2], process.argv[3], Number(process.argv[4])];
/** How many wake-ups are measured together. */
const WINDOW = 100;
const SECONDS = 10;

const ask = (input) => ({ agent: 'ask', operation: 'code', config: { script: 'ask' }, input });
const poll = {
  while: '${(ask.output ?? 0) < input.count}',
  maxIterations: 1_000_000,
  steps: [{ sleep: `${SECONDS}s` }, ask('${(ask.output ?? 0) + 1}')],
};
const FLOWS = {
  flat: [poll],
  foreach: [{ foreach: [1], steps: [poll] }],
  parallel: [{ parallel: [poll, { name: 'beside', sleep: '3650d' }], waitFor: 'first' }],
  items: [
    {
      foreach: '${range(0, input.count)}',
      concurrency: 10,
      collect: false,
      steps: [{ sleep: `${SECONDS}s` }, ask('${item}')],
    },
  ],
};

await printMeasured(measure);

async function measure() {
  const { createOrchestrator, memoryStorage } = await importLibrary();
  const { manualClock } = await importEntry('testing');
  const where = kind === 'sqlite' ? join(ownFolder(), 'loops.db') : process.env.BENCH_POSTGRES;
  const { storage } = kind === 'memory' ? { storage: memoryStorage() } : await openStore(kind, where);
  const clock = manualClock();
  let asked = 0;
  const orchestrator = createOrchestrator({
    storage,
    clock,
    ensembles: [{ name: 'loop', flow: FLOWS[shape] }],
    scripts: {
      ask({ input }) {
        asked += 1;
        return input;
      },
    },
    logger: false,
  });
  const { id } = await orchestrator.start('loop', { count });
  const status = async () => (await storage.executions.getStatus(id)).status;
  const wakeUp = async () => {
    const before = asked;
    await clock.advance(SECONDS * 1000);
    while (asked === before) await sleep(1);
    while ((await status()) === 'running') await sleep(1);
  };
  const until = async (number) => {
    while (asked < number) await wakeUp();
  };
  const window = async () => {
    const begun = [asked, process.cpuUsage()];
    for (let i = 0; i < WINDOW && asked < count; i++) await wakeUp();
    const { user, system } = process.cpuUsage(begun[1]);
    return (user + system) / 1000 / (asked - begun[0]);
  };
  // The code is compiled by then, so that only the length of the history differs.
  const first = shape === 'items' ? 0 : 100;
  if (shape === 'items') {
    await until(Math.floor(count * 0.85));
    return { late: await window() };
  }
  await until(first);
  const early = await window();
  await until(count - 2 * WINDOW);
  const late = await window();
  if ((await status()) !== 'waiting') throw new Error(`the execution is ${await status()}`);
  return { early, late };
}
