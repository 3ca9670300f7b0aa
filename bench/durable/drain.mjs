/**
 * Measures how fast one process works off a backlog of jobs without work, and prints one line of JSON: `{ enqueuedPerSecond,
 * drainedPerSecond, most }`, where `most` is the most jobs of one key that ran at once.
 * Usage: node durable/drain.mjs <module> <jobs> <jobs at a time> <keys> <longest time in seconds>, with BENCH_POSTGRES as the URL of
 * an empty database, and REDIS_URL.
 *
 * A case is a module with `setup({ postgres, redis, keys, concurrency, job })`. It returns `enqueue(key)`; `work()`, which begins to
 * work off what is queued, one job of a key at a time, and calls `job(key)` for each; and `close()`. Without `keys`, no key limits.
 */

import { resolve } from 'node:path';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { printMeasured } from './unavailable.mjs';

const [module, ...numbers] = process.argv.slice(2);
const [jobs, concurrency, keys, longest] = numbers.map(Number);
const ENQUEUED_AT_ONCE = 50;

await printMeasured(measure);

async function measure() {
  const { setup } = await import(pathToFileURL(resolve(module)).href);
  const running = new Map();
  let [ended, most, lastAt] = [0, 0, 0];
  const job = async (key) => {
    const count = (running.get(key) ?? 0) + 1;
    running.set(key, count);
    most = Math.max(most, count);
    await turn();
    running.set(key, running.get(key) - 1);
    ended += 1;
    lastAt = performance.now();
  };
  const redis = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379';
  const measured = await setup({ postgres: process.env.BENCH_POSTGRES, redis, keys, concurrency, job });

  const enqueuedFrom = performance.now();
  let next = 0;
  const loop = async () => {
    while (next < jobs) await measured.enqueue(`k${next++ % (keys || 1)}`);
  };
  await Promise.all(Array.from({ length: ENQUEUED_AT_ONCE }, loop));
  const enqueuedMs = performance.now() - enqueuedFrom;

  const from = performance.now();
  await measured.work();
  while (ended < jobs && performance.now() - from < longest * 1000) await sleep(20);
  // What was not worked off in the longest time counts as far as it came.
  const drainedMs = ended === jobs ? lastAt - from : performance.now() - from;
  const drained = ended;
  if (ended > jobs) throw new Error(`${ended} jobs ran, of ${jobs}`);
  if (keys > 0 && most > 1) throw new Error(`${most} jobs of one key ran at once`);
  await Promise.race([measured.close(), sleep(5000)]);
  return { enqueuedPerSecond: (jobs / enqueuedMs) * 1000, drainedPerSecond: (drained / drainedMs) * 1000, most };
}
