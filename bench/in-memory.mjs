/** The tables of executions in memory and over HTTP, one at a time. */

import { runChild } from './child.mjs';
import { cell, median, medianAndRange, significant, whole } from './statistics.mjs';
import { chosenRows, IN_MEMORY } from './tables.mjs';

/**
 * @param options - `rounds`; `seconds` for a case in a round; the `chosen` names; `missing`: why a peer cannot be measured
 */
export async function printInMemory({ rounds, seconds, chosen, missing }) {
  const results = await measureAll(chosenRows(IN_MEMORY, chosen), missing, rounds, seconds);
  const rowsOf = (table) =>
    Object.entries(IN_MEMORY[table])
      .filter(([name]) => chosen.has(name))
      .map(([name, { title, peer }]) => ({ title, problem: missing[peer], runs: results[name] }));
  printThroughput(rowsOf('throughput'), results);
  printPerUnit('steps of the flow', 'µs a step', rowsOf('scaling'));
  printPerUnit('`foreach` over 10,000 items', 'µs an item', rowsOf('foreach'));
  printHttp(rowsOf('http'), results);
  printPerUnit('requests and starts with limits', 'µs each', rowsOf('limits'), 'each');
  printPerUnit('inbound webhooks', 'µs each', rowsOf('webhooks'), 'each');
  printPerUnit('telemetry', 'µs an execution', rowsOf('telemetry'), 'each');
  printPerUnit('components', 'µs an execution', rowsOf('components'), 'execution');
}

/** Rounds are interleaved, so that a busy minute of the machine affects all cases equally. */
async function measureAll(rows, missing, rounds, seconds) {
  const measured = Object.entries(rows).filter(([, { peer }]) => !missing[peer]);
  const all = Object.fromEntries(measured.map(([name]) => [name, []]));
  for (let round = 1; round <= rounds; round++) {
    for (const [name, { module, argument }] of measured) {
      console.error(`round ${round} of ${rounds}: ${name}`);
      const args = [argument ?? []].flat().map(String);
      all[name].push(JSON.parse(await runChild(['harness.mjs', module, String(seconds), ...args])));
    }
  }
  return all;
}

function printThroughput(rows, results) {
  if (rows.length === 0) return;
  console.log(
    '| case | executions/s (min..max) | p50, µs | p99, µs | CPU, µs | peak RSS, MB | times Mastra | bare loops |',
  );
  console.log('|---|---:|---:|---:|---:|---:|---:|---:|');
  for (const { title, problem, runs } of rows) {
    if (problem) {
      console.log(`| ${title} | could not be installed: ${cell(problem)} | | | | | | |`);
      continue;
    }
    const perSecond = medianOf(runs, 'perSecond');
    const cells = [
      title,
      medianAndRange(valuesOf(runs, 'perSecond'), whole),
      ...['p50Us', 'p99Us', 'cpuUs'].map((key) => significant(medianOf(runs, key))),
      whole(medianOf(runs, 'peakRssMb')),
      results.mastra ? significant(perSecond / medianOf(results.mastra, 'perSecond')) : '',
      results.bare ? significant(medianOf(results.bare, 'perSecond') / perSecond) : '',
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
  console.log('');
}

/** @param rate - what a row shows per second: executions, or each of its units */
function printPerUnit(head, unit, rows, rate = 'executions') {
  if (rows.length === 0) return;
  console.log(`| ${head} | ${unit} (min..max) | CPU, ${unit} | ${rate}/s | peak RSS, MB |\n|---|---:|---:|---:|---:|`);
  for (const { title, runs } of rows) {
    const cells = [
      title,
      medianAndRange(valuesOf(runs, 'usPerUnit'), significant),
      significant(medianOf(runs, 'cpuUsPerUnit')),
      rate === 'each' ? whole(1_000_000 / medianOf(runs, 'usPerUnit')) : significant(medianOf(runs, 'perSecond')),
      whole(medianOf(runs, 'peakRssMb')),
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
  console.log('');
}

function printHttp(rows, results) {
  if (rows.length === 0) return;
  console.log(
    '| case | requests/s (min..max) | p50, µs | p99, µs | CPU, µs | times the Hono route |\n|---|---:|---:|---:|---:|---:|',
  );
  for (const { title, runs } of rows) {
    const cells = [
      title,
      medianAndRange(valuesOf(runs, 'perSecond'), whole),
      ...['p50Us', 'p99Us', 'cpuUs'].map((key) => significant(medianOf(runs, key))),
      results.hono ? significant(medianOf(runs, 'perSecond') / medianOf(results.hono, 'perSecond')) : '',
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
  console.log('');
}

function valuesOf(runs, key) {
  return runs.map((run) => run[key]);
}

function medianOf(runs, key) {
  return median(valuesOf(runs, key));
}
