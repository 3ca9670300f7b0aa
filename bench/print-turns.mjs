/** Measures and prints the longest turn of the event loop under long work. */

import { runChild } from './child.mjs';
import { medianAndRange, significant } from './statistics.mjs';

const ENTRIES = 20_000;

export async function printTurns({ rounds }) {
  const runs = [];
  for (let round = 1; round <= rounds; round++) {
    console.error(`round ${round} of ${rounds}: turns`);
    runs.push(JSON.parse(await runChild(['turns.mjs', String(ENTRIES)])));
  }
  console.log(
    `| ${ENTRIES.toLocaleString('en')} entries on SQLite | s | longest turn, ms | health check meanwhile: p99, ms | longest, ms |\n|---|---:|---:|---:|---:|`,
  );
  for (const name of Object.keys(runs[0])) {
    const of = (key) =>
      medianAndRange(
        runs.map((run) => run[name][key]),
        significant,
      );
    console.log(`| ${name} | ${of('seconds')} | ${of('longestMs')} | ${of('healthP99Ms')} | ${of('healthMaxMs')} |`);
  }
  console.log('');
}
