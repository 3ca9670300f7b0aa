/**
 * Measures what a million finished executions cost: executions of five steps completed a second on such a store and on an empty one, 50 at
 * a time, in turns in one process, and the slowest list of the full one. Prints one line of JSON: `{ empty, full, list, listMs }`.
 * Usage: node durable/finished.mjs <sqlite|postgres> <finished> <seconds>, with BENCH_POSTGRES as the URL of an empty database
 */

import { join } from 'node:path';
import pg from 'pg';
import { median } from '../statistics.mjs';
import { openCopies } from './copies.mjs';
import { fiveSteps } from './library-steps.mjs';
import { importStore } from './library-store.mjs';
import { ownFolder } from './own-folder.mjs';
import { printMeasured } from './unavailable.mjs';

const [kind, finished, seconds] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const AT_A_TIME = 50;
/** Copies made by one statement. */
const PORTION = 100_000;
/** Of a hundred copies, one is of the execution that failed. */
const CHOSEN = "first.status = CASE WHEN n.n % 100 = 0 THEN 'failed' ELSE 'completed' END";
const TURN_MS = 500;
const folder = ownFolder();

await printMeasured(measure);

async function measure() {
  const stores = { empty: await open('empty'), full: await open('full') };
  await fill(stores.full);
  const rates = { empty: [], full: [] };
  // The first of these turns warm up.
  const turns = Math.ceil((seconds * 1000) / TURN_MS);
  for (let turn = -Math.ceil(turns / 2); turn < turns; turn++) {
    for (const name of turn % 2 === 0 ? ['empty', 'full'] : ['full', 'empty']) {
      const rate = await rateOf(stores[name].run);
      if (turn >= 0) rates[name].push(rate);
    }
  }
  const lists = await slowest(stores.full.orchestrator);
  for (const { close } of Object.values(stores)) await close();
  return { empty: median(rates.empty), full: median(rates.full), ...lists };
}

async function rateOf(run) {
  const begun = performance.now();
  let count = 0;
  const loop = async () => {
    for (; performance.now() < begun + TURN_MS; count++) await run();
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, loop));
  return (count / (performance.now() - begun)) * 1000;
}

async function open(name) {
  const entry = await importStore(kind);
  const where = kind === 'sqlite' ? join(folder, `${name}.db`) : process.env.BENCH_POSTGRES;
  const pool = kind === 'postgres' ? new pg.Pool({ connectionString: where }) : undefined;
  const storage = pool ? entry.postgresStorage({ pool, schema: name }) : entry.sqliteStorage({ path: where });
  const { orchestrator, run } = await fiveSteps(storage, { logger: false });
  const close = async () => {
    await orchestrator.close();
    await pool?.end();
  };
  return { orchestrator, run, close, where, schema: name };
}

/** One execution that completes and one that fails, and copies of both. */
async function fill({ orchestrator, run, where, schema }) {
  await run();
  await orchestrator.execute('bench', { x: { toString: null } }, { tags: ['failed'] });
  const copies = await openCopies(kind, where, { schema, steps: true, chosen: CHOSEN });
  for (let left = finished; left > 0; left -= PORTION) {
    console.error(`${left} executions to go`);
    await copies.add(Math.min(left, PORTION));
  }
  await copies.analyze();
  const failed = await copies.count('failed');
  await copies.close();
  if (failed !== Math.floor(finished / 100) + 1) throw new Error(`${failed} executions of the full store have failed`);
}

/** Every list that a caller can ask for, with the usual length of a page. */
async function slowest({ executions }) {
  const [{ createdAt }] = (await executions.list({ limit: 1 })).executions;
  const [{ id }] = (await executions.list({ limit: 1, status: 'failed' })).executions;
  const filters = [
    ...[{}, { order: 'oldest' }, { ensemble: 'bench' }, { ensemble: 'other' }, { status: 'completed' }],
    ...[{ status: 'failed' }, { status: 'running' }, { status: 'waiting' }, { ensemble: 'bench', status: 'failed' }],
    ...[{ unresolved: true }, { tag: 'failed' }, { tag: 'none' }, { search: id.slice(0, -3) }, { search: 'none' }],
    ...[{ errorCode: 'AGENT_FAILED' }, { errorCode: 'NONE' }, { parentId: id }, { retryOf: id }],
    ...[{ since: createdAt - 1000 }, { until: createdAt - 1000 }, { since: createdAt, status: 'failed' }],
  ];
  let found = { listMs: 0 };
  for (const filter of filters) {
    const all = [];
    for (let i = 0; i < 11; i++) {
      const begun = performance.now();
      await executions.list({ ...filter, limit: 50 });
      all.push(performance.now() - begun);
    }
    const ms = median(all);
    if (process.env.LISTS) console.error(ms.toFixed(2), JSON.stringify(filter));
    if (ms > found.listMs) found = { list: JSON.stringify(filter), listMs: ms };
  }
  return found;
}
