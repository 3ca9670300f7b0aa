/**
 * A process that runs executions whose notifications go to a receiver. `node delivery-worker.mjs JSON`. It starts executions, a few at a time,
 * until it is killed or has started as many as it is told to.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { fastClock } from './fast-clock.mjs';
import { loadLibrary } from './library.mjs';
import { openStore } from './open-store.mjs';

const { store, url, factor, executions, width } = JSON.parse(process.argv[2]);
const { createOrchestrator, nodeHttp } = await loadLibrary();
const orchestrator = createOrchestrator({
  clock: fastClock(factor),
  storage: await openStore(store),
  http: nodeHttp({ allow: ['127.0.0.1'] }),
  logger: false,
  secrets: { HOOK_SECRET: 'a long random secret' },
  env: { HOOK_URL: url },
  scripts: { work: ({ input }) => input.number },
  ensembles: [
    `
name: notifying
state: { initial: { last: 0 } }
notifications:
  - { type: webhook, url: "\${env.HOOK_URL}", secret: "\${env.HOOK_SECRET}", retries: 2, timeout: 30s,
      events: [execution.started, agent.completed, state.updated, execution.completed] }
flow:
  - { agent: work, operation: code, config: { script: work }, setState: { last: "\${work.output}" } }
outputs: { number: "\${work.output}" }
`,
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
const numbers = Array.from({ length: executions }, (_, number) => number);
await Promise.all(
  Array.from({ length: width }, async () => {
    for (let number = numbers.shift(); number !== undefined; number = numbers.shift()) {
      const started = await orchestrator.start('notifying', { number }, { events: false }).catch(() => undefined);
      await started?.result().catch(() => undefined);
    }
  }),
);
// Then it only sends, until it is killed.
setInterval(() => {}, 60_000);
