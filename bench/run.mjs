/**
 * Runs the benchmark and prints its tables as Markdown.
 * Usage: npm run bench, with ROUNDS (3), SECONDS (5), CASES (all; names of tables and rows, with commas) in the environment.
 */

import { spawnSync } from 'node:child_process';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { installPeers } from './install-peers.mjs';
import { buildLibrary } from './library.mjs';
import { PEERS, titleOf } from './peers.mjs';

const THROUGHPUT = {
  bare: { title: 'bare loop of five awaits', module: 'cases/bare.mjs' },
  plain: { title: 'five steps', module: 'cases/plain.mjs' },
  expressions: { title: 'five steps, 15 expressions, two conditions', module: 'cases/expressions.mjs' },
  mastra: { title: 'Mastra, five steps', module: 'peers/mastra/case.mjs' },
  langgraph: { title: 'LangGraph, five nodes', module: 'peers/langgraph/case.mjs' },
};
const SCALING = Object.fromEntries(
  [5, 50, 200, 1000].map((count) => [
    `steps-${count}`,
    { title: count.toLocaleString('en'), module: 'cases/steps.mjs', argument: count },
  ]),
);
const FOREACH = Object.fromEntries(
  [1, 50].map((width) => [`foreach-${width}`, { title: String(width), module: 'cases/foreach.mjs', argument: width }]),
);
const HTTP = {
  'http-handler': { title: '`POST execute`, five steps, through the handler', module: 'cases/http-handler.mjs' },
  'node-http': { title: 'the same over a Node HTTP server', module: 'cases/node-http.mjs' },
  hono: { title: 'a bare Hono route over a Node HTTP server', module: 'cases/hono.mjs' },
};
const TABLES = { throughput: THROUGHPUT, scaling: SCALING, foreach: FOREACH, http: HTTP, memory: {}, import: {} };

const rounds = positive('ROUNDS', 3);
const seconds = positive('SECONDS', 5);
const chosen = chooseCases();

buildLibrary();
const missing = installPeers(Object.keys(PEERS).filter((name) => chosen.has(name)));
for (const name of Object.keys(PEERS)) {
  if (chosen.has(name) && !missing[name])
    THROUGHPUT[name].title = THROUGHPUT[name].title.replace(PEERS[name].title, titleOf(name));
}

console.log(`Node ${process.version.slice(1)}, ${cpus().length} cores, ${process.platform} ${process.arch}.`);
console.log(
  `Median of ${rounds} rounds of ${seconds} s, one execution at a time, each case in a process of its own; in brackets min..max.\n`,
);
const results = measureAll({ ...THROUGHPUT, ...SCALING, ...FOREACH, ...HTTP });
printThroughput();
printPerUnit('steps of the flow', 'µs a step', SCALING);
printPerUnit('`foreach` over 10,000 items: concurrency', 'µs an item', FOREACH);
printHttp();
if (chosen.has('memory')) printMemory();
if (chosen.has('import')) printImportTime();

/** Rounds are interleaved, so that a busy minute of the machine falls on all cases alike. */
function measureAll(cases) {
  const measured = Object.entries(cases).filter(([name]) => chosen.has(name) && !missing[name]);
  const all = Object.fromEntries(measured.map(([name]) => [name, []]));
  for (let round = 1; round <= rounds; round++) {
    for (const [name, { module, argument }] of measured) {
      console.error(`round ${round} of ${rounds}: ${name}`);
      const args = argument === undefined ? [] : [String(argument)];
      all[name].push(JSON.parse(child(['harness.mjs', module, String(seconds), ...args])));
    }
  }
  return all;
}

function printThroughput() {
  const rows = Object.entries(THROUGHPUT).filter(([name]) => chosen.has(name));
  if (rows.length === 0) return;
  console.log(
    '| case | executions/s (min..max) | p50, µs | p99, µs | CPU, µs | peak RSS, MB | times Mastra | bare loops |',
  );
  console.log('|---|---:|---:|---:|---:|---:|---:|---:|');
  for (const [name, { title }] of rows) {
    if (missing[name]) {
      console.log(`| ${title} | could not be installed: ${missing[name].replaceAll('|', '\\|')} | | | | | | |`);
      continue;
    }
    const value = (key) => median(results[name].map((result) => result[key]));
    const perSecond = value('perSecond');
    const cells = [
      title,
      `${whole(perSecond)} ${range(
        results[name].map((result) => result.perSecond),
        whole,
      )}`,
      significant(value('p50Us')),
      significant(value('p99Us')),
      significant(value('cpuUs')),
      whole(value('peakRssMb')),
      results.mastra ? significant(perSecond / perSecondOf('mastra')) : '',
      results.bare ? significant(perSecondOf('bare') / perSecond) : '',
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
  console.log('');
}

function perSecondOf(name) {
  return median(results[name].map((result) => result.perSecond));
}

function printPerUnit(head, unit, cases) {
  const rows = Object.entries(cases).filter(([name]) => results[name]);
  if (rows.length === 0) return;
  console.log(
    `| ${head} | ${unit} (min..max) | CPU, ${unit} | executions/s | peak RSS, MB |\n|---:|---:|---:|---:|---:|`,
  );
  for (const [name, { title }] of rows) {
    const perUnit = results[name].map((result) => result.usPerUnit);
    const value = (key) => median(results[name].map((result) => result[key]));
    const cells = [
      title,
      `${significant(median(perUnit))} ${range(perUnit, significant)}`,
      significant(value('cpuUsPerUnit')),
      significant(perSecondOf(name)),
      whole(value('peakRssMb')),
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
  console.log('');
}

function printHttp() {
  const rows = Object.entries(HTTP).filter(([name]) => results[name]);
  if (rows.length === 0) return;
  console.log(
    '| case | requests/s (min..max) | p50, µs | p99, µs | CPU, µs | times the Hono route |\n|---|---:|---:|---:|---:|---:|',
  );
  for (const [name, { title }] of rows) {
    const value = (key) => median(results[name].map((result) => result[key]));
    const perSecond = results[name].map((result) => result.perSecond);
    const cells = [
      title,
      `${whole(median(perSecond))} ${range(perSecond, whole)}`,
      ...['p50Us', 'p99Us', 'cpuUs'].map((key) => significant(value(key))),
      results.hono ? significant(median(perSecond) / perSecondOf('hono')) : '',
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
  console.log('');
}

function printMemory() {
  console.error('memory: 1,000,000 executions');
  console.log(child(['--expose-gc', 'memory.mjs']));
}

function printImportTime() {
  const runs = { packages: [], library: [] };
  for (let i = 0; i < 4 * rounds + 1; i++) {
    for (const [what, all] of Object.entries(runs)) {
      const result = JSON.parse(child(['import-time.mjs', what]));
      // The first pair finds the files cold.
      if (i > 0) all.push(result);
    }
  }
  const row = (title, all) => {
    const times = all.map(({ ms }) => ms);
    const memory = significant(median(all.map(({ rssMb }) => rssMb)));
    console.log(`| ${title} | ${significant(median(times))} ${range(times, significant)} | ${memory} |`);
  };
  console.log('| import, in a fresh process | ms (min..max) | RSS, MB |\n|---|---:|---:|');
  row('main entry, with its packages', runs.library);
  row('its packages alone', runs.packages);
  const own = median(runs.library.map(({ ms }) => ms)) - median(runs.packages.map(({ ms }) => ms));
  console.log(`| own share | ${significant(Math.max(0, own))} | |\n`);
}

function child(args) {
  const ran = spawnSync(process.execPath, args, {
    cwd: fileURLToPath(new URL('.', import.meta.url)),
    encoding: 'utf8',
    env: { ...process.env, NODE_NO_WARNINGS: '1', MASTRA_TELEMETRY_DISABLED: '1' },
  });
  if (ran.status !== 0) throw new Error(`\`node ${args.join(' ')}\` failed:\n${ran.stderr}`);
  return ran.stdout;
}

function chooseCases() {
  const known = new Set(Object.entries(TABLES).flatMap(([table, cases]) => [table, ...Object.keys(cases)]));
  const asked = (process.env.CASES ?? Object.keys(TABLES).join(',')).split(',').map((name) => name.trim());
  const unknown = asked.filter((name) => !known.has(name));
  if (unknown.length > 0)
    throw new Error(`CASES: there is no case ${unknown.join(', ')}; there are ${[...known].join(', ')}`);
  return new Set(asked.flatMap((name) => [name, ...Object.keys(TABLES[name] ?? {})]));
}

function positive(name, byDefault) {
  const value = Number(process.env[name] ?? byDefault);
  if (value > 0 && (name !== 'ROUNDS' || Number.isInteger(value))) return value;
  throw new Error(
    `${name} must be a positive ${name === 'ROUNDS' ? 'whole number' : 'number'}, not ${process.env[name]}`,
  );
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

function range(values, format) {
  return `(${format(Math.min(...values))}..${format(Math.max(...values))})`;
}

function whole(value) {
  return Math.round(value).toLocaleString('en');
}

function significant(value) {
  return value >= 100 ? whole(value) : String(Number(value.toPrecision(3)));
}
