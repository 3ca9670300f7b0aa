/**
 * The process that `resume.mjs` kills and starts again.
 * Usage: node durable/resume-process.mjs sqlite | postgres <file or URL> begin | resume, or: import sqlite | postgres
 *
 * It prints `first` and `second` as the steps begin. `begin` stays in the second one; `resume` ends it, prints the status and ends.
 */

import { importLibrary } from '../library.mjs';
import { importStore, openStore } from './library-store.mjs';
import { isUnavailable } from './unavailable.mjs';

/** In case that whoever started it is gone, and nothing ends it. */
const LONGEST_LIFE_MS = 60_000;

const [kind, where, role] = process.argv.slice(2);
setTimeout(() => process.exit(1), LONGEST_LIFE_MS).unref();
// A pipe is written at once: what was said is out, whatever happens next.
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
        // A timer, so that the process stays.
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
