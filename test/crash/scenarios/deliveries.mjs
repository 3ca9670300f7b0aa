/**
 * Notifications through kills of their sender: each stored state has its deliveries, each delivery ends, and the receiver sees it at least
 * once, with attempts 1, 2, 3 without a gap, and none after its last permitted one.
 */

import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { loadLibrary } from '../library.mjs';
import { openStore } from '../open-store.mjs';
import { start } from '../processes.mjs';

const WORKER = fileURLToPath(new URL('../delivery-worker.mjs', import.meta.url));
/** A minute of the processes is three seconds. */
const FACTOR = 20;
const RETRIES = 2;
const TIMEOUT_MS = 600_000;
const MAX_KILLS = 60;
/** Each kind of answer: whether the sender may repeat it. Most succeed. */
const ANSWERS = [
  ...Array.from({ length: 8 }, () => ({ status: 204 })),
  ...[200, 301, 302, 400, 404, 422, 429].map((status) => ({ status })),
  ...[408, 500, 503].map((status) => ({ status, repeats: true })),
  ...['reset', 'hang'].map((kind) => ({ kind, repeats: true })),
  // The status is there: a body that is cut short changes nothing.
  { kind: 'half', status: 200 },
];

export const deliveries = {
  name: 'deliveries',
  about: 'notifications while their sender is killed',
  stores: ['sqlite', 'postgres'],
  async run(bed, { executions, random }) {
    const { store, problems } = bed;
    const requests = new Map();
    const receiver = await startReceiver(requests, random);
    let kills = 0;
    const live = (count) => {
      const about = { store, url: receiver.url, factor: FACTOR, executions: count, width: 20 };
      return start(WORKER, about, { timeoutMs: TIMEOUT_MS });
    };
    const { createOrchestrator } = await loadLibrary();
    const reader = createOrchestrator({ storage: await openStore(store), logger: false });
    const listAll = async (filter) => {
      const all = [];
      for (let cursor; ; ) {
        const page = await reader.deliveries.list({ ...filter, limit: 250, ...(cursor && { cursor }) });
        all.push(...page.deliveries);
        cursor = page.nextCursor;
        if (!cursor) return all;
      }
    };
    while (kills < MAX_KILLS && (await countEvents(reader))['execution.started'] < executions) {
      const worker = live(executions);
      await sleep(random.from(2_000, 5_000));
      worker.child.kill('SIGKILL');
      await worker.ended;
      kills += 1;
    }
    const last = live(0);
    const until = performance.now() + 120_000;
    const isOver = async () => (await listAll({ status: 'pending' })).length === 0 && !(await isUnended(reader));
    while (!(await isOver()))
      if (performance.now() > until) {
        problems.push('deliveries or executions did not end in time');
        break;
      } else await sleep(250);
    last.child.kill('SIGKILL');
    await last.ended;

    const stored = await listAll({});
    const expected = await countEvents(reader);
    const counted = {};
    for (const { event } of stored) counted[event] = (counted[event] ?? 0) + 1;
    for (const [event, count] of Object.entries(expected))
      if (counted[event] !== count) problems.push(`${count} times ${event}, but ${counted[event] ?? 0} deliveries`);
    let repeated = 0;
    for (const { id, status } of stored) {
      const seen = requests.get(id) ?? [];
      repeated += check(id, status, seen, problems);
    }
    for (const id of requests.keys())
      if (!stored.some((one) => one.id === id)) problems.push(`${id} was sent, but is not stored`);
    await reader.close({ grace: 0 });
    receiver.close();
    const total = [...requests.values()].reduce((sum, { length }) => sum + length, 0);
    return `${kills} kills, ${expected['execution.started']} executions, ${stored.length} deliveries, ${total} requests, ${repeated} attempts made twice`;
  },
};

/** @returns how many attempts were made twice: a crash cut them off, or their result was not stored */
function check(id, status, seen, problems) {
  const attempts = seen.map(({ attempt }) => attempt);
  const last = Math.max(0, ...attempts);
  for (let n = 1; n <= last; n++) if (!attempts.includes(n)) problems.push(`${id} has no attempt ${n} of ${last}`);
  if (last === 0) problems.push(`${id} (${status}) was never sent`);
  if (last > RETRIES + 1) problems.push(`${id} has attempt ${last}`);
  if (seen.some(({ body }) => body !== seen[0].body)) problems.push(`${id} was sent with different bodies`);
  // After an attempt that must not be repeated, there may be the same one again, but no later one.
  for (const { attempt, answer } of seen) {
    const isFinal = seen.filter((other) => other.attempt === attempt).every((other) => !other.answer.repeats);
    if (isFinal && attempt < last && !answer.repeats)
      problems.push(`${id} was repeated after ${JSON.stringify(answer)}`);
  }
  if (status === 'succeeded' && !seen.some(({ answer }) => answer.status >= 200 && answer.status < 300))
    problems.push(`${id} has succeeded, but no answer was 2xx`);
  return attempts.length - new Set(attempts).size;
}

async function isUnended(reader) {
  for (const status of ['queued', 'running', 'waiting'])
    if ((await reader.executions.list({ status, limit: 1 })).executions.length > 0) return true;
  return false;
}

/** How many events the stored executions stand for. */
async function countEvents(reader) {
  const counts = { 'execution.started': 0, 'agent.completed': 0, 'state.updated': 0, 'execution.completed': 0 };
  for (let cursor; ; ) {
    const page = await reader.executions.list({ limit: 250, ...(cursor && { cursor }) });
    for (const { status } of page.executions) {
      counts['execution.started'] += 1;
      if (status !== 'completed') continue;
      for (const event of ['agent.completed', 'state.updated', 'execution.completed']) counts[event] += 1;
    }
    cursor = page.nextCursor;
    if (!cursor) return counts;
  }
}

/** A receiver that answers each attempt in a way of its own, and keeps what it has seen. */
async function startReceiver(requests, random) {
  const server = createServer((request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      const id = request.headers['x-service-delivery'];
      const answer = ANSWERS[random.from(0, ANSWERS.length - 1)];
      const seen = requests.get(id) ?? [];
      requests.set(id, seen);
      seen.push({
        attempt: Number(request.headers['x-service-delivery-attempt']),
        answer,
        body: Buffer.concat(parts).toString(),
      });
      if (answer.kind === 'reset') request.socket.resetAndDestroy();
      else if (answer.kind === 'half') {
        response.writeHead(200, { 'content-length': 100 });
        response.write('half', () => request.socket.destroy());
      } else if (answer.kind === 'hang') setTimeout(() => request.socket.destroy(), 300);
      else response.writeHead(answer.status, { location: 'http://127.0.0.1:1/' }).end();
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
