/**
 * A separate process that runs ensembles with a reference: `component-child CONNECTION`. Each execution reads the reference twice, with a pause in
 * between. The process prints a line of JSON for each: when it began and ended (Unix ms), and the two versions. It runs until it is killed.
 */

import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { postgresStorage } from '../../src/adapters/storage/postgres/postgres-storage.ts';
import { createOrchestrator } from '../../src/orchestrator/create-orchestrator.ts';

const [, , url = ''] = process.argv;
const orchestrator = createOrchestrator({
  storage: postgresStorage({ url }),
  logger: false,
  scripts: { read: ({ config }) => config.text ?? null, pause: () => sleep(100).then(() => null) },
  ensembles: [
    `
name: twice
flow:
  - { agent: first, operation: code, config: { script: read, text: "prompt://greet@production" } }
  - { agent: pause, operation: code, config: { script: pause } }
  - { agent: second, operation: code, config: { script: read, text: "prompt://greet@production" } }
outputs: { versions: ["\${first.output}", "\${second.output}"] }
`,
  ],
});
for (;;) {
  const began = Date.now();
  const { output, components, error } = await orchestrator.execute('twice');
  const used = components?.map(({ version }) => version);
  writeSync(1, `${JSON.stringify({ began, ended: Date.now(), output, used, error: error?.message })}\n`);
}
