/**
 * Measures the time from the start of a process to the first step that it resumes, after the previous process was killed with
 * SIGKILL in the second of two steps. Prints one line of JSON.
 * Usage: node durable/resume.mjs <what>, where <what> is
 *   `node`: a process that does nothing; `import-sqlite`, `import-postgres`: a process that only imports this library and its driver;
 *   `sqlite`; `postgres`, with BENCH_POSTGRES as the URL of an empty database
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { printMeasured, unavailable } from './unavailable.mjs';

const script = fileURLToPath(new URL('./resume-process.mjs', import.meta.url));
const root = process.env.BENCH_FOLDER ?? fileURLToPath(new URL('../node_modules/', import.meta.url));
const what = process.argv[2];
const children = [];
const folder = mkdtempSync(join(root, '.bench-'));
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

await printMeasured(measure);

async function measure() {
  if (what === 'node') return { ms: await timeTo('up', start('-e', 'process.stdout.write("up\\n")')) };
  if (what.startsWith('import-')) {
    const imported = start(script, 'import', what.slice('import-'.length));
    return { ms: await timeTo('up', imported) };
  }
  const where = what === 'sqlite' ? join(folder, 'resume.db') : process.env.BENCH_POSTGRES;

  const begun = start(script, what, where, 'begin');
  expect(await begun.next(), 'first');
  expect(await begun.next(), 'second');
  begun.child.kill('SIGKILL');
  await once(begun.child, 'exit');

  const resumed = start(script, what, where, 'resume');
  const ms = await timeTo('second', resumed);
  expect(await resumed.next(), 'completed');
  await once(resumed.child, 'exit');
  return { ms };
}

/** @returns the child process, the time of its start, and `next()`, which returns its next line */
function start(...args) {
  const startedAt = performance.now();
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`\`${args.join(' ')}\` ended early`);
    return value;
  };
  return { child, startedAt, next };
}

async function timeTo(line, { startedAt, next }) {
  const said = await next();
  const ms = performance.now() - startedAt;
  expect(said, line);
  return ms;
}

function expect(line, wanted) {
  if (line.startsWith('unavailable ')) throw unavailable(line.slice('unavailable '.length));
  if (line !== wanted) throw new Error(`the process printed \`${line}\`, not \`${wanted}\``);
}
