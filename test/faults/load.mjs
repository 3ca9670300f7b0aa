/**
 * What one caller can do to a server. Each attack has its own `ensemble serve` with a heap of 512 MB. Meanwhile, bystanders
 * request the server's health and run a small ensemble.
 *
 * `npm run load -- [ATTACK...] [--list] [--heap MB] [--slow FACTOR]` runs all attacks when none is named. A name selects every
 * attack that begins with it. The library must be built. An attack passes when the process lives, its memory and the longest wait
 * for its health stay below their limits, and the attack's own check succeeds. The limits are far above what a good build needs
 * on a slow machine, so they catch what is wrong by a factor. The last line is `N passed, M failed`.
 */

import { setMaxListeners } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { ANSWERS } from './load/answers.mjs';
import { BODIES } from './load/bodies.mjs';
import { startBystanders } from './load/bystanders.mjs';
import { ask } from './load/requests.mjs';
import { ATTACKING_RUNS } from './load/runs.mjs';
import { CLI, filledStore, makeProject, removeProject, serve } from './load/served.mjs';

const ATTACKS = [...BODIES, ...ANSWERS, ...ATTACKING_RUNS];
const POSTGRES = process.env.TEST_POSTGRES ?? 'postgres://root@127.0.0.1:5432/test';
/** How long the server may take to answer again after an attack, ms. */
const RECOVERY_MS = 15_000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    list: { type: 'boolean', default: false },
    heap: { type: 'string', default: '512' },
    slow: { type: 'string', default: '1' },
  },
});
if (values.list) {
  for (const { name, about } of ATTACKS) console.log(`${name.padEnd(22)} ${about}`);
  process.exit();
}
const chosen = ATTACKS.filter(
  ({ name }) => positionals.length === 0 || positionals.some((one) => name.startsWith(one)),
);
for (const one of positionals)
  if (!ATTACKS.some(({ name }) => name.startsWith(one))) refuse(`there is no attack ${one}; --list shows all attacks`);
if (!existsSync(CLI)) refuse('the library is not built: npm run build');
const slow = Number(values.slow);

const counts = { passed: 0, failed: 0 };
const WIDTHS = [6, 22, 15, 17, 22, 6];
const row = (cells, last) => console.log(`${cells.map((cell, i) => String(cell).padEnd(WIDTHS[i])).join(' ')} ${last}`);
row(['', 'attack', 'peak MB (most)', 'block ms (most)', 'runs ok/late/failed', 'alive'], 'answer');
for (const attack of chosen) {
  const began = performance.now();
  const result = await play(attack).catch((error) => ({ problem: String(error.stack ?? error) }));
  if (result.skipped) {
    console.log(`skipped ${attack.name}: ${result.skipped}`);
    continue;
  }
  const { seen, alive, answer, problem } = result;
  const isOk = problem === undefined;
  counts[isOk ? 'passed' : 'failed'] += 1;
  row(
    [
      isOk ? 'ok' : 'FAILED',
      attack.name,
      seen ? `${seen.peakMb} (${attack.peakMb})` : '-',
      seen ? `${seen.blockMs} (${attack.blockMs * slow})` : '-',
      seen ? `${seen.ok}/${seen.late}/${seen.failed}` : '-',
      alive ? 'yes' : 'no',
    ],
    `${answer ?? '-'} (${((performance.now() - began) / 1000).toFixed(0)} s)`,
  );
  if (!isOk) console.log(`       ${attack.about}: ${problem}`);
}
console.log(`${counts.passed} passed, ${counts.failed} failed`);
process.exit(counts.failed === 0 && counts.passed > 0 ? 0 : 1);

async function play(attack) {
  const folder = makeProject(attack.files);
  const store = await openStore(attack, folder);
  if (store.skipped) return store;
  let server;
  try {
    const start = () => serve(folder, store.storage, Number(values.heap));
    server = await start();
    if (server.refused !== undefined) return refusal(attack, server.refused);
    const { token } = { token: server.token, ...store.facts };
    server.token = token;
    const bystanders = startBystanders(server);
    const restart = async () => {
      server = { ...(await start()), token };
      if (server.refused !== undefined) throw new Error(`it does not start again: ${server.refused}`);
      bystanders.aim(server);
      return server;
    };
    const given = await inTime(attack, { server, facts: store.facts, restart });
    const alive = await recovers(server);
    const seen = await bystanders.stop();
    const { answer, problem } = typeof given === 'string' ? { answer: given } : given;
    return { seen, alive: alive === true, answer, problem: judge(attack, seen, alive) ?? problem };
  } finally {
    await server?.kill?.();
    await store.remove();
    removeProject(folder);
  }
}

function refusal({ mayBeRefused }, wrote) {
  if (!mayBeRefused?.test(wrote)) return { problem: `the project is refused: ${wrote}` };
  return {
    seen: { peakMb: 0, blockMs: 0, ok: 0, late: 0, failed: 0 },
    alive: false,
    answer: 'refused at load',
  };
}

/** @returns the outcome of the attack, or how its process or its time ended before that */
async function inTime({ attack, seconds, kills = false }, parts) {
  const limit = new AbortController();
  setMaxListeners(0, limit.signal);
  const late = `the attack did not end within ${seconds * slow} s`;
  const over = sleep(seconds * slow * 1_000, { answer: late, problem: late }, { signal: limit.signal }).catch(() => '');
  const ended = parts.server.ended.then(() => sleep(500, 'the process ended'));
  const answer = attack({ ...parts, signal: limit.signal });
  const given = await Promise.race(kills ? [answer, over] : [answer, over, ended]);
  limit.abort();
  await Promise.race([answer.catch(() => {}), sleep(1_000)]);
  return given;
}

/** @returns true when the server answers in time, otherwise how its process ended or that it does not answer */
async function recovers(server) {
  const signal = AbortSignal.timeout(RECOVERY_MS * slow);
  const silent = sleep(RECOVERY_MS * slow, 'it no longer answered');
  return Promise.race([
    server.ended,
    silent,
    ask(server, '/health', { signal }).then(({ status }) =>
      status === 200 ? true : Promise.race([server.ended, silent]),
    ),
  ]);
}

function judge({ peakMb, blockMs }, seen, alive) {
  if (seen.killed) return 'the process took more than 3 GB and was killed';
  if (alive !== true) return `the process did not live: ${alive}`;
  if (seen.peakMb > peakMb) return `${seen.peakMb} MB at its peak, at most ${peakMb} expected`;
  if (seen.blockMs > blockMs * slow)
    return `its health had no answer for ${seen.blockMs} ms, at most ${blockMs * slow} expected`;
  return undefined;
}

/** Opens the store of an attack. @returns `storage` for the command line, `facts` of what was stored before, `remove()` */
async function openStore({ storage = 'memory', filled, files }, folder) {
  const remove = async () => {};
  if (storage === 'memory') return { storage, facts: {}, remove };
  if (storage === 'postgres') return openDatabase();
  const path = join(folder, 'attacked.db');
  const facts = filled ? await filledStore(filled.name, files, filled.fill, path) : {};
  return { storage: `sqlite:${path}`, facts, remove };
}

/** Creates a database for the attack on the Postgres server. @returns as `openStore`, or `skipped` without a server */
async function openDatabase() {
  const name = `ensemble_load_${process.pid}`;
  const query = async (text) => {
    const client = new pg.Client({ connectionString: POSTGRES, connectionTimeoutMillis: 5_000 });
    client.on('error', () => {});
    await client.connect();
    try {
      await client.query(text);
    } finally {
      await client.end();
    }
  };
  try {
    await query(`CREATE DATABASE ${name}`);
  } catch (error) {
    return {
      skipped: `no database on the Postgres server (${new URL(POSTGRES).host}): ${error.message || error.code}`,
    };
  }
  const url = new URL(POSTGRES);
  url.pathname = `/${name}`;
  return { storage: url.href, facts: {}, remove: () => query(`DROP DATABASE ${name} WITH (FORCE)`) };
}

function refuse(message) {
  console.error(message);
  process.exit(2);
}
