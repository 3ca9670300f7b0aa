/**
 * Measures the memory of one `foreach` over many items on a SQLite file, each item durable, 50 at a time. The process is killed
 * in the middle, and another process resumes the execution. Prints a table.
 * Usage: node --expose-gc durable/items.mjs [items, 100000]
 */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildLibrary, importLibrary } from '../library.mjs';
import { openStore } from './library-store.mjs';
import { ownFolder } from './own-folder.mjs';

const LOOKS = 10;
const [itemsText = '100000', role, file] = process.argv.slice(2);
const items = Number(itemsText);

if (role) await work();
else await measure();

async function measure() {
  buildLibrary();
  const path = join(ownFolder(), 'items.db');
  console.log('| process | items done | heap in use, MB | resident set, MB |\n|---|---:|---:|---:|');
  const half = items / 2;
  await run('first', path, ({ done }, child) => {
    if (done >= half) child.kill('SIGKILL');
  });
  const { done, output } = await run('second', path, () => {});
  if (output !== items) throw new Error(`expected ${items} items, not ${output}`);
  console.log(`\nThe second process ran ${done.toLocaleString('en')} of ${items.toLocaleString('en')} items.`);
}

/** @returns the last message of the process */
async function run(role, path, onLook) {
  const child = fork(fileURLToPath(import.meta.url), [itemsText, role, path], { execArgv: ['--expose-gc'] });
  let last;
  child.on('message', (look) => {
    last = look;
    if (look.heapMb === undefined) return;
    console.log(
      `| ${role} | ${look.done.toLocaleString('en')} | ${look.heapMb.toFixed(1)} | ${look.rssMb.toFixed(0)} |`,
    );
    onLook(look, child);
  });
  const [code] = await once(child, 'exit');
  if (role === 'second' && code !== 0) throw new Error(`the ${role} process ended with ${code}`);
  return last;
}

/** One of the two processes: the first starts the execution, the second resumes it. */
async function work() {
  const { createOrchestrator } = await importLibrary();
  const { storage } = await openStore('sqlite', file);
  let done = 0;
  const orchestrator = createOrchestrator({
    storage,
    ensembles: [
      {
        name: 'many',
        flow: [
          {
            foreach: '${input.items}',
            concurrency: 50,
            collect: false,
            name: 'all',
            steps: [{ agent: 'one', operation: 'code', config: { script: 'one' } }],
          },
        ],
        outputs: { done: '${all.output}' },
      },
    ],
    scripts: {
      async one() {
        done += 1;
        if (done % (items / LOOKS) === 0) tell();
        return 1;
      },
    },
  });
  const tell = () => {
    globalThis.gc();
    const { heapUsed, rss } = process.memoryUsage();
    process.send({ done, heapMb: heapUsed / 1e6, rssMb: rss / 1e6 });
  };
  const ended = new Promise((resolve) => orchestrator.on('execution.completed', ({ data }) => resolve(data)));
  await orchestrator.ready();
  if (role === 'first') await orchestrator.start('many', { items: Array.from({ length: items }, (_, i) => i) });
  const { output } = await ended;
  process.send({ done, output: output.done });
  await orchestrator.close();
  process.disconnect();
}
