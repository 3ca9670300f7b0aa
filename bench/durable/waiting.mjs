/**
 * Starts a million executions that wait an hour for their second attempt. Prints a table of the memory of the process, and of
 * how punctually a sample resumes.
 * Usage: node --expose-gc durable/waiting.mjs [executions]
 */

import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { importLibrary } from '../library.mjs';
import { median, significant, whole } from '../statistics.mjs';
import { openStore } from './library-store.mjs';
import { openSqlite } from './open-sqlite.mjs';

const EXECUTIONS = Number(process.argv[2] ?? 1_000_000);
const SAMPLE = 100;
const SAMPLE_DELAY_MS = 30_000;
const IN_FLIGHT = 200;
const MAX_MEMORY_MB = 8192;
const root = process.env.BENCH_FOLDER ?? fileURLToPath(new URL('../node_modules/', import.meta.url));

const folder = mkdtempSync(join(root, '.bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const file = join(folder, 'waiting.db');
const lines = [];
await measure();
console.log(JSON.stringify({ lines }));
process.exit(0);

async function measure() {
  const { createOrchestrator } = await importLibrary();
  const { storage } = await openStore('sqlite', file);
  const failedOnce = new Set();
  const late = [];
  const dueAt = new Map();
  const orchestrator = createOrchestrator({
    storage,
    ensembles: [
      ensemble('hour', { script: 'fail' }, 3_600_000),
      ensemble('sample', { script: 'failOnce' }, SAMPLE_DELAY_MS),
    ],
    scripts: {
      fail() {
        throw new Error('later');
      },
      failOnce({ execution }) {
        if (!failedOnce.has(execution.id)) {
          failedOnce.add(execution.id);
          throw new Error('later');
        }
        late.push(Date.now() - dueAt.get(execution.id));
      },
    },
  });

  lines.push(
    '| waiting on SQLite | started/s | heap in use, MB | resident set, MB | file, MB |\n|---:|---:|---:|---:|---:|',
  );
  await report(0, 0);
  let waiting = 0;
  orchestrator.on('agent.retrying', ({ data }) => {
    waiting += 1;
    if (failedOnce.has(data.executionId)) dueAt.set(data.executionId, data.retryAt);
  });
  let started = 0;
  const startUntil = async (name, count) => {
    const loop = async () => {
      while (started < count) {
        started += 1;
        await orchestrator.start(name, {}, { events: false });
        // Limits the executions that have started but do not wait yet.
        while (started - waiting > 2 * IN_FLIGHT) await sleep(1);
      }
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, loop));
    while (waiting < started) await sleep(1);
  };
  for (let tenth = 1; tenth <= 10; tenth++) {
    const before = performance.now();
    const startedBefore = started;
    await startUntil('hour', Math.round((EXECUTIONS * tenth) / 10));
    await report(started, (started - startedBefore) / ((performance.now() - before) / 1000));
  }
  await startUntil('sample', started + SAMPLE);
  const deadline = Date.now() + SAMPLE_DELAY_MS + 60_000;
  while (late.length < SAMPLE && Date.now() < deadline) await sleep(50);
  if (late.length < SAMPLE)
    throw new Error(`${SAMPLE - late.length} of ${SAMPLE} did not resume within a minute after they were due`);
  const worst = Math.max(...late);
  lines.push(
    `\nOf these, ${SAMPLE} waited ${SAMPLE_DELAY_MS / 1000} s: they went on ${significant(median(late))} ms late (median), ${significant(worst)} ms at most.`,
  );
  await orchestrator.close();
  await check();
}

function ensemble(name, config, delay) {
  return {
    name,
    flow: [{ agent: 's', operation: 'code', config, retry: { maxAttempts: 2, backoff: 'fixed', delay } }],
  };
}

async function report(count, perSecond) {
  await setImmediate();
  globalThis.gc();
  const { heapUsed, rss } = process.memoryUsage();
  const megabytes = (bytes) => whole(bytes / 2 ** 20);
  const onDisk = ['', '-wal'].reduce(
    (sum, end) => sum + (statSync(file + end, { throwIfNoEntry: false })?.size ?? 0),
    0,
  );
  lines.push(
    `| ${whole(count)} | ${perSecond ? whole(perSecond) : ''} | ${megabytes(heapUsed)} | ${megabytes(rss)} | ${megabytes(onDisk)} |`,
  );
  console.error(lines.at(-1));
  if (rss > MAX_MEMORY_MB * 2 ** 20)
    throw new Error(`${whole(count)} waiting executions hold ${megabytes(rss)} MB: stopped`);
}

/** Checks that the waiting executions are stored as waiting and that the sample has completed. */
async function check() {
  const reader = await openSqlite(file);
  const rows = reader
    .prepare(
      'SELECT ensemble, status, count(*) AS count FROM ensemble_executions GROUP BY ensemble, status ORDER BY ensemble',
    )
    .all([]);
  reader.close();
  const found = rows.map(({ ensemble, status, count }) => `${count} ${ensemble} ${status}`).join(', ');
  const wanted = `${EXECUTIONS} hour waiting, ${SAMPLE} sample completed`;
  if (found !== wanted) throw new Error(`stored are ${found}, not ${wanted}`);
}
