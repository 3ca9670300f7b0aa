/** Measures and prints what a wake-up costs early and late in a loop. */

import { cell, median, significant } from '../statistics.mjs';

const ROUNDS = 10_000;
const KINDS = { memory: 'memory', sqlite: 'SQLite', postgres: 'Postgres' };
const SHAPES = { flat: 'a `while`', foreach: 'a `while` in a `foreach`', parallel: 'a `while` in a branch' };
const ITEMS = [100, 10_000];
const ALLOWANCE_MS = 600_000;

/** @param options - `rounds`, and `measure`, which runs a script on a fresh database */
export async function printLoops({ rounds, measure }) {
  const run = (kind, shape, count) =>
    measure(['durable/loops.mjs', kind, shape, String(count)], {
      onPostgres: kind === 'postgres',
      timeoutMs: ALLOWANCE_MS,
    });
  const row = async (title, runs) => {
    const all = [];
    for (let round = 1; round <= rounds; round++) {
      console.error(`round ${round} of ${rounds}: ${title}`);
      all.push(await runs());
    }
    const problem = all.flatMap((one) => one.unavailable ?? (one.failed && `failed: ${one.failed}`) ?? [])[0];
    if (problem) return console.log(`| ${title} | ${cell(problem)} | | |`);
    const [early, late] = [median(all.map((one) => one.early)), median(all.map((one) => one.late))];
    console.log(`| ${title} | ${significant(early)} | ${significant(late)} | ${significant(late / early)} |`);
  };
  console.log('| a wake-up in a loop that sleeps and asks | CPU, ms, in round 100 | in round 10,000 | ratio |');
  console.log('|---|---:|---:|---:|');
  for (const [kind, where] of Object.entries(KINDS))
    for (const [shape, title] of Object.entries(SHAPES))
      await row(`${title}, ${where}`, () => run(kind, shape, ROUNDS));
  console.log(
    '\n| a wake-up in a `foreach`, 10 items at a time, when 85 % are over | 100 items | 10,000 items | ratio |',
  );
  console.log('|---|---:|---:|---:|');
  for (const [kind, where] of Object.entries(KINDS)) {
    await row(where, async () => {
      const [few, many] = [await run(kind, 'items', ITEMS[0]), await run(kind, 'items', ITEMS[1])];
      return { ...few, ...many, early: few.late, late: many.late };
    });
  }
  console.log('');
}
