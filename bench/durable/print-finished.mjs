/** Measures and prints what a million finished executions cost those that run now, and the lists. */

import { cell, median, significant, whole } from '../statistics.mjs';

const FINISHED = 1_000_000;
const ALLOWANCE_MS = 900_000;

/** @param options - `rounds`, `seconds`, and `measure`, which runs a script on a fresh database */
export async function printFinished({ rounds, seconds, measure }) {
  console.log(
    `| five steps, 50 at a time, executions a second | empty store | ${whole(FINISHED)} finished | ratio | slowest list, ms |\n|---|---:|---:|---:|---:|`,
  );
  for (const [kind, title] of Object.entries({ sqlite: 'SQLite', postgres: 'Postgres' })) {
    const all = [];
    for (let round = 1; round <= rounds; round++) {
      console.error(`round ${round} of ${rounds}: ${whole(FINISHED)} finished on ${title}`);
      const args = ['durable/finished.mjs', kind, String(FINISHED), String(seconds)];
      all.push(await measure(args, { onPostgres: kind === 'postgres', timeoutMs: seconds * 3000 + ALLOWANCE_MS }));
    }
    const problem = all.flatMap((one) => one.unavailable ?? (one.failed && `failed: ${one.failed}`) ?? [])[0];
    if (problem) {
      console.log(`| ${title} | ${cell(problem)} | | | |`);
      continue;
    }
    const of = (key) => median(all.map((one) => one[key]));
    const ratio = median(all.map(({ empty, full }) => full / empty));
    const { list } = all.find(({ listMs }) => listMs >= of('listMs'));
    console.log(
      `| ${title} | ${whole(of('empty'))} | ${whole(of('full'))} | ${significant(ratio)} | ${significant(of('listMs'))} (\`${list}\`) |`,
    );
  }
  console.log('');
}
