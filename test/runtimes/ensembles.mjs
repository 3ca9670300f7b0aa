/** The ensembles of the smoke test and their orchestrators. They are created at module level, where a Worker allows no I/O, timer or randomness. */

import { createOrchestrator } from 'ensemble-orchestrator';
import { createTestOrchestrator } from 'ensemble-orchestrator/testing';
import { ensembles, scripts as quickstartScripts } from './quickstart.mjs';

const ORDERS = `
name: orders
description: Every kind of step, on every runtime.
inputs:
  customer: { type: string, required: true }
  lines: { type: array, required: true }
flow:
  - agent: customer
    operation: api
    config:
      url: https://customers.example/v1/customers/\${input.customer}
      method: POST
      headers: { x-lines: '\${length(input.lines)}' }
      body: { name: '\${input.customer}', sent: '\${now() > 0}' }
  - foreach: \${input.lines}
    concurrency: 2
    name: priced
    steps:
      - agent: price
        operation: code
        config: { script: price, sku: '\${item.sku}', amount: '\${item.amount}' }
  - agent: stock
    operation: code
    config: { script: flaky, draws: ['\${random()}', '\${uuid()}', '\${uuid()}'] }
    retry: { maxAttempts: 3, backoff: fixed, delay: 10 }
  - if: \${sum(priced.output) >= 100 && customer.output.body.tier == 'gold'}
    then:
      - agent: accept
        operation: code
        config: { script: say, text: 'gold: \${upper(input.customer)} \${round(sum(priced.output), 2)}' }
    else:
      - agent: refuse
        operation: code
        config: { script: say, text: refused }
  - agent: broken
    operation: code
    config: { script: broken }
    continueOnError: true
outputs:
  total: \${sum(priced.output)}
  decision: \${accept.output ?? refuse.output}
  refused: \${refuse.executed}
  stock: \${stock.output}
  broken: \${broken.error.code}
  digest: \${sha256(customer.output.body.name)}
  text: \${date(0)} \${base64('żółw')} \${join(['a', 'b'], '+')}
`;

/** An HTTP client that answers from memory. It adds each request to `asked`, which the test compares. */
function customers(asked) {
  return {
    async send({ method, url, headers, body }) {
      const { 'idempotency-key': key, ...others } = Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
      );
      asked.push({
        method,
        url,
        headers: others,
        keyed: /^[0-9a-f]{32}$/.test(key),
        body: JSON.parse(new TextDecoder().decode(toBytes(body))),
      });
      const answer = JSON.stringify({ name: 'żółw & sons', tier: 'gold' });
      return {
        status: 200,
        headers: { 'content-type': 'application/json; charset=utf-8' },
        body: new TextEncoder().encode(answer),
      };
    },
  };
}

/** The shop that the quickstart calls: two customers, and a warehouse that is busy at the first call. */
function shop() {
  const known = {
    ada: { name: 'Ada', city: 'Lyon', tier: 'silver', orders: 12 },
    grace: { name: 'Grace', city: 'Oslo', tier: 'standard', orders: 0 },
  };
  let reservations = 0;
  const answer = (status, body) => ({
    status,
    headers: { 'content-type': 'application/json' },
    body: new TextEncoder().encode(JSON.stringify(body)),
  });
  return {
    async send({ method, url }) {
      const [, kind, id] = new URL(url).pathname.split('/');
      if (kind === 'customers') return known[id] ? answer(200, known[id]) : answer(404, { error: 'no such customer' });
      if (kind !== 'reservations' || method !== 'POST') return answer(404, { error: 'nothing here' });
      reservations += 1;
      return reservations === 1 ? answer(503, { error: 'busy' }) : answer(201, { id: `R-${reservations}` });
    },
  };
}

/** A tool server with OAuth, and the token server of it. It refuses the first token after it has been used. */
function toolServer(seen) {
  const answer = (status, body) => ({
    status,
    headers: { 'content-type': 'application/json' },
    body: new TextEncoder().encode(JSON.stringify(body)),
  });
  let tokens = 0;
  return {
    async send({ method, url, headers, body }) {
      // As long as a real answer takes: the calls are parallel.
      await new Promise((resolve) => setTimeout(resolve, 5));
      if (url === 'https://login.example/token') {
        tokens += 1;
        seen.tokens = tokens;
        return answer(200, { access_token: `token-${tokens}`, token_type: 'Bearer', expires_in: 3600 });
      }
      if (headers.Authorization === 'Bearer token-1') return answer(401, {});
      if (method === 'GET') {
        seen.lists += 1;
        return answer(200, { tools: [{ name: 'ship', inputSchema: { type: 'object', required: ['sku'] } }] });
      }
      const signed =
        /^sha256=[0-9a-f]{64}$/.test(headers['X-Shop-Signature']) && /^\d+$/.test(headers['X-Shop-Timestamp']);
      return answer(200, { content: { path: new URL(url).pathname, signed, ...JSON.parse(body) }, isError: false });
    },
  };
}

const SHIP = `
name: ship
flow:
  - foreach: \${input.skus}
    concurrency: 3
    name: shipped
    steps:
      - { agent: call, operation: tools, config: { mcp: shop, tool: ship, cacheDiscovery: true }, input: { sku: '\${item}' } }
outputs:
  calls: \${shipped.output}
`;

function toBytes(body) {
  return typeof body === 'string' ? new TextEncoder().encode(body) : body;
}

/** Scripts with their own state, for each orchestrator. */
function scripts() {
  let attempts = 0;
  const drawn = [];
  return {
    price: ({ config }) => ({ pen: 1.25, desk: 99.5 })[config.sku] * config.amount,
    say: ({ config }) => config.text,
    broken: () => {
      throw new Error('as it should be');
    },
    flaky: async ({ config, execution }) => {
      drawn.push(JSON.stringify(config.draws));
      attempts += 1;
      if (attempts < 3) throw new Error('not yet');
      const [random, first, second] = config.draws;
      const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
      return {
        attempt: execution.attempt,
        random: random >= 0 && random < 1,
        uuids: uuid.test(first) && uuid.test(second) && first !== second,
        sameDrawsEachAttempt: new Set(drawn).size === 1,
      };
    },
  };
}

export const asked = [];
/** Takes a signed webhook, and reads all of its request. */
const RECEIVED = `
name: received
trigger:
  - { type: webhook, path: /webhooks/received, auth: { type: signature, secret: "\${env.HOOK}" } }
flow: []
outputs:
  length: \${length(trigger.rawBody)}
  text: \${input.text}
  header: \${headers['X-Custom']}
  query: \${trigger.query.a}
`;

export const orchestrator = createOrchestrator({
  ensembles: [ORDERS, RECEIVED],
  scripts: scripts(),
  env: { HOOK: 'hush' },
  http: customers(asked),
});

/** With the default `fetchHttp()` and the clock of the testing kit. */
export const onManualClock = createTestOrchestrator({
  ensembles: [
    'name: patient\nflow:\n  - { agent: a, operation: code, config: { script: flaky, draws: ["${random()}", "${uuid()}", "${uuid()}"] }, retry: { maxAttempts: 4 } }',
  ],
  scripts: scripts(),
});

export const quickstart = createOrchestrator({
  ensembles,
  scripts: quickstartScripts,
  env: { SHOP_URL: 'https://shop.example' },
  http: shop(),
});

/** Fails until `repaired`, and tells a receiver about it. */
export const parcels = { repaired: false, received: 0 };
const PARCEL = `
name: parcel
notifications:
  - { type: webhook, url: 'https://hooks.example/in', secret: hush, events: [execution.completed, execution.failed] }
flow:
  - { agent: ship, operation: code, config: { script: ship } }
`;

/** For jobs over many executions, and replays of many deliveries. */
export const bulk = createOrchestrator({
  ensembles: [PARCEL],
  scripts: {
    ship: () => {
      if (!parcels.repaired) throw new Error('no van');
      return 'shipped';
    },
  },
  http: {
    async send() {
      parcels.received += 1;
      return { status: parcels.repaired ? 200 : 400, headers: {}, body: new Uint8Array() };
    },
  },
  logger: false,
});

export const toolRequests = { tokens: 0, lists: 0 };

/** Calls tools. Its tool server and its token server are in memory. */
export const tooled = createOrchestrator({
  ensembles: [SHIP],
  brand: 'shop',
  mcpServers: {
    shop: {
      url: 'https://tools.example/v1/',
      auth: { type: 'oauth', clientId: 'shop', clientSecret: 'a secret', tokenUrl: 'https://login.example/token' },
      secret: 'another secret',
    },
  },
  http: toolServer(toolRequests),
});
