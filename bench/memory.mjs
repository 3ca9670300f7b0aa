/**
 * Runs a million executions on a storage that keeps 10,000, and prints a table of the memory of the process.
 * Usage: node --expose-gc memory.mjs [executions]
 */

import { setImmediate } from 'node:timers/promises';
import { importLibrary } from './library.mjs';

const EXECUTIONS = Number(process.argv[2] ?? 1_000_000);
const KEEP = 10_000;

const { createOrchestrator, memoryStorage } = await importLibrary();
const flow = Array.from({ length: 5 }, (_, i) => ({
  agent: `s${i}`,
  operation: 'code',
  config: { script: 'increment' },
}));
const orchestrator = createOrchestrator({
  storage: memoryStorage({ keep: KEEP }),
  ensembles: [{ name: 'bench', flow }],
  scripts: { increment: async ({ input }) => input.x + 1 },
});

console.log('| executions | heap in use, MB | resident set, MB |\n|---:|---:|---:|');
await report(0);
for (let done = 0; done < EXECUTIONS; ) {
  const next = Math.min(EXECUTIONS, done + EXECUTIONS / 10);
  for (; done < next; done++) await orchestrator.execute('bench', { x: done });
  await report(done);
}
await orchestrator.close();

async function report(done) {
  await setImmediate();
  globalThis.gc();
  const { heapUsed, rss } = process.memoryUsage();
  const megabytes = (bytes) => (bytes / 2 ** 20).toFixed(1);
  console.log(`| ${done.toLocaleString('en')} | ${megabytes(heapUsed)} | ${megabytes(rss)} |`);
}
