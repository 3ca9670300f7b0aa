/** Runs the ensembles. The result is the same on every runtime. */

import { createHandler, isOrchestratorError, signPayload } from 'ensemble-orchestrator';
import { createDashboard } from 'ensemble-orchestrator/dashboard';
import { asked, bulk, onManualClock, orchestrator, parcels, quickstart, tooled, toolRequests } from './ensembles.mjs';
import { orders } from './quickstart.mjs';
import { notify } from './services.mjs';

const INPUT = {
  customer: 'zolw',
  lines: [
    { sku: 'pen', amount: 2 },
    { sku: 'desk', amount: 1 },
  ],
};

export async function smoke() {
  const handle = await orchestrator.start('orders', INPUT);
  const events = [];
  for await (const { event } of handle.events()) events.push(event);
  const run = await handle.result();
  const stored = await orchestrator.executions.get(handle.id);
  const patient = await onManualClock.execute('patient');
  const refused = await orchestrator.execute('orders', { customer: 1 }).catch((error) => error);
  const http = await overHttp();
  await orchestrator.close();
  return {
    id: /^exec_[0-9a-z]{26}$/i.test(run.id),
    status: run.status,
    output: run.output,
    agents: run.agents.map(({ name, status, attempts }) => `${name} ${status} ${attempts}`),
    events: countEach(events),
    asked,
    stored: stored.status === run.status && JSON.stringify(stored.output) === JSON.stringify(run.output),
    patient: { status: patient.status, duration: patient.duration },
    refused: isOrchestratorError(refused, 'INVALID_INPUT'),
    http,
    quickstart: await runQuickstart(),
    tools: await callTools(),
    jobs: await workOnMany(),
    services: await notify(),
  };
}

/** The same over HTTP: statuses, a synchronous run, an asynchronous run and its events, and refused requests. */
async function overHttp() {
  const handler = createHandler(orchestrator);
  const { token } = await orchestrator.tokens.create({
    name: 'smoke',
    scopes: ['execute:ensembles', 'read:executions'],
  });
  const call = (method, path, body, headers = {}) =>
    handler.fetch(
      new Request(`https://localhost${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }), ...headers },
        body: body && JSON.stringify(body),
      }),
    );
  const execute = '/api/v1/execute/ensemble/orders';
  const waited = await call('POST', execute, { input: INPUT });
  const queued = await call('POST', execute, { input: INPUT, async: true });
  const { executionId } = await queued.json();
  const events = await (await call('GET', `/api/v1/executions/${executionId}/events`)).text();
  const record = await (await call('GET', queued.headers.get('location'))).json();
  return {
    health: (await call('GET', '/api/v1/health')).status,
    waited: [waited.status, (await waited.json()).output.decision],
    queued: [queued.status, record.status, record.trigger.type],
    events: events.split('\n').filter((line) => line.startsWith('event: ')),
    noToken: (await call('GET', '/api/v1/executions', undefined, { authorization: '' })).status,
    noScope: (await call('GET', '/api/v1/tokens')).status,
    badInput: (await call('POST', execute, { input: { customer: 1 } })).status,
    tooLarge: (await call('POST', execute, { input: { text: 'x'.repeat(1_100_000) } })).status,
    webhooks: await receive(handler),
    dashboard: await openDashboard(),
    notMine: (await handler.handle(new Request('https://localhost/about'))).matched,
  };
}

/** The page by its own handler, and by `dashboard: true`, which is refused in a Worker: its bundle has the page only where it imports it. */
async function openDashboard() {
  const open = async (handler, path) => {
    const response = await handler.fetch(new Request(`https://localhost${path}`));
    const text = await response.text();
    return response.status === 200 ? text.includes('<script type="module"') : JSON.parse(text).error.code;
  };
  const isWorker = globalThis.navigator?.userAgent === 'Cloudflare-Workers';
  const byOption = await open(createHandler(orchestrator, { dashboard: true, logger: false }), '/dashboard/');
  return {
    byHandler: await open(createDashboard(orchestrator, { basePath: '/admin' }), '/admin/'),
    byOption: byOption === (isWorker ? 'NOT_CONFIGURED' : true) || byOption,
  };
}

/** Signed webhooks: a small body, a large one, whose signature the platform checks, one that was altered, and one that is sent twice. */
async function receive(handler) {
  const sign = (body) => signPayload({ secret: 'hush', body });
  const send = async (body, signature = sign(body)) => {
    const headers = { 'content-type': 'application/json', 'x-custom': 'yes', ...signature };
    const url = 'https://localhost/webhooks/received?a=b';
    const response = await handler.fetch(new Request(url, { method: 'POST', headers, body }));
    return { status: response.status, ...(await response.json()) };
  };
  const body = '{ "text": "żółw" }';
  // A signature holds the second at which it was made.
  const signature = sign(body);
  const small = await send(body, signature);
  const twice = await send(body, signature);
  const large = JSON.stringify({ text: 'x', more: 'y'.repeat(100_000) });
  return {
    small: [small.status, small.output],
    isSame: small.executionId === twice.executionId,
    large: (await send(large)).output,
    altered: [
      (await send('{ "text": "b" }', sign('{ "text": "a" }'))).error,
      (await send(large.replace('x', 'z'), sign(large))).error,
    ],
  };
}

/** Three parallel calls of tools, twice. Parallel calls share a token and a list, except on Workers; later calls use what is kept. */
async function callTools() {
  const runs = [
    await tooled.execute('ship', { skus: ['pen', 'desk', 'lamp'] }),
    await tooled.execute('ship', { skus: [] }),
  ];
  const { tokens, lists } = toolRequests;
  runs.push(await tooled.execute('ship', { skus: ['pen'] }));
  await tooled.close();
  const isShared = globalThis.navigator?.userAgent === 'Cloudflare-Workers' ? tokens >= 2 : tokens === 2 && lists === 1;
  return {
    runs: runs.map(({ status, output }) => ({ status, calls: output.calls.map(({ content }) => content) })),
    isShared,
    isKept: toolRequests.tokens === tokens && toolRequests.lists === lists,
  };
}

/** 300 failed executions: a job retries them, what could not be sent is sent again, and a job deletes all. A Worker works within the request. */
async function workOnMany() {
  const until = async (isOver) => {
    for (let turns = 0; turns < 400; turns += 1) {
      await bulk.runDue();
      if (await isOver()) return;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  };
  const isDone = async (id) => (await bulk.jobs.get(id)).status !== 'running';
  const done = async (action, filter) => {
    const { id } = await bulk.jobs.create({ action, filter });
    await until(() => isDone(id));
    const { status, seen, changed, unchanged, failed } = await bulk.jobs.get(id);
    return { action, status, seen, changed, unchanged, failed };
  };
  const failed = { ensemble: 'parcel', status: 'failed' };
  for (let n = 0; n < 300; n += 1) await bulk.execute('parcel', { n });
  await until(() => parcels.received >= 300);
  parcels.repaired = true;
  const retried = await done('retry', failed);
  await until(() => parcels.received >= 600);
  const { id } = await bulk.deliveries.replay({ status: 'failed' });
  await until(
    async () =>
      (await bulk.deliveries.replays()).every(({ status }) => status !== 'running') && parcels.received >= 900,
  );
  const [replay] = await bulk.deliveries.replays();
  const deleted = await done('delete', { ensemble: 'parcel' });
  const left = (await bulk.executions.list({ ensemble: 'parcel' })).executions.length;
  await bulk.close();
  return {
    retried,
    isReplay: replay.id === id,
    replay: [replay.status, replay.redelivered],
    received: parcels.received,
    deleted,
    left,
  };
}

/** Runs the orders of the quickstart one after another. A refused order gives its error code. */
async function runQuickstart() {
  const results = [];
  for (const order of orders) {
    try {
      const { status, output, agents, error } = await quickstart.execute('order-intake', order);
      // The name of the ticket is derived from the id of the execution.
      const shown = output && { ...output, ticket: output.ticket && 'a ticket' };
      results.push({
        status,
        error: error ?? null,
        output: shown,
        agents: agents.map(({ name, attempts }) => `${name} ${attempts}`),
      });
    } catch (error) {
      results.push(isOrchestratorError(error) ? error.code : String(error));
    }
  }
  return results;
}

function countEach(names) {
  const counts = {};
  for (const name of names.sort()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
