/**
 * Measures a claim from a million queued executions with 10,000 keys, each of which may run one at a time, on one connection of Postgres:
 * with all keys free, and with 9,900 of them full. Prints one line of JSON: `{ claims, free, full }`, each with `p50Ms` and `p99Ms`.
 * Usage: BENCH_POSTGRES=<URL of an empty database> node durable/keys.mjs <queued>
 */

import pg from 'pg';
import { percentile } from '../statistics.mjs';
import { openCopies } from './copies.mjs';
import { importStore } from './library-store.mjs';
import { printMeasured } from './unavailable.mjs';

const queued = Number(process.argv[2]);
const [KEYS, FREE_KEYS, CLAIMS, WARM_UP, PORTION] = [10_000, 100, 2000, 200, 100_000];
const WORKER = 'own_bench';
const SCHEMA = 'keys';
const NOW = Date.now();
const queueOf = (key) => `["orders","k${key}"]`;
const KEY = `(n.n % ${KEYS})`;

await printMeasured(measure);

async function measure() {
  const { postgresStorage } = await importStore('postgres');
  // The storage keeps one of them for locks and notifications.
  const pool = new pg.Pool({ connectionString: process.env.BENCH_POSTGRES, max: 2 });
  const storage = postgresStorage({ pool, schema: SCHEMA });
  await storage.workers.register(WORKER, { now: NOW, leaseUntil: NOW + 3_600_000 });
  await queueOne(storage);
  await fill(pool);
  const free = await measureClaims(storage);
  const held = [];
  for (let found = await claim(storage, 250); found.length > 0; found = await claim(storage, 250)) held.push(...found);
  if (held.length !== KEYS) throw new Error(`${held.length} executions are held, not one of each of ${KEYS} keys`);
  for (const one of held) if (Number(one.execution.limits[0].key.slice(1)) < FREE_KEYS) await finish(storage, one);
  const full = await measureClaims(storage);
  await storage.close?.();
  await pool.end();
  return { claims: CLAIMS, free, full };
}

async function queueOne(storage) {
  const start = {
    ...{ id: `exec_${'0'.repeat(26)}`, ensemble: 'orders', version: 'v', trigger: { type: 'call' }, input: { n: 1 } },
    ...{ seed: 'f'.repeat(32), createdAt: NOW, limits: [{ name: 'orders', key: 'k0', max: 1, since: 1 }] },
  };
  const release = { status: 'queued', dueAt: NOW };
  const [result] = await storage.commit('', [{ executionId: start.id, epoch: 0, start, steps: [], release }]);
  if (result !== 'stored') throw new Error(`the first execution was not stored: ${result}`);
}

/** Copies of it under all keys. Their queues are ready, as if each had arrived. */
async function fill(pool) {
  await pool.query(`ALTER TABLE ${SCHEMA}.executions DISABLE TRIGGER USER`);
  const copies = await openCopies('postgres', process.env.BENCH_POSTGRES, {
    schema: SCHEMA,
    values: {
      queue: `'["orders","k' || ${KEY} || '"]'`,
      limits: `replace(first.limits, '"k0"', '"k' || ${KEY} || '"')`,
      due_at: `first.due_at - ${queued} + n.n`,
    },
  });
  for (let left = queued - 1; left > 0; left -= PORTION) {
    console.error(`${left} executions to go`);
    await copies.add(Math.min(left, PORTION));
  }
  await copies.analyze();
  await copies.close();
  await pool.query(`ALTER TABLE ${SCHEMA}.executions ENABLE TRIGGER USER`);
  const [namespace] = (await pool.query(`SELECT namespace FROM ${SCHEMA}.executions LIMIT 1`)).rows;
  const all = Array.from({ length: KEYS }, (_, key) => key);
  await pool.query(
    `INSERT INTO ${SCHEMA}.queues (namespace, id, ready) SELECT $1, id, true FROM unnest($2::text[]) id ON CONFLICT DO NOTHING`,
    [namespace.namespace, all.map(queueOf)],
  );
  await pool.query(
    `INSERT INTO ${SCHEMA}.limits (namespace, id, name, max, since) SELECT $1, id, 'orders', 1, 1 FROM unnest($2::text[]) id ON CONFLICT DO NOTHING`,
    [namespace.namespace, all.map(queueOf)],
  );
  await pool.query(`VACUUM ANALYZE ${SCHEMA}.queues, ${SCHEMA}.limits`);
}

function claim(storage, limit) {
  return storage.executions.claim(WORKER, { now: NOW + 1000, limit, excludeVersions: [] });
}

async function finish(storage, { execution: { id: executionId }, epoch }) {
  const end = { status: 'completed', output: null, finishedAt: NOW + 1000, duration: 1, agents: 0 };
  const [result] = await storage.commit(WORKER, [{ executionId, epoch, steps: [], end }]);
  if (result !== 'stored') throw new Error(`the end was not stored: ${result}`);
}

/** One execution after the other: a claim, which is measured, and its end. */
async function measureClaims(storage) {
  await storage.executions.poll(WORKER, []);
  const all = [];
  for (let i = 0; i < WARM_UP + CLAIMS; i++) {
    const begun = performance.now();
    const [one] = await claim(storage, 1);
    const ms = performance.now() - begun;
    if (!one) throw new Error(`claim ${i} found nothing`);
    if (i >= WARM_UP) all.push(ms);
    await finish(storage, one);
  }
  all.sort((a, b) => a - b);
  return { p50Ms: percentile(all, 0.5), p99Ms: percentile(all, 0.99) };
}
