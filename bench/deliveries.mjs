/**
 * Sends signed deliveries from a new SQLite file to a receiver on the loopback, which is a process of its own, and prints one line of JSON:
 * how many are sent a second when all of them are due, and the time from an event to its first attempt at a fixed rate.
 * Usage: node deliveries.mjs <deliveries> <executions a second> <seconds>
 */

import { fork } from 'node:child_process';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { importEntry, importLibrary } from './library.mjs';
import { storageOf } from './storages.mjs';

const WARM_UP_MS = 2_000;

if (process.argv[2] === 'receive') {
  await receive();
} else {
  const [deliveries, rate, seconds] = process.argv.slice(2).map(Number);
  const receiver = fork(fileURLToPath(import.meta.url), ['receive']);
  const port = await new Promise((resolve) => receiver.once('message', resolve));
  const url = `http://127.0.0.1:${port}/hooks`;
  console.log(JSON.stringify({ perSecond: await drain(url, deliveries), ...(await atRate(url, rate, seconds)) }));
  receiver.kill();
  process.exit(0);
}

/** Answers 204 to each request. */
async function receive() {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(204).end());
  });
  server.listen(0, '127.0.0.1', () => process.send(server.address().port));
}

/** @returns deliveries a second. None is sent before all are stored */
async function drain(url, count) {
  let open;
  const gate = new Promise((resolve) => {
    open = resolve;
  });
  let sent = 0;
  const orchestrator = await sender(url, async (request, send) => {
    await gate;
    const response = await send(request);
    if (response.status === 204) sent += 1;
    return response;
  });
  for (let started = 0; started < count; started += 100)
    await Promise.all(Array.from({ length: 100 }, () => orchestrator.execute('notified')));
  const began = performance.now();
  open();
  while (sent < count) await new Promise((resolve) => setTimeout(resolve, 1));
  const perSecond = (count / (performance.now() - began)) * 1000;
  await orchestrator.close();
  return perSecond;
}

/** @returns the times from events to their first attempts, in ms, while `rate` executions begin each second. The first two seconds don't count */
async function atRate(url, rate, seconds) {
  const delays = [];
  const from = Date.now() + WARM_UP_MS;
  const orchestrator = await sender(url, (request, send) => {
    const at = Date.parse(JSON.parse(request.body).timestamp);
    if (at >= from) delays.push(Date.now() - at);
    return send(request);
  });
  const began = performance.now();
  const runs = [];
  while (performance.now() - began < WARM_UP_MS + seconds * 1000) {
    const due = ((performance.now() - began) / 1000) * rate;
    while (runs.length < due) runs.push(orchestrator.execute('notified'));
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(runs);
  await orchestrator.close();
  delays.sort((a, b) => a - b);
  const at = (share) => delays[Math.floor((delays.length - 1) * share)];
  return { atRate: delays.length / seconds, p50Ms: at(0.5), p99Ms: at(0.99) };
}

/** An orchestrator whose ensemble has one step and notifies the receiver of its end. @param through - gets each request and what sends it */
async function sender(url, through) {
  const { createOrchestrator } = await importLibrary();
  const { nodeHttp } = await importEntry('node');
  const http = nodeHttp({ allow: ['127.0.0.1'] });
  const orchestrator = createOrchestrator({
    ensembles: [
      {
        name: 'notified',
        notifications: [
          { type: 'webhook', url, secret: '${env.SECRET}', events: ['execution.completed'], timeout: '30s' },
        ],
        flow: [{ agent: 'step', operation: 'code', config: { script: 'step' } }],
      },
    ],
    scripts: { step: () => 1 },
    secrets: { SECRET: 'a secret of the benchmark' },
    storage: await storageOf('sqlite'),
    http: { ...http, send: (request) => through(request, (r) => http.send(r)) },
    logger: false,
  });
  await orchestrator.ready();
  return orchestrator;
}
