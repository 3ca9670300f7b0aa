/** Measures and prints how soon the executions of a killed process resume. */

import { cell, medianAndRange, significant } from '../statistics.mjs';

/** Kills in one round. Each takes a second. */
const IN_A_ROUND = 3;
const TIMEOUT_MS = 90_000;
const ROWS = {
  node: 'an empty Node process, to its first line',
  'import-sqlite': 'one that imports this library and `sqliteStorage`',
  sqlite: 'SQLite file: to the resumed step',
  'import-postgres': 'one that imports this library, `postgresStorage` and `pg`',
  postgres: 'Postgres: to the resumed step',
};

/** @param options - `rounds`, and `measure`, which runs a script */
export async function printResume({ rounds, measure }) {
  const rows = Object.entries(ROWS).map(([what, title]) => ({ what, title, times: [], problem: undefined }));
  for (let round = 1; round <= rounds * IN_A_ROUND; round++) {
    console.error(`kill ${round} of ${rounds * IN_A_ROUND}: resume`);
    for (const row of rows) {
      if (row.problem) continue;
      const options = { onPostgres: row.what === 'postgres', timeoutMs: TIMEOUT_MS };
      const { ms, unavailable, failed } = await measure(['durable/resume.mjs', row.what], options);
      row.problem = unavailable ?? (failed && `failed: ${failed}`);
      if (!row.problem) row.times.push(ms);
    }
  }
  console.log('| from process start, the one before it killed | ms (min..max) |\n|---|---:|');
  for (const { title, times, problem } of rows)
    console.log(`| ${title} | ${problem ? cell(problem) : medianAndRange(times, significant)} |`);
  console.log('');
}
