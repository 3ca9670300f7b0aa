/** Measures and prints how many executions are completed a second while few or many are queued. */

import { cell, medianAndRange, whole } from '../statistics.mjs';

const QUEUED = [1000, 1_000_000];
const ALLOWANCE_MS = 300_000;

/** @param options - `rounds`, `seconds`, and `measure`, which runs a script on a fresh database */
export async function printBacklog({ rounds, seconds, measure }) {
  console.log(
    `| one step, completed a second (min..max) | ${QUEUED.map((count) => `${whole(count)} queued`).join(' | ')} |\n|---|---:|---:|`,
  );
  for (const [kind, title] of Object.entries({ sqlite: 'SQLite', postgres: 'Postgres' })) {
    const runs = QUEUED.map(() => []);
    let problem;
    for (let round = 1; round <= rounds; round++) {
      console.error(`round ${round} of ${rounds}: backlog on ${title}`);
      for (const [i, count] of QUEUED.entries()) {
        const options = { onPostgres: kind === 'postgres', timeoutMs: seconds * 2000 + ALLOWANCE_MS };
        const run = await measure(['durable/backlog.mjs', kind, String(count), String(seconds)], options);
        problem ??= run.unavailable ?? (run.failed && `failed: ${run.failed}`);
        runs[i].push(run.perSecond);
      }
    }
    const cells = problem ? [cell(problem), ''] : runs.map((all) => medianAndRange(all, whole));
    console.log(`| ${title} | ${cells.join(' | ')} |`);
  }
  console.log('');
}
