/** Measures and prints a claim from a million queued executions with 10,000 keys. */

import { cell, medianAndRange, significant, whole } from '../statistics.mjs';

const QUEUED = 1_000_000;
const ALLOWANCE_MS = 900_000;

/** @param options - `rounds`, and `measure`, which runs a script on a fresh database */
export async function printKeys({ rounds, measure }) {
  const runs = [];
  for (let round = 1; round <= rounds; round++) {
    console.error(`round ${round} of ${rounds}: ${whole(QUEUED)} queued in 10,000 keys`);
    const run = await measure(['durable/keys.mjs', String(QUEUED)], { onPostgres: true, timeoutMs: ALLOWANCE_MS });
    const problem = run.unavailable ?? (run.failed && `failed: ${run.failed}`);
    if (problem) return console.log(`Keys on Postgres: ${cell(problem)}.\n`);
    runs.push(run);
  }
  console.log(`| a claim of one of ${whole(QUEUED)} queued executions, ms | p50 (min..max) | p99 |\n|---|---:|---:|`);
  for (const [key, title] of Object.entries({ free: '10,000 keys', full: 'the same, 9,900 of them full' })) {
    const of = (part) =>
      medianAndRange(
        runs.map((run) => run[key][part]),
        significant,
      );
    console.log(`| ${title} | ${of('p50Ms')} | ${of('p99Ms')} |`);
  }
  console.log('');
}
