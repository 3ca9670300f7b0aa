/**
 * Measures one case of durable execution in this process, and prints one line of JSON.
 * Usage: node durable/harness.mjs <module> <seconds> <executions at a time> [argument]
 *
 * A case is a module with `setup({ argument, concurrency, folder, postgres })`, which returns `run(number)` (it throws when the
 * result is wrong), `file` (the SQLite file; undefined if the tables are in `postgres`), `check(executions)` (checks whether
 * everything is stored), `close()`, and a `note` for the table.
 * BENCH_POSTGRES is the URL of an empty database.
 */

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { percentile } from '../statistics.mjs';
import { postgresCommits, sqliteCommits } from './commits.mjs';
import { ownFolder } from './own-folder.mjs';
import { printMeasured } from './unavailable.mjs';

const [module, secondsText, concurrencyText, argument] = process.argv.slice(2);
const seconds = Number(secondsText);
const concurrency = Number(concurrencyText);
const folder = ownFolder();

await printMeasured(measure);

async function measure() {
  const postgres = process.env.BENCH_POSTGRES;
  const { setup } = await import(pathToFileURL(resolve(module)).href);
  const measured = await setup({ argument, concurrency, folder, postgres });
  let started = 0;
  const phase = async (length, latencies) => {
    const start = performance.now();
    const end = start + length * 1000;
    const loop = async () => {
      for (let before = performance.now(); before < end; ) {
        await measured.run(started++);
        const after = performance.now();
        latencies.push(after - before);
        before = after;
      }
    };
    await Promise.all(Array.from({ length: concurrency }, loop));
    return performance.now() - start;
  };

  await phase(Math.max(1, seconds * 0.4), []);
  const commits = measured.file ? sqliteCommits(measured.file) : await postgresCommits(postgres);
  const latencies = [];
  const commitsBefore = await commits.read();
  const cpuBefore = process.cpuUsage();
  const elapsedMs = await phase(seconds, latencies);
  const cpu = process.cpuUsage(cpuBefore);
  const commitsMade = (await commits.read()) - commitsBefore;
  await commits.close();
  await measured.check(started);
  await measured.close?.();

  latencies.sort((a, b) => a - b);
  return {
    perSecond: (latencies.length / elapsedMs) * 1000,
    p50Ms: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
    commits: commitsMade / latencies.length,
    cpuMs: (cpu.user + cpu.system) / 1000 / latencies.length,
    peakRssMb: process.resourceUsage().maxRSS / 1024,
    note: measured.note,
  };
}
