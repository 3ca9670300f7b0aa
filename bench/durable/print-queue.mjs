/** Measures and prints the queue between two processes on Postgres. */

import { cell, medianAndRange, significant, whole } from '../statistics.mjs';

const ALLOWANCE_MS = 180_000;

/** @param options - `rounds`, `seconds`, and `measure`, which runs a script on a fresh database */
export async function printQueue({ rounds, seconds, measure }) {
  const runs = [];
  for (let round = 1; round <= rounds; round++) {
    console.error(`round ${round} of ${rounds}: queue`);
    const options = { onPostgres: true, timeoutMs: seconds * 4000 + ALLOWANCE_MS };
    const run = await measure(['durable/queue.mjs', String(seconds)], options);
    const problem = run.unavailable ?? (run.failed && `failed: ${run.failed}`);
    if (problem) return console.log(`Queue on Postgres: ${cell(problem)}.\n`);
    runs.push(run);
  }
  const values = (key, format) =>
    medianAndRange(
      runs.map((run) => run[key]),
      format,
    );
  console.log('| queue on Postgres, two processes | median (min..max) |\n|---|---:|');
  console.log(`| \`start()\` to the step in the other process, p50, ms | ${values('p50Ms', significant)} |`);
  console.log(`| the same, p99 of ${runs[0].hops}, ms | ${values('p99Ms', significant)} |`);
  console.log(`| enqueued, 50 at a time, executions/s | ${values('enqueuedPerSecond', whole)} |`);
  console.log(`| worked off from a backlog of 5,000, executions/s | ${values('drainedPerSecond', whole)} |\n`);
}
