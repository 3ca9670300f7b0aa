/**
 * Compares two builds of the library, row by row, in turns, and prints the ratios as Markdown.
 * Usage: npm run compare -- <main entry of the other build>, with ROUNDS (7), SECONDS (2), CASES (all) in the environment.
 */

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { runChild } from './child.mjs';
import { openPlace } from './durable/place.mjs';
import { buildLibrary, entry } from './library.mjs';
import { median, medianAndRange, significant } from './statistics.mjs';
import { chooseCases, chosenRows, DURABLE, IN_MEMORY } from './tables.mjs';

const other = process.argv[2] && resolve(process.argv[2]);
if (!other || !existsSync(other))
  throw new Error('compare needs the path of another build, such as ../../other/dist/index.js');
const rounds = Number(process.env.ROUNDS ?? 7);
const seconds = Number(process.env.SECONDS ?? 2);
const chosen = chooseCases(process.env.CASES);
/** Rows that don't run the library. */
const WITHOUT = /^(bare|hono|foreach-bare)$|-(raw|group)$/;

buildLibrary();
const place = await openPlace(true);
console.log(
  `Node ${process.version.slice(1)}; ${rounds} rounds of ${seconds} s for each build. Ratios below 1: this build is slower.\n`,
);
console.log('| row | throughput, this to other (min..max) | CPU time, other to this |\n|---|---:|---:|');
try {
  for (const { name, title, measure } of rows()) {
    const pairs = [];
    for (let round = 0; round < rounds; round++) {
      const order = round % 2 === 0 ? [entry, other] : [other, entry];
      const results = {};
      for (const library of order) results[library] = await measure(library);
      pairs.push([results[entry], results[other]]);
    }
    if (pairs.some(([a, b]) => !a.perSecond || !b.perSecond)) {
      console.log(`| ${title} (${name}) | not measured: ${pairs[0][0].unavailable ?? 'a run failed'} | |`);
      continue;
    }
    const throughput = pairs.map(([a, b]) => a.perSecond / b.perSecond);
    const cpu = pairs.map(([a, b]) => cpuOf(b) / cpuOf(a));
    console.log(`| ${title} (${name}) | ${medianAndRange(throughput, significant)} | ${significant(median(cpu))} |`);
  }
} finally {
  await place.close();
}

function cpuOf({ cpuUs, cpuMs }) {
  return cpuUs ?? cpuMs;
}

function* rows() {
  const rowsOf = (tables) =>
    Object.entries(chosenRows(tables, chosen)).filter(([name, { peer }]) => !peer && !WITHOUT.test(name));
  for (const [name, { title, module, argument }] of rowsOf(IN_MEMORY)) {
    const args = ['harness.mjs', module, String(seconds), ...[argument ?? []].flat().map(String)];
    yield { name, title, measure: async (library) => JSON.parse(await runChild(args, { env: { LIBRARY: library } })) };
  }
  for (const [name, { module, argument }] of rowsOf(DURABLE)) {
    const onPostgres = name.startsWith('postgres');
    for (const count of [1, 50]) {
      const args = ['durable/harness.mjs', module, String(seconds), String(count), ...(argument ? [argument] : [])];
      const measure = async (library) => {
        if (onPostgres && place.postgres.problem) return { unavailable: place.postgres.problem };
        const postgres = onPostgres && { BENCH_POSTGRES: await place.postgres.fresh() };
        const env = { LIBRARY: library, BENCH_FOLDER: place.folder, ...postgres };
        return JSON.parse(await runChild(args, { env, timeoutMs: 120_000 + seconds * 2000 }));
      };
      yield { name: `${name}, ${count} at a time`, title: 'five durable steps', measure };
    }
  }
}
