/**
 * A steady mixed load for a long time, with bounds: `npm run soak`, by hand before a release. 50 executions a second on a SQLite file:
 * some retry, some walk a list, some wait for a timer or a signal, and some have a child. It fails if an execution does not end as it
 * should, if the heap or the process becomes too large, if either still grows in the second half, or if a turn of the event loop is long.
 * Usage: npm run soak [-- minutes], 60 by default
 */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const minutes = Number(process.argv[2] ?? 60);
if (!(minutes > 0)) throw new TypeError(`npm run soak -- <minutes>: a number above 0, not ${process.argv[2]}`);
if (!globalThis.gc) {
  const args = ['--expose-gc', fileURLToPath(import.meta.url), String(minutes)];
  process.exit(spawnSync(process.execPath, args, { stdio: 'inherit' }).status ?? 1);
}

const EVERY_MS = 20;
const SAMPLES = 60;
const MAX_HEAP_MB = 40;
const MAX_PROCESS_MB = 300;
/** How much larger the second half may be than the first, which includes the warm-up. */
const MAX_GROWTH = 1.15;
const MAX_TURN_MS = 250;

const ensembles = [
  { name: 'plain', flow: [code('a'), code('b', { input: { n: '${a.output}' } })] },
  { name: 'retries', flow: [code('flaky', { retry: { maxAttempts: 3, backoff: 'fixed', delay: 200 } })] },
  { name: 'list', flow: [{ foreach: '${input.items}', concurrency: 5, steps: [code('a', { name: 'each' })] }] },
  { name: 'timer', flow: [{ sleep: '2s' }, code('a')] },
  { name: 'signal', flow: [{ wait: 'go', timeout: '1m' }, code('a')] },
  { name: 'parent', flow: [{ ensemble: 'plain', name: 'child' }, code('a')] },
  { name: 'fails', flow: [code('broken')] },
];

function code(script, more = {}) {
  return { agent: script, operation: 'code', config: { script }, ...more };
}

const tried = new Set();
const scripts = {
  a: () => 1,
  b: ({ input }) => input,
  flaky({ execution }) {
    if (tried.delete(execution.id)) return 'second';
    tried.add(execution.id);
    throw new Error('the first attempt fails');
  },
  broken() {
    throw new Error('as it should');
  },
};

const { createOrchestrator } = await import(pathToFileURL(join(root, 'dist/index.js')).href);
const { sqliteStorage } = await import(pathToFileURL(join(root, 'dist/sqlite.js')).href);
const folder = mkdtempSync(join(tmpdir(), 'soak-'));
const orchestrator = createOrchestrator({
  ...{ ensembles, scripts, logger: false, retention: '5m' },
  storage: sqliteStorage({ path: join(folder, 'soak.db') }),
});
await orchestrator.ready();

let [started, ended, longest] = [0, 0, 0];
const wrong = [];
const problems = [];
const samples = [];

function start() {
  const { name } = ensembles[started % ensembles.length];
  started += 1;
  const run = async () => {
    const handle = await orchestrator.start(name, { items: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] });
    if (name === 'signal') {
      await sleep(500);
      await orchestrator.executions.signal(handle.id, 'go', { n: 1 });
    }
    const { status } = await handle.result();
    if (status !== (name === 'fails' ? 'failed' : 'completed')) wrong.push(`${name}: ${status}`);
  };
  run()
    .catch((error) => wrong.push(`${name}: ${error.message}`))
    .finally(() => {
      ended += 1;
    });
}

async function sample() {
  // So that neither the collection nor its effect on the next turn counts as a long turn.
  globalThis.gc();
  await sleep(50);
  const { heapUsed, rss } = process.memoryUsage();
  samples.push({ heap: heapUsed / 2 ** 20, process: rss / 2 ** 20 });
  const { heap, process: whole } = samples.at(-1);
  console.log(
    `${started} started, ${ended} ended, heap ${heap.toFixed(1)} MB, process ${whole.toFixed(0)} MB, longest turn ${longest.toFixed(0)} ms`,
  );
}

const begun = performance.now();
const everyMs = (minutes * 60_000) / SAMPLES;
let nextSample = everyMs;
for (let last = begun; ; ) {
  const passed = performance.now() - begun;
  if (passed >= minutes * 60_000) break;
  longest = Math.max(longest, performance.now() - last - EVERY_MS);
  while (started < passed / EVERY_MS) start();
  if (passed >= nextSample) {
    await sample();
    nextSample += everyMs;
  }
  last = performance.now();
  await sleep(EVERY_MS);
}
for (let waited = 0; ended < started && waited < 70_000; waited += 100) await sleep(100);
await orchestrator.close();
rmSync(folder, { recursive: true, force: true });

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const half = Math.floor(samples.length / 2);
for (const [what, max] of [
  ['heap', MAX_HEAP_MB],
  ['process', MAX_PROCESS_MB],
]) {
  const values = samples.map((one) => one[what]);
  const [first, second, most] = [median(values.slice(0, half)), median(values.slice(half)), Math.max(...values)];
  if (most > max) problems.push(`the ${what} had ${most.toFixed(1)} MB, more than ${max}`);
  if (second > first * MAX_GROWTH)
    problems.push(`the ${what} grew from ${first.toFixed(1)} to ${second.toFixed(1)} MB`);
}
if (ended < started) problems.push(`${started - ended} executions did not end`);
if (wrong.length > 0) problems.push(`${wrong.length} ended otherwise, such as ${wrong[0]}`);
if (longest > MAX_TURN_MS) problems.push(`a turn of the event loop took ${longest.toFixed(0)} ms`);
console.log(
  problems.length > 0 ? `FAILED\n${problems.join('\n')}` : `passed: ${started} executions in ${minutes} minutes`,
);
process.exit(problems.length > 0 ? 1 : 0);
