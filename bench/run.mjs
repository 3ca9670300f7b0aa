/**
 * Runs the benchmark and prints its tables as Markdown.
 * Usage: npm run bench, with ROUNDS (3), SECONDS (5), CASES (all; names of tables and rows, with commas) in the environment.
 * `npm run bench -- --check` compares ratios with the bounds of `bounds.json` instead.
 */

import { cpus } from 'node:os';
import { runChild } from './child.mjs';
import { runDurable } from './durable/run.mjs';
import { printInMemory } from './in-memory.mjs';
import { installPeers } from './install-peers.mjs';
import { buildLibrary } from './library.mjs';
import { printTurns } from './print-turns.mjs';
import { median, medianAndRange, significant } from './statistics.mjs';
import { chooseCases, chosenRows, DRAIN, DURABLE, IN_MEMORY } from './tables.mjs';

if (process.argv.includes('--check')) {
  await import('./check.mjs');
  process.exit();
}
const rounds = positive('ROUNDS', 3);
const seconds = positive('SECONDS', 5);
const chosen = chooseCases(process.env.CASES);

buildLibrary();
const peers = Object.values(chosenRows({ ...IN_MEMORY, ...DURABLE, drain: DRAIN }, chosen)).flatMap(
  ({ peer }) => peer ?? [],
);
const missing = installPeers([...new Set(peers)]);

console.log(`Node ${process.version.slice(1)}, ${cpus().length} cores, ${process.platform} ${process.arch}.`);
console.log(`Median of ${rounds} rounds of ${seconds} s, each case in a process of its own; in brackets min..max.\n`);

await printInMemory({ rounds, seconds, chosen, missing });
if (chosen.has('memory')) await printMemory();
if (chosen.has('import')) await printImportTime();
if (chosen.has('deliveries')) await printDeliveries();
if (chosen.has('turns')) await printTurns({ rounds });
await runDurable({ rounds, seconds, chosen, missing });

async function printMemory() {
  console.error('memory: 1,000,000 executions');
  console.log(await runChild(['--expose-gc', 'memory.mjs']));
}

async function printImportTime() {
  const runs = { packages: [], library: [] };
  for (let i = 0; i < 4 * rounds + 1; i++) {
    for (const [what, all] of Object.entries(runs)) {
      const result = JSON.parse(await runChild(['import-time.mjs', what]));
      // In the first pair, the files are not in the cache.
      if (i > 0) all.push(result);
    }
  }
  const row = (title, all) => {
    const memory = significant(median(all.map(({ rssMb }) => rssMb)));
    const ms = all.map((run) => run.ms);
    console.log(`| ${title} | ${medianAndRange(ms, significant)} | ${memory} |`);
  };
  console.log('| import, in a fresh process | ms (min..max) | RSS, MB |\n|---|---:|---:|');
  row('main entry, with its packages', runs.library);
  row('its packages alone', runs.packages);
  const own = median(runs.library.map(({ ms }) => ms)) - median(runs.packages.map(({ ms }) => ms));
  console.log(`| own share | ${significant(Math.max(0, own))} | |\n`);
}

async function printDeliveries() {
  const runs = [];
  for (let round = 1; round <= rounds; round++) {
    console.error(`round ${round} of ${rounds}: deliveries`);
    runs.push(JSON.parse(await runChild(['deliveries.mjs', '20000', '1000', String(2 * seconds)])));
  }
  const shown = (key) =>
    medianAndRange(
      runs.map((run) => run[key]),
      significant,
    );
  console.log('| signed webhooks from SQLite to a receiver on the loopback | |\n|---|---:|');
  console.log(`| deliveries a second, when 20,000 are due | ${shown('perSecond')} |`);
  console.log(`| at ${shown('atRate')} executions a second: p50 from event to attempt, ms | ${shown('p50Ms')} |`);
  console.log(`| p99, ms | ${shown('p99Ms')} |\n`);
}

function positive(name, byDefault) {
  const value = Number(process.env[name] ?? byDefault);
  if (value > 0 && (name !== 'ROUNDS' || Number.isInteger(value))) return value;
  throw new Error(
    `${name} must be a positive ${name === 'ROUNDS' ? 'whole number' : 'number'}, not ${process.env[name]}`,
  );
}
