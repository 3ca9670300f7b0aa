/**
 * The process that `resume.mjs` kills and starts again.
 * Usage: node durable/resume-process.mjs sqlite | postgres <file or URL> begin | resume, or: import sqlite | postgres
 *
 * Prints `first` and `second` as the steps begin. `begin` stays in the second step. `resume` completes it, prints the status and ends.
 */

import { importLibrary } from '../library.mjs';
import { importStore, openStore } from './library-store.mjs';
import { isUnavailable } from './unavailable.mjs';

/** Ends this process if its parent has exited and nothing else ends it. */
const MAX_LIFE_MS = 60_000;

const [kind, where, role] = process.argv.slice(2);
setTimeout(() => process.exit(1), MAX_LIFE_MS).unref();
// A pipe is written synchronously, so the line is out before the process is killed.
const say = (line) => process.stdout.write(`${line}\n`);

const work = kind === 'import' ? importAll : run;
await work().catch((error) => {
  if (!isUnavailable(error)) throw error;
  say(`unavailable ${error.message}`);
});

async function importAll() {
  await importLibrary();
  await importStore(where);
  if (where === 'postgres') await import('pg');
  say('up');
}

async function run() {
  const { createOrchestrator } = await importLibrary();
  const { storage, close } = await openStore(kind, where);
  const orchestrator = createOrchestrator({
    storage,
    ensembles: [
      {
        name: 'bench',
        flow: ['first', 'second'].map((name) => ({ agent: name, operation: 'code', config: { script: name } })),
      },
    ],
    scripts: {
      first: () => say('first'),
      second() {
        say('second');
        // The timer keeps the process alive.
        return role === 'begin' ? new Promise(() => setInterval(() => {}, 60_000)) : 'done';
      },
    },
  });
  if (role === 'begin') return void (await orchestrator.start('bench'));
  orchestrator.on('execution.completed', async ({ data }) => {
    const { status } = await orchestrator.executions.get(data.id);
    await orchestrator.close();
    await close();
    say(status);
  });
  await orchestrator.ready();
}
