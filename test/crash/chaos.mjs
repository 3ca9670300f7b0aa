/**
 * Runs fault scenarios on real processes and servers: kills at any moment, paused processes, server restarts.
 *
 * `npm run chaos -- [SCENARIO...] [--store sqlite|postgres] [--seconds N] [--cycles N] [--executions N] [--seed TEXT] [--keep]`;
 * without a name, all scenarios run. Build the library first. The last line is `N passed, M failed`.
 */

import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { bundleLibrary } from './library.mjs';
import { firstProblems } from './print-history.mjs';
import { seeded } from './random.mjs';
import { SCENARIOS } from './scenarios/scenarios.mjs';
import { findStores } from './stores.mjs';
import { createTestBed } from './test-bed.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    store: { type: 'string' },
    seconds: { type: 'string' },
    cycles: { type: 'string' },
    executions: { type: 'string' },
    seed: { type: 'string', default: Math.random().toString(36).slice(2, 8) },
    keep: { type: 'boolean', default: false },
  },
});
for (const name of positionals) if (!SCENARIOS.some((one) => one.name === name)) refuse(`there is no scenario ${name}`);
const chosen = SCENARIOS.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
const folder = mkdtempSync(join(tmpdir(), 'ensemble-chaos-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
await bundleLibrary();
const stores = await findStores(values.store, folder);
const counts = { passed: 0, failed: 0 };
console.log(`seed ${values.seed}`);
try {
  for (const scenario of chosen) {
    for (const at of stores) {
      if (scenario.stores.includes(at.kind)) await runScenario(scenario, at);
      else if (positionals.length > 0) console.log(`skipped: ${scenario.name} on ${at.kind}`);
    }
  }
} finally {
  for (const at of stores) await at.close();
}
console.log(`${counts.passed} passed, ${counts.failed} failed`);
process.exitCode = counts.failed === 0 && counts.passed > 0 ? 0 : 1;

async function runScenario({ name, about, run, ...defaults }, at) {
  const began = performance.now();
  const bed = await createTestBed(at, name, folder);
  let summary = '';
  try {
    const options = {};
    for (const key of ['seconds', 'cycles', 'executions']) options[key] = Number(values[key] ?? defaults[key]);
    summary = await run(bed, { ...options, random: seeded(`${values.seed}/${name}/${at.kind}`) });
  } catch (error) {
    bed.problems.push(String(error.stack ?? error));
  }
  const { problems } = bed;
  if (problems.length > 0 && values.keep) {
    copyFileSync(bed.historyPath, join(tmpdir(), `${name}-${at.kind}.history`));
    console.log(`kept: ${join(tmpdir(), `${name}-${at.kind}.history`)}`);
  }
  await bed.remove().catch((error) => problems.push(String(error)));
  const isOk = problems.length === 0;
  counts[isOk ? 'passed' : 'failed'] += 1;
  const seconds = ((performance.now() - began) / 1000).toFixed(0);
  console.log(`${isOk ? 'ok    ' : 'FAILED'} ${at.kind.padEnd(8)} ${about}: ${summary} (${seconds} s)`);
  for (const line of firstProblems(problems)) console.log(line);
  if (!isOk) console.log(`    repeat: npm run chaos -- ${name} --store ${at.kind} --seed ${values.seed}`);
}

function refuse(message) {
  console.error(`${message}; scenarios: ${SCENARIOS.map(({ name }) => name).join(', ')}`);
  process.exit(2);
}
