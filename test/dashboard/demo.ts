/** An app with something on every screen of the dashboard: waits, failures, loops, children, models, schedules, deliveries, components. */

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createDashboard, type DashboardOptions } from '../../src/entries/dashboard.ts';
import { toNodeListener } from '../../src/entries/node.ts';
import { fakeModel } from '../../src/entries/testing.ts';
import { createOrchestrator, type Orchestrator, type OrchestratorOptions } from '../../src/index.ts';

const ORDER = `
name: order
description: Prices an order, asks for an approval, and writes to the customer.
inputs:
  customer: { type: string, required: true, description: Who ordered }
  quantity: { type: integer, default: 3 }
  express: { type: boolean, default: false }
trigger:
  - { type: schedule, cron: "0 8 1 * *", timezone: Europe/Berlin, input: { customer: monthly } }
  - { type: webhook, path: /orders, public: true }
notifications:
  - { type: webhook, events: [execution.completed, execution.failed], url: "\${env.HOOK_URL}", secret: "\${env.HOOK_SECRET}" }
flow:
  - { agent: price, operation: code, config: { script: price } }
  - if: \${price.output > 100}
    then:
      - { wait: approved, timeout: 3d, name: approval }
    else:
      - { agent: discount, operation: code, config: { script: echo } }
  - foreach: \${[1, 2, 3]}
    name: parcels
    concurrency: 3
    steps:
      - { agent: pack, operation: code, config: { script: pack }, input: { n: "\${item}" } }
  - parallel:
      - { agent: letter, operation: think, config: { model: small, prompt: "Thank \${input.customer}" } }
      - { ensemble: ship, input: { to: "\${input.customer}" }, name: shipping }
  - try:
      - { agent: charge, operation: code, config: { script: charge }, input: { customer: "\${input.customer}" }, retry: { maxAttempts: 2, delay: 5ms } }
    catch:
      - { agent: apologize, operation: code, config: { script: echo } }
outputs:
  price: \${price.output}
  letter: \${letter.output}
`;

const SHIP = `
name: ship
flow:
  - { agent: label, operation: code, config: { script: echo } }
`;

const BROKEN = `
name: nightly-import
trigger:
  - { type: schedule, cron: "0 3 * * *" }
flow:
  - { agent: download, operation: code, config: { script: fail } }
  - { agent: store, operation: code, config: { script: echo } }
`;

export interface Demo {
  readonly url: string;
  readonly orchestrator: Orchestrator;
  /** The value of a new token. */
  token(...scopes: Parameters<Orchestrator['tokens']['create']>[0]['scopes'][number][]): Promise<string>;
  /** Closes every open connection. */
  dropConnections(): void;
  close(): Promise<void>;
}

export async function startDemo(options: OrchestratorOptions = {}, dashboard: DashboardOptions = {}): Promise<Demo> {
  const orchestrator = createOrchestrator({
    logger: false,
    env: { HOOK_URL: 'http://127.0.0.1:9/hook', HOOK_SECRET: 'whsec_c2VjcmV0LW9mLXRoZS1kZW1v' },
    models: { small: fakeModel([...Array(500)].map(() => 'Dear customer, thank you for your order.')) },
    ensembles: [ORDER, SHIP, BROKEN],
    ...options,
    scripts: {
      price: ({ input }) => (input as { quantity: number }).quantity * 30,
      pack: async ({ input }) => {
        await new Promise((resolve) => setTimeout(resolve, 5));
        return { parcel: (input as { n: number }).n };
      },
      charge: ({ input }) => {
        if ((input as { customer: string }).customer === 'broke') throw new Error('the card was refused');
        return 'paid';
      },
      echo: ({ input }) => input,
      fail: () => {
        throw new Error('the file server answered 503 Service Unavailable');
      },
      ...options.scripts,
    },
  } as OrchestratorOptions) as unknown as Orchestrator;
  const handler = createDashboard(orchestrator, { logger: false, ...dashboard });
  const server: Server = createServer(toNodeListener(handler));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}${dashboard.basePath ?? '/dashboard'}/`,
    orchestrator,
    async token(...scopes) {
      return (await orchestrator.tokens.create({ name: 'ada', scopes, plan: 'enterprise' })).token;
    },
    dropConnections: () => server.closeAllConnections(),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await orchestrator.close({ grace: 0 });
    },
  };
}

/** Executions of every kind of end, some components, and a token. */
export async function fillDemo({
  orchestrator,
}: Demo): Promise<{ readonly done: string; readonly waiting: string; readonly failed: string }> {
  const done = await orchestrator.execute('order', { customer: 'Ada', quantity: 2 });
  await orchestrator.execute('order', { customer: 'broke', quantity: 1 });
  const failed = await orchestrator.execute('nightly-import', {});
  const waiting = await orchestrator.start('order', { customer: 'Grace', quantity: 9 }, { tags: ['vip', 'order-17'] });
  const { components } = orchestrator;
  await components.register({ name: 'greeting', kind: 'prompt', metadata: { description: 'How letters begin' } });
  await components.createVersion('greeting', {
    version: 'v1.0.0',
    content: 'Dear {{ name }},\nthank you.\n',
    message: 'first',
  });
  await components.createVersion('greeting', {
    version: 'v1.1.0',
    content: 'Hello {{ name }},\nthank you!\n',
    message: 'friendlier',
  });
  await components.deploy('greeting', { to: 'production', version: 'v1.0.0' });
  await components.deploy('greeting', { to: 'staging', version: 'v1.1.0' });
  return { done: done.id, waiting: waiting.id, failed: failed.id };
}
