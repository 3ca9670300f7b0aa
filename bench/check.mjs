/**
 * Compares ratios of this machine with the bounds in `bounds.json`, before a release: `npm run bench -- --check`. The two rows of a ratio
 * are measured in turns, with ROUNDS (5) and SECONDS (2). Exits with 1 if a bound is broken. Stop other programs first.
 */

import { readFileSync } from 'node:fs';
import { runChild } from './child.mjs';
import { openPlace } from './durable/place.mjs';
import { buildLibrary } from './library.mjs';
import { median, medianAndRange, significant } from './statistics.mjs';
import { DURABLE, IN_MEMORY } from './tables.mjs';

const rounds = Number(process.env.ROUNDS ?? 5);
const seconds = Number(process.env.SECONDS ?? 2);
const bounds = JSON.parse(readFileSync(new URL('bounds.json', import.meta.url), 'utf8'));
const rowsOf = (tables) => Object.assign({}, ...Object.values(tables));
const ROWS = rowsOf({ ...IN_MEMORY, ...DURABLE });

buildLibrary();
const place = await openPlace(true);
console.log('| ratio | measured (min..max) | bound | |\n|---|---:|---:|---|');
try {
  for (const bound of bounds) {
    const ratios = [];
    let problem;
    for (let round = 0; round < rounds && !problem; round++) {
      const ratio = bound.loop ? await loopRatio(bound.loop) : await rowRatio(bound, round % 2 === 1);
      if (typeof ratio === 'string') problem = ratio;
      else ratios.push(ratio);
    }
    const { name, least = 0, most = Number.POSITIVE_INFINITY } = bound;
    const limit = bound.least === undefined ? `at most ${most}` : `at least ${least}`;
    const isKept = !problem && median(ratios) >= least && median(ratios) <= most;
    if (!isKept) process.exitCode = 1;
    const measured = problem ?? medianAndRange(ratios, significant);
    console.log(`| ${name} | ${measured} | ${limit} | ${isKept ? 'kept' : 'BROKEN'} |`);
  }
} finally {
  await place.close();
}

async function rowRatio({ row, of, at }, isReversed) {
  const results = {};
  for (const name of isReversed ? [of, row] : [row, of]) results[name] = await measure(name, at);
  const problem = results[row].unavailable ?? results[of].unavailable;
  return problem ?? results[row].perSecond / results[of].perSecond;
}

async function measure(name, at) {
  const { module, argument } = ROWS[name];
  const args = [argument ?? []].flat().map(String);
  if (at === undefined) return JSON.parse(await runChild(['harness.mjs', module, String(seconds), ...args]));
  return run(['durable/harness.mjs', module, String(seconds), String(at), ...args], name.startsWith('postgres'));
}

async function loopRatio([kind, shape, count]) {
  const result = await run(['durable/loops.mjs', kind, shape, String(count)], kind === 'postgres');
  return result.unavailable ?? result.late / result.early;
}

async function run(args, onPostgres) {
  if (onPostgres && place.postgres.problem) return { unavailable: place.postgres.problem };
  const env = { BENCH_FOLDER: place.folder, ...(onPostgres && { BENCH_POSTGRES: await place.postgres.fresh() }) };
  return JSON.parse(await runChild(args, { env, timeoutMs: 600_000 }));
}
