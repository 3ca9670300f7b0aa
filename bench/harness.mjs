/**
 * Measures one case in this process, one execution at a time, and prints one line of JSON.
 * Usage: node harness.mjs <module> <seconds> [argument...]
 *
 * A case is a module with `setup(arguments)`, which returns `run()` (it throws when the result is wrong) and, if a run consists of
 * many equal parts, their number as `units`.
 */

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [module, secondsText, ...rest] = process.argv.slice(2);
const seconds = Number(secondsText);
const { setup } = await import(pathToFileURL(resolve(module)).href);
const { run, units = 1 } = await setup(rest);

// Throughput reads the clock once per batch. Reading it after each execution would distort the fastest case.
let batch = 1;
await phase(Math.max(1, seconds * 0.4), (ms) => {
  if (ms < 2) batch *= 2;
});

const cpuBefore = process.cpuUsage();
const { count, elapsedMs } = await phase(seconds, () => {});
const cpu = process.cpuUsage(cpuBefore);
const latencies = await measureLatencies(Math.max(1, seconds * 0.4));

console.log(
  JSON.stringify({
    perSecond: (count / elapsedMs) * 1000,
    usPerUnit: (elapsedMs * 1000) / (count * units),
    p50Us: percentile(latencies, 0.5),
    p99Us: percentile(latencies, 0.99),
    cpuUs: (cpu.user + cpu.system) / count,
    cpuUsPerUnit: (cpu.user + cpu.system) / (count * units),
    peakRssMb: process.resourceUsage().maxRSS / 1024,
  }),
);
process.exit(0);

async function phase(length, afterBatch) {
  let count = 0;
  const start = performance.now();
  for (let now = start; now < start + length * 1000; ) {
    for (let i = 0; i < batch; i++) await run();
    count += batch;
    const after = performance.now();
    afterBatch(after - now);
    now = after;
  }
  return { count, elapsedMs: performance.now() - start };
}

// A ring buffer that is allocated at the start, so that the measurement does not grow the heap.
async function measureLatencies(length) {
  const ring = new Float64Array(1_000_000);
  let count = 0;
  const start = performance.now();
  for (let before = start; before < start + length * 1000; count++) {
    await run();
    const after = performance.now();
    ring[count % ring.length] = (after - before) * 1000;
    before = after;
  }
  return ring.subarray(0, Math.min(count, ring.length)).sort();
}

function percentile(sorted, share) {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}
