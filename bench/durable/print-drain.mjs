/** Measures and prints how fast one process works off a backlog, here and in other queues, with and without one job of a key at a time. */

import { cell, median, medianAndRange, whole } from '../statistics.mjs';

const [JOBS, AT_A_TIME, KEYS, LONGEST_SECONDS] = [10_000, 50, 1000, 30];
const ALLOWANCE_MS = 60_000;
const COLUMNS = ['enqueued/s (min..max)', 'worked off/s (min..max)', 'of the same without keys'];

/** @param options - the `rows` that were chosen, `rounds`, `missing` peers, and `measure`, which runs a script on a fresh database */
export async function printDrain({ rows, rounds, missing, measure }) {
  const cases = Object.entries(rows).map(([name, row]) => {
    const problem = missing[row.peer] && `could not be installed: ${missing[row.peer]}`;
    return { ...row, name, problem, runs: [] };
  });
  for (let round = 1; round <= rounds; round++) {
    for (const measured of cases) {
      if (measured.problem) continue;
      console.error(`round ${round} of ${rounds}: ${measured.name}`);
      const counts = [JOBS, AT_A_TIME, measured.argument === 'keys' ? KEYS : 0, LONGEST_SECONDS].map(String);
      const options = { onPostgres: true, timeoutMs: LONGEST_SECONDS * 1000 + ALLOWANCE_MS };
      const run = await measure(['durable/drain.mjs', measured.module, ...counts], options);
      measured.problem = run.unavailable ?? (run.failed && `failed: ${run.failed}`);
      if (!measured.problem) measured.runs.push(run);
    }
  }
  const head = `a backlog of ${whole(JOBS)} jobs in one process, ${AT_A_TIME} at a time`;
  console.log(`| ${[head, ...COLUMNS].join(' | ')} |\n|---|${'---:|'.repeat(COLUMNS.length)}`);
  for (const { name, title, problem, runs } of cases) {
    const without = cases.find((other) => name === `${other.name}-keys`);
    const ratio = without && !without.problem && !problem ? (drainedOf(runs) / drainedOf(without.runs)).toFixed(2) : '';
    const of = (key) =>
      medianAndRange(
        runs.map((run) => run[key]),
        whole,
      );
    const cells = problem ? [cell(problem), '', ''] : [of('enqueuedPerSecond'), of('drainedPerSecond'), ratio];
    console.log(`| ${[title, ...cells].join(' | ')} |`);
  }
  console.log('');
}

function drainedOf(runs) {
  return median(runs.map((run) => run.drainedPerSecond));
}
