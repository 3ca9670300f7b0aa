/**
 * Measures the longest turn of the event loop under each kind of long work on a SQLite file with 20,000 entries, and how long a health
 * check over HTTP waits beside it. Prints one line of JSON: `{ <work>: { seconds, longestMs, healthP99Ms, healthMaxMs } }`.
 * Usage: node turns.mjs <entries>
 */

import { fork } from 'node:child_process';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { importEntry, importLibrary } from './library.mjs';
import { percentile } from './statistics.mjs';
import { storageOf } from './storages.mjs';

const CHECK_EVERY_MS = 10;
const AT_ONCE = 200;

if (process.argv[2] === 'check') await check(process.argv[3]);
else {
  console.log(JSON.stringify(await measure(Number(process.argv[2]))));
  process.exit(0);
}

/** Asks for the health of the service again and again, and answers each message with how long that took since the last message. */
async function check(url) {
  let times = [];
  process.on('message', () => {
    process.send(times);
    times = [];
  });
  process.on('disconnect', () => process.exit());
  for (;;) {
    const begun = performance.now();
    await fetch(url).then((response) => response.text());
    times.push(performance.now() - begun);
    await sleep(Math.max(0, CHECK_EVERY_MS - (performance.now() - begun)));
  }
}

async function measure(count) {
  const { createOrchestrator, embeddedEngine, createApiHandler, systemClock } = await importLibrary();
  const { toNodeListener } = await importEntry('node');
  const storage = await storageOf('sqlite');
  const open = (options) =>
    createOrchestrator({
      storage: { ...storage, close: () => undefined },
      ensembles: [
        { name: 'step', flow: [{ agent: 's', operation: 'code', config: { script: 'step' } }] },
        {
          name: 'notified',
          notifications: [
            {
              type: 'webhook',
              url: 'https://receiver.example/',
              secret: '${env.SECRET}',
              events: ['execution.completed'],
            },
          ],
          flow: [{ agent: 's', operation: 'code', config: { script: 'step' } }],
        },
      ],
      scripts: { step: () => 1 },
      secrets: { SECRET: 'a secret of the benchmark' },
      http: {
        resolve: async () => ['192.0.2.1'],
        send: () =>
          new Promise((resolve) => setImmediate(resolve, { status: 204, headers: {}, body: new Uint8Array() })),
      },
      logger: false,
      ...options,
    });
  const each = async (run) => {
    for (let i = 0; i < count; i += AT_ONCE)
      await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - i) }, run));
  };
  const queueing = open({ engine: embeddedEngine({ concurrency: 0, queueLimit: 10 * count }) });
  const server = createServer(toNodeListener(createApiHandler(queueing)));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const checker = fork(fileURLToPath(import.meta.url), [
    'check',
    `http://127.0.0.1:${server.address().port}/api/v1/health`,
  ]);
  const checked = () =>
    new Promise((resolve) => {
      checker.once('message', resolve);
      checker.send('since the last message');
    });
  const results = {};
  const during = async (name, work) => {
    await sleep(300);
    await checked();
    let [isOver, longest, last] = [false, 0, performance.now()];
    const turn = () => {
      const now = performance.now();
      longest = Math.max(longest, now - last);
      last = now;
      if (!isOver) setImmediate(turn);
    };
    turn();
    const begun = performance.now();
    await work();
    const seconds = (performance.now() - begun) / 1000;
    await sleep(20);
    isOver = true;
    const times = (await checked()).sort((a, b) => a - b);
    results[name] = { seconds, longestMs: longest, healthP99Ms: percentile(times, 0.99), healthMaxMs: times.at(-1) };
    console.error(name, results[name]);
  };
  const job = async (action, filter) => {
    const { id } = await queueing.jobs.create({ action, filter });
    for (;;) {
      const found = await queueing.jobs.get(id);
      if (found.status !== 'running') {
        if (found.status !== 'completed' || found.changed < count) throw new Error(JSON.stringify(found));
        return;
      }
      await sleep(5);
    }
  };

  await each(() => queueing.start('step', {}));
  await during('job: cancel', () => job('cancel', { ensemble: 'step' }));
  await during('job: retry', () => job('retry', { ensemble: 'step', status: 'cancelled' }));
  await during('job: cancel again', () => job('cancel', { ensemble: 'step', status: 'queued' }));
  await during('job: delete', () => job('delete', { ensemble: 'step' }));

  const working = open({});
  const isSent = async () => {
    while ((await working.deliveries.list({ status: 'pending', limit: 1 })).deliveries.length > 0) await sleep(50);
  };
  await each(() => working.execute('notified', {}));
  await isSent();
  await during('replay of notifications', async () => {
    await working.deliveries.replay({ ensemble: 'notified', status: 'succeeded' });
    while ((await working.deliveries.replays()).some(({ status }) => status === 'running')) await sleep(5);
    await isSent();
  });
  await working.close();
  const later = { now: () => Date.now() + 90 * 86_400_000 };
  const sweeping = open({ clock: { ...systemClock(), ...later } });
  await during('retention', async () => {
    await sweeping.ready();
    while ((await sweeping.executions.list({ limit: 1 })).executions.length > 0) await sleep(5);
    await sleep(1000);
  });
  await sweeping.close();
  await queueing.close();
  checker.kill();
  server.close();
  return results;
}
