/**
 * The crash matrix: kills processes at every point at which something is stored or done, and lets other processes continue.
 *
 * `npm run crash -- [--kills 10] [--store sqlite|postgres] [--point NAME] [--seed TEXT] [--parallel 2] [--keep]`. Build the
 * library first. All kills of a point use one store: each process first completes what the previous process left. A failure is
 * printed with the command that repeats it. The last line is `N passed, M failed`.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { checkHistory } from './check-history.mjs';
import { AGENTS, COUNTED } from './flows.mjs';
import { openHistory, readHistory } from './history.mjs';
import { bundleLibrary } from './library.mjs';
import { openStore } from './open-store.mjs';
import { FIRST_KILLS, POINTS } from './points.mjs';
import { firstProblems, historyOf } from './print-history.mjs';
import { inParallel, start } from './processes.mjs';
import { seeded } from './random.mjs';
import { readStore } from './read-store.mjs';
import { findStores } from './stores.mjs';

const CHILD = fileURLToPath(new URL('crash-child.mjs', import.meta.url));
const TIMEOUT_MS = 30_000;
/** An execution fails after three deaths in a row, each soon after it was claimed. So a test allows fewer. */
const MAX_IN_A_ROW = 1;

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '10' },
    store: { type: 'string' },
    point: { type: 'string' },
    seed: { type: 'string', default: Math.random().toString(36).slice(2, 8) },
    parallel: { type: 'string', default: '2' },
    keep: { type: 'boolean', default: false },
  },
});
const kills = Number(values.kills);
const folder = mkdtempSync(join(tmpdir(), 'ensemble-crash-'));
process.on('exit', () => values.keep || rmSync(folder, { recursive: true, force: true }));
await bundleLibrary();
const stores = await findStores(values.store, folder);
const points = POINTS.filter(({ name }) => values.point === undefined || name === values.point);
if (points.length === 0) throw new Error(`--point must be one of: ${POINTS.map(({ name }) => name).join(' | ')}`);

const totals = { passed: 0, failed: 0, kills: 0, effects: 0, repeats: 0 };
console.log(`${points.length} points, ${kills} kills each, seed ${values.seed}`);
const began = performance.now();
try {
  const chains = stores.flatMap((at) =>
    points.filter((point) => point.stores?.includes(at.kind) ?? true).map((point) => ({ at, point })),
  );
  await inParallel(Number(values.parallel), chains, runChain);
} finally {
  for (const at of stores) await at.close();
}
const { effects, repeats } = totals;
const seconds = ((performance.now() - began) / 1000).toFixed(0);
console.log(`${totals.kills} kills, ${effects} effects, ${repeats} of them repeated, ${seconds} s`);
console.log(`${totals.passed} passed, ${totals.failed} failed`);
process.exitCode = totals.failed === 0 && totals.passed > 0 ? 0 : 1;

/** All kills at one point in one store. */
async function runChain({ at, point }) {
  const beganAt = performance.now();
  const random = seeded(`${values.seed}/${at.kind}/${point.name}`);
  const chain = { at, point, random, kills: 0, problems: [], figures: { effects: 0, repeats: 0 } };
  try {
    if (point.phase === 'migration') await killOpenings(chain);
    else await killWorkers(chain);
  } catch (error) {
    chain.problems.push(String(error.stack ?? error));
  }
  if (chain.kills < kills && chain.problems.length === 0)
    chain.problems.push(`only ${chain.kills} of ${kills} kills happened`);
  report(chain, performance.now() - beganAt);
}

/** Kills one process after another on one store. The last process completes what is left. */
async function killWorkers(chain) {
  const { at, point } = chain;
  const run = newRun(at, chain);
  try {
    /** Kills in a row during the recovery of the same executions. */
    let row = MAX_IN_A_ROW;
    for (let tries = 0; chain.kills < kills && tries < kills * 4 && chain.problems.length === 0; tries++) {
      if (point.isQueued) await run.child({ concurrency: 0 });
      else if (point.phase === 'recovery' && row >= MAX_IN_A_ROW) {
        await run.child({ fault: draw(chain, chain.random.one(FIRST_KILLS)) });
        row = 0;
      }
      const { signal } = await run.child({ fault: draw(chain, point), phase: point.phase });
      if (signal === 'SIGKILL') chain.kills += 1;
      row = signal === 'SIGKILL' ? row + 1 : MAX_IN_A_ROW;
    }
    await run.child({ count: 0 });
    await run.check();
  } finally {
    await run.remove();
  }
}

/** Uses a new store for every kill, because the kill happens while the schema is created. */
async function killOpenings(chain) {
  for (let tries = 0; chain.kills < kills && tries < kills * 4 && chain.problems.length === 0; tries++) {
    const run = newRun(chain.at, chain);
    try {
      const { signal } = await run.child({ fault: draw(chain, chain.point), phase: 'migration', count: 1 });
      if (signal === 'SIGKILL') chain.kills += 1;
      await run.child({ count: 1 });
      await run.check();
    } finally {
      await run.remove();
    }
  }
}

/** A store and its history, on which processes work one after the other. */
function newRun(at, chain) {
  const { point, random, problems } = chain;
  const store = at.newStore();
  const historyPath = join(folder, `${at.kind}-${random.from(0, 1e12)}.history`);
  const record = openHistory(historyPath);
  const ensemble = point.ensemble ?? 'line';
  return {
    async child(about) {
      const { concurrency, count } = about.fault ? point : {};
      const ending = { afterMs: random.from(0, 60), graceMs: random.from(0, 40) };
      const options = { store, historyPath, ensemble, concurrency, count, ending, ...about };
      const { child, ended } = start(CHILD, options, { timeoutMs: TIMEOUT_MS });
      const end = await ended;
      record('ended', { child: child.pid, ...end });
      if (end.late) problems.push(`a process hung\n${end.errors}`);
      else if (end.code !== 0 && end.signal !== 'SIGKILL')
        problems.push(`a process ended with ${end.code}\n${end.errors}`);
      return end;
    },
    async check() {
      const storage = await openStore(store);
      try {
        const found = await readStore(storage, COUNTED);
        const lines = readHistory(historyPath);
        const { broken, figures } = checkHistory(lines, found, { noRepeats: !point.repeats });
        problems.push(...broken);
        if (broken.length > 0) problems.push(...historyOf(lines, broken[0]));
        for (const name of ['effects', 'repeats']) chain.figures[name] += figures[name];
        if (found.executions.some(({ ensemble: name }) => !(name in AGENTS))) problems.push('an unknown ensemble ran');
      } finally {
        await storage.close();
      }
    },
    async remove() {
      if (values.keep) console.log(`kept: ${historyPath} ${JSON.stringify(store)}`);
      else await at.remove(store);
    },
  };
}

/** Draws the values of one kill from the ranges of its point. */
function draw({ random }, { point, nth, delayUs, statement }) {
  const fault = { point, nth: random.from(...nth) };
  if (delayUs) fault.delayUs = random.from(...delayUs);
  if (statement) fault.statement = random.from(...statement);
  return fault;
}

function report({ at, point, kills: count, problems, figures }, ms) {
  totals.kills += count;
  totals.effects += figures.effects;
  totals.repeats += figures.repeats;
  const isOk = problems.length === 0;
  totals[isOk ? 'passed' : 'failed'] += 1;
  const { effects, repeats } = figures;
  const figure = `${count} kills, ${effects} effects, ${repeats} repeated`;
  const name = point.name.padEnd(30);
  console.log(`${isOk ? 'ok    ' : 'FAILED'} ${at.kind.padEnd(8)} ${name} ${figure}, ${(ms / 1000).toFixed(1)} s`);
  if (isOk) return;
  for (const line of firstProblems(problems)) console.log(line);
  console.log(
    `    repeat: npm run crash -- --store ${at.kind} --point '${point.name}' --kills ${kills} --seed ${values.seed} --parallel 1`,
  );
}
