/**
 * Measures the queue between two processes on one Postgres, and prints one line of JSON: the time from `start()` in a process
 * that only queues to the step in the other process, and the throughput of a backlog.
 * Usage: BENCH_POSTGRES=<URL of an empty database> node durable/queue.mjs <seconds>
 */

import { fork } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { percentile } from '../statistics.mjs';
import { isUnavailable } from './unavailable.mjs';

const BACKLOG = 5000;
const WARM_UP_HOPS = 20;
const MAX_HOPS = 300;
const seconds = Number(process.argv[2]);
const processes = [];

try {
  console.log(JSON.stringify(await measure()));
} catch (error) {
  if (!isUnavailable(error)) throw error;
  console.log(JSON.stringify({ unavailable: error.message }));
} finally {
  for (const { child } of processes) child.kill('SIGKILL');
}
process.exit(0);

async function measure() {
  const enqueuer = open('enqueue');
  await enqueuer.receive('ready');
  const worker = open('work');
  await worker.receive('ready');
  const hops = await measureHops(enqueuer, worker);
  await worker.ask('close', 'closed');

  const enqueued = await enqueuer.ask('enqueue', 'enqueued', BACKLOG);
  const drainer = open('work', String(BACKLOG));
  const drained = await drainer.receive('drained');
  await Promise.all([drainer.ask('close', 'closed'), enqueuer.ask('close', 'closed')]);
  await check(hops.length + WARM_UP_HOPS + BACKLOG);

  hops.sort((a, b) => a - b);
  return {
    hops: hops.length,
    p50Ms: percentile(hops, 0.5),
    p99Ms: percentile(hops, 0.99),
    enqueuedPerSecond: (BACKLOG / enqueued.ms) * 1000,
    drainedPerSecond: (BACKLOG / drained.ms) * 1000,
  };
}

/** Starts one execution after another, each after the queue has been idle for a random time. */
async function measureHops(enqueuer, worker) {
  const hops = [];
  const start = performance.now();
  for (let i = 0; hops.length < MAX_HOPS && (i < WARM_UP_HOPS || performance.now() - start < 2000 * seconds); i++) {
    const [started, begun] = await Promise.all([
      enqueuer.ask('start', 'started', i),
      worker.receive('begun', i),
      worker.receive('ended', i),
    ]);
    if (i >= WARM_UP_HOPS) hops.push(begun.at - started.at);
    await sleep(10 + 30 * Math.random());
  }
  return hops;
}

/** Starts `queue-process.mjs`. @returns the `child`; `receive(what, number)`, its next such message; `ask(what, answer, number)` */
function open(...args) {
  const child = fork(fileURLToPath(new URL('./queue-process.mjs', import.meta.url)), args);
  const waiting = new Map();
  const received = new Map();
  let failure;
  const fail = (error) => {
    failure ??= error;
    for (const { reject } of waiting.values()) reject(failure);
  };
  child.on('message', (message) => {
    if (message.failed) fail(Object.assign(new Error(message.failed), { code: message.code }));
    const key = keyOf(message.what, message.number);
    if (waiting.has(key)) waiting.get(key).resolve(message);
    else received.set(key, message);
    waiting.delete(key);
  });
  child.on('exit', (code, signal) => fail(new Error(`the process \`${args[0]}\` ended with ${code ?? signal}`)));
  const receive = (what, number) =>
    new Promise((resolve, reject) => {
      const key = keyOf(what, number);
      if (received.has(key)) resolve(received.get(key));
      else if (failure) reject(failure);
      else waiting.set(key, { resolve, reject });
      received.delete(key);
    });
  const opened = {
    child,
    receive,
    ask(what, answer, number) {
      child.send({ what, number });
      return receive(answer, what === 'start' ? number : undefined);
    },
  };
  processes.push(opened);
  return opened;
}

function keyOf(what, number = '') {
  return `${what} ${number}`;
}

async function check(executions) {
  const client = new pg.Client({ connectionString: process.env.BENCH_POSTGRES });
  await client.connect();
  const { rows } = await client.query('SELECT status, count(*) AS count FROM ensemble.executions GROUP BY status');
  await client.end();
  if (rows.length !== 1 || rows[0].status !== 'completed' || Number(rows[0].count) !== executions)
    throw new Error(`${executions} executions left ${JSON.stringify(rows)}`);
}
