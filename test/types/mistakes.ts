/** Mistakes in definitions and calls, each with a part of the message that TypeScript must give. */

export interface Mistake {
  readonly title: string;
  readonly code: string;
  /** What the message names. */
  readonly names: string;
}

/** Compiles without an error, with every option as TypeScript users write it. */
export const VALID = `
import { agent, createOrchestrator, defineAgent, defineEnsemble, defineOperation, parallel, wait, when } from 'ensemble-orchestrator';
import * as z from 'zod';

export const shout = defineOperation({
  name: 'shout',
  config: z.strictObject({ text: z.string(), times: z.number().default(1) }),
  run: ({ config }) => config.text.repeat(config.times),
});
export const score = defineAgent({ name: 'score', operation: 'code', config: { script: 'score', limit: '\${input.limit}' } });
export const loud = defineAgent({ name: 'loud', operation: shout.name, config: { text: '\${input.text}' } });
const maybe = Math.random() > 2 ? '5m' : undefined;

export const refund = defineEnsemble({
  name: 'refund',
  description: undefined,
  inputs: { id: { type: 'string', required: true }, cents: { type: 'integer' } },
  timeout: '30d',
  trigger: [
    { type: 'webhook', path: '/webhooks/approved', public: true, signal: 'approved', find: { id: '\${body.id}' } },
    { type: 'schedule', cron: '@daily' },
  ],
  agents: [{ name: 'ask', operation: 'think', config: { model: 'm', prompt: 'prompt://ask@production', temperature: '\${input.cents}' } }],
  flow: [
    { agent: 'score', timeout: maybe },
    { agent: 'ask', retry: { maxAttempts: 3, backoff: 'exponential', delay: '500ms', maxDelay: '1m30s' } },
    {
      agent: 'pay', operation: 'api',
      config: { url: 'https://pay.example/\${input.id}', method: 'POST', body: { cents: '\${input.cents}' }, expect: [201, '2xx'], headers: { 'X-A': 1 } },
    },
    { agent: 'stored', operation: 'api', config: { '<<': 'config://api@production', timeout: '10s' } },
    { agent: 'whole', operation: 'storage', config: 'config://storage' },
    { agent: 'own', operation: shout.name, config: { text: 'hey' } },
    { agent: 'rows', operation: 'storage', config: { type: 'sql', action: 'query', query: 'SELECT 1', params: ['\${input.id}'], limit: 10 } },
    { agent: 'mail', operation: 'email', config: { from: 'a@b.example', to: ['\${input.to}'], subject: 'Hi', body: 'text', port: 25 } },
    { agent: 'text', operation: 'sms', config: { to: '+48123456789', body: '\${ask.output}' } },
    { agent: 'file', operation: 'pdf', config: { template: 'template://invoice@production', format: 'A4', margin: { top: '1cm' } } },
    { agent: 'call', operation: 'tools', config: { mcp: 'crm', tool: 'find', timeout: '\${input.t}' } },
    { wait: 'approved', timeout: '24h', onTimeout: 'continue' },
    { sleep: { until: '\${input.at}' } },
    { sleep: '1h 30m' },
    parallel([agent('score', { name: 'again' }), when('\${score.output}', [wait('paid', { timeout: 1000 }), agent('x', { operation: 'code', config: { script: 'deep' } })])]),
    { try: [{ foreach: '\${input.lines}', as: 'line', steps: [{ agent: 'score' }] }], catch: [{ ensemble: 'child', input: { a: 1 } }] },
    { switch: '\${input.kind}', cases: { a: [{ wait: 'kind' }] }, default: [] },
    { while: '\${ask.output.more}', steps: [{ agent: 'ask' }], maxIterations: 5 },
  ],
  outputs: { text: '\${ask.output}' },
});
const scripts: { score(): number; deep(): number } = { score: () => 1, deep: () => 2 };
export const orchestrator = createOrchestrator({
  ensembles: [refund, { name: 'child', flow: [] }],
  agents: [score, loud],
  operations: [shout],
  scripts,
  env: undefined,
  retention: undefined,
  limits: { plan: undefined },
});
export const send = (id: string, name: string) => [
  orchestrator.executions.signal(id, 'approved', { by: 'Ada' }),
  orchestrator.executions.signal(id, name),
];
export const run = (id: string) => orchestrator.execute('refund', { id, cents: undefined }, { timeout: undefined, tags: undefined });
`;

const DEFINE = `import { defineEnsemble } from 'ensemble-orchestrator';\n`;
const step = (title: string, names: string, code: string): Mistake => ({
  ...{ title, names },
  code: `${DEFINE}export default defineEnsemble({ name: 'e', flow: [${code}] });`,
});
const ensemble = (title: string, names: string, code: string): Mistake => ({
  ...{ title, names },
  code: `${DEFINE}export default defineEnsemble({ name: 'e', ${code} });`,
});
const call = (title: string, names: string, code: string): Mistake => ({
  ...{ title, names },
  code: `import { createOrchestrator, defineAgent, defineEnsemble } from 'ensemble-orchestrator';
import { createTestOrchestrator } from 'ensemble-orchestrator/testing';
import { refund, loud, orchestrator, score, shout } from './valid.ts';
export const all = [createOrchestrator, createTestOrchestrator, defineAgent, defineEnsemble, refund, loud, orchestrator, score, shout];
${code}`,
});

export const MISTAKES: readonly Mistake[] = [
  step('an unknown operation', 'codee', `{ agent: 'a', operation: 'codee', config: { script: 's' } }`),
  step('an unknown key of a step', 'conditon', `{ agent: 'a', conditon: true }`),
  step('an unknown key of a wait', 'timeuot', `{ wait: 'go', timeuot: '1h' }`),
  step('an unknown key in a block', 'retyr', `{ if: true, then: [{ agent: 'a', retyr: { maxAttempts: 2 } }] }`),
  step('an unknown config key of api', 'metod', `{ agent: 'a', operation: 'api', config: { url: 'u', metod: 'GET' } }`),
  step('a config of api without its url', 'url', `{ agent: 'a', operation: 'api', config: { method: 'GET' } }`),
  step(
    'an unknown config key of think',
    'promt',
    `{ agent: 'a', operation: 'think', config: { model: 'm', promt: 'p' } }`,
  ),
  step(
    'a wrong type in a config',
    'temperature',
    `{ agent: 'a', operation: 'think', config: { model: 'm', temperature: 'hot' } }`,
  ),
  step(
    'an unknown action of storage',
    'fetch',
    `{ agent: 'a', operation: 'storage', config: { type: 'kv', action: 'fetch', key: 'k' } }`,
  ),
  step(
    'an unknown config key of storage',
    'tll',
    `{ agent: 'a', operation: 'storage', config: { type: 'kv', action: 'put', key: 'k', value: 1, tll: 5 } }`,
  ),
  step(
    'an unknown config key of email',
    'subjct',
    `{ agent: 'a', operation: 'email', config: { from: 'a@b.c', subject: 's', subjct: 's' } }`,
  ),
  step(
    'an unknown config key of sms',
    'test',
    `{ agent: 'a', operation: 'sms', config: { to: '+1', body: 'b', test: 1 } }`,
  ),
  step(
    'an unknown config key of pdf',
    'fromat',
    `{ agent: 'a', operation: 'pdf', config: { html: 'h', fromat: 'A4' } }`,
  ),
  step(
    'an unknown transport of tools',
    'stdio',
    `{ agent: 'a', operation: 'tools', config: { mcp: 'm', tool: 't', transport: 'stdio' } }`,
  ),
  step('a wrong duration of a wait', '24 hours', `{ wait: 'go', timeout: '24 hours' }`),
  step('a wrong duration of a retry', 'soon', `{ agent: 'a', retry: { maxAttempts: 2, delay: 'soon' } }`),
  step(
    'a wrong duration in a config',
    '10 seconds',
    `{ agent: 'a', operation: 'api', config: { url: 'u', timeout: '10 seconds' } }`,
  ),
  ensemble('a wrong duration of an ensemble', '2 weeks', `timeout: '2 weeks', flow: []`),
  ensemble('an unknown key of an ensemble', 'otputs', `flow: [], otputs: {}`),
  ensemble(
    'a webhook with the signal of no wait',
    'aproved',
    `trigger: [{ type: 'webhook', path: '/webhooks/a', public: true, signal: 'aproved' }], flow: [{ wait: 'approved' }]`,
  ),
  call(
    'a script that is not registered',
    'deep',
    `createOrchestrator({ ensembles: [refund], agents: [score], scripts: { score: () => 1 } });`,
  ),
  call(
    'a script of a shared agent that is not registered',
    'score',
    `createTestOrchestrator({ agents: [score], scripts: { scroe: () => 1 } });`,
  ),
  call(
    "a config that does not fit the operation of one's own",
    'txt',
    `defineAgent({ name: 'l', operation: shout.name, config: { txt: 'hey' } });`,
  ),
  call(
    'a signal that no flow waits for',
    'aproved',
    `void createOrchestrator({ ensembles: [defineEnsemble({ name: 'e', flow: [{ wait: 'approved' }] })] }).executions.signal('exec_1', 'aproved');`,
  ),
];
