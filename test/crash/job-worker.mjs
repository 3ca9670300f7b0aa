/**
 * A process that starts executions and works on jobs. `node job-worker.mjs JSON`. With a count it starts as
 * many executions that sleep, and as many that fail, and ends. Without one it creates the job that it is given, and works until it is killed.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { fastClock } from './fast-clock.mjs';
import { loadLibrary } from './library.mjs';
import { openStore } from './open-store.mjs';

const { store, factor, count = 0, job } = JSON.parse(process.argv[2]);
const AT_ONCE = 200;
const { createOrchestrator, embeddedEngine } = await loadLibrary();
const orchestrator = createOrchestrator({
  clock: fastClock(factor),
  storage: await openStore(store),
  engine: embeddedEngine({ queueLimit: 1_000_000 }),
  logger: false,
  scripts: {
    charge() {
      if (count > 0) throw new Error('the bank is down');
      return 'paid';
    },
  },
  ensembles: [
    // The processes that work on jobs have a newer definition than the one that starts.
    { name: 'sleeper', flow: [{ sleep: '300d' }, ...(count > 0 ? [] : [{ wait: 'later' }])] },
    { name: 'pay', flow: [{ agent: 'charge', operation: 'code', config: { script: 'charge' } }] },
  ],
});
for (;;) {
  try {
    await orchestrator.ready();
    break;
  } catch {
    await sleep(50);
  }
}
if (job) await orchestrator.jobs.create(job);
if (count === 0) setInterval(() => {}, 60_000);
for (let at = 0; at < count; at += AT_ONCE)
  await Promise.all(
    Array.from({ length: Math.min(AT_ONCE, count - at) }, async () => {
      await orchestrator.start('sleeper');
      await orchestrator.execute('pay').catch(() => undefined);
    }),
  );
if (count > 0) await orchestrator.close();
