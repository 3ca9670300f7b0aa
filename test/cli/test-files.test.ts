/** `ensemble test`: tests next to definitions, in virtual time, with nothing that leaves the process. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { loadProject } from '../../src/entries/node.ts';
import { sqliteStorage } from '../../src/entries/sqlite.ts';
import { createOrchestrator } from '../../src/index.ts';
import { ensemble as ensembleProcess, ensureBuilt, makeFolder } from './cli-process.ts';
import { ensemble } from './in-process.ts';

beforeAll(ensureBuilt, 60_000);

const ORDER = `
name: order
inputs: { id: { type: string, required: true }, cents: { type: integer, default: 100 } }
notifications: [{ type: webhook, events: [execution.completed], url: "\${env.PARTNER}" }]
flow:
  - { agent: customer, operation: api, config: { url: "\${env.SHOP}/c/\${input.id}" }, retry: { maxAttempts: 2 } }
  - { agent: price, operation: code, config: { script: price }, input: "\${input.cents}" }
  - if: \${price.output > 1000}
    then:
      - { wait: approved, name: approved, timeout: 2d, onTimeout: continue, fields: { type: object, required: [by], properties: { by: { type: string } } } }
      - { agent: note, operation: storage, condition: "\${approved.output != null}", config: { type: kv, action: put, key: k, value: 1 } }
    else:
      - { agent: tell, operation: email, config: { provider: smtp, to: a@b.example, from: c@d.example, subject: s, body: t } }
outputs: { name: "\${customer.output.body.name}", price: "\${price.output}", by: "\${approved.output.by}" }
`;
const PROJECT = {
  'ensembles/order.yaml': ORDER,
  'scripts/price.mjs': 'export default ({ input }) => input * 2;\n',
  'ensemble.config.mjs': `export default {
    env: ['SHOP', 'PARTNER'],
    mail: { smtp: { send() { throw new Error('a mail was sent'); } } },
  };\n`,
};
const ADA = "http: [{ request: 'GET https://shop.example/c/*', reply: { json: { name: Ada } } }]";
const test = (more: string, name = 'one') => `
  - name: ${name}
    env: { SHOP: https://shop.example }
    input: { id: a }
    ${more.trim().replaceAll('\n', '\n    ')}
`;
const file = (...tests: string[]) => `ensemble: order\ntests:${tests.join('')}`;

async function run(text: string, args: readonly string[] = [], files: Readonly<Record<string, string>> = {}) {
  const cwd = makeFolder({ ...PROJECT, 'ensembles/order.test.yaml': text, ...files });
  return ensemble(['test', ...args], { cwd });
}

const passes = async (more: string) => {
  const { code, stdout, stderr } = await run(file(test(more)));
  expect(`${stdout}${stderr}`).toContain('1 passed, 0 failed');
  expect(code).toBe(0);
};
const fails = async (more: string, ...parts: readonly string[]) => {
  const { code, stdout, stderr } = await run(file(test(more)));
  for (const part of parts) expect(`${stdout}${stderr}`).toContain(part);
  expect(code).toBe(1);
};

describe('a test', () => {
  it('passes when what it expects is a part of what happened', async () => {
    await passes(`
${ADA}
agents: { tell: { output: {} } }
expect: { output: { name: Ada, price: 200 }, steps: [customer, price, tell], notRun: [note], duration: 0 }`);
  });

  it('that fails shows each difference and the way that the execution took', async () => {
    await fails(
      `
${ADA}
agents: { tell: { output: {} } }
expect: { output: { name: Bob, price: "\${value > 500}" }, notRun: [tell], calls: { price: 2 }, duration: 1s }`,
      'output.name\n        - expected "Bob"\n        + was      "Ada"',
      'output.price\n        - expected ${value > 500}\n        + was      200',
      'duration\n        - expected 1000\n        + was      0',
      'notRun: tell',
      'calls.price\n        - expected 2\n        + was      1',
      'went: customer (flow[0]) → price (flow[1]) → tell (flow[2].else[0])',
    );
  });

  it('compares by a schema, and by expressions over the input, the steps and the value', async () => {
    const scene = (output: string) => `${ADA}\nagents: { tell: { output: {} } }\nexpect: { output: ${output} }`;
    await passes(
      scene(
        '{ name: { schema: { type: string, minLength: 3 } }, price: "${input.cents * 2 + steps.price.output - 200}" }',
      ),
    );
    await fails(scene('{ name: { schema: { type: string, minLength: 4 } } }'), 'a value that fits the schema');
    await fails(scene('{ price: "${input.cents}" }'), 'expected 100, by ${input.cents}');
  });

  it('answers one call after the other; the last answer repeats', async () => {
    await passes(`
agents:
  customer: [{ error: gone }, { output: { status: 200, headers: {}, body: { name: Eve } } }]
  tell: { output: {} }
expect: { output: { name: Eve }, steps: { customer: { attempts: 2 } }, calls: { customer: 2 } }`);
  });

  it('may expect a failure, by its code or a part of its message', async () => {
    const answer =
      'agents: { customer: { error: { code: AGENT_FAILED, message: the shop is closed, retryable: false } } }\n';
    await passes(`${answer}expect: { error: AGENT_FAILED }`);
    await passes(`${answer}expect: { status: failed, error: { message: closed, agent: customer } }`);
    await fails(`${answer}expect: { error: { message: open } }`, 'text with "open"', 'the shop is closed');
    await fails(answer, 'completed (it failed: the shop is closed)');
  });

  it('sends signals at their time, checks them by the form of their wait, and waits for none in real time', async () => {
    const large = (name: string, more: string) =>
      test(`${ADA}\nagents: { note: { output: {} } }\n${more}`, name).replace('{ id: a }', '{ id: a, cents: 900 }');
    const one = file(
      large(
        'sent',
        'signals: [{ name: approved, after: 1d, payload: { by: bob } }]\nexpect: { output: { by: bob }, duration: 1d }',
      ),
      large('not sent', 'expect: { output: { by: null }, notRun: [note], duration: 2d }'),
      large('wrong', 'signals: [{ name: approved, payload: { bye: 1 } }]\nexpect: { duration: 2d }'),
    );
    const { stdout } = await run(one);
    expect(stdout).toContain('✓ sent');
    expect(stdout).toContain('✓ not sent');
    expect(stdout).toContain('✗ wrong');
    expect(stdout).toContain('signal `approved`: the payload of signal `approved` does not fit');
    expect(stdout).toContain('2 passed, 1 failed');
  });
});

it('each test has its own variables, answers and time', async () => {
  const one = (name: string, shop: string) =>
    test(
      `
http: [{ request: 'GET https://${shop}.example/c/a', reply: { json: { name: ${name} } } }]
agents: { tell: { output: {} } }
expect: { output: { name: ${name} }, calls: { customer: 1 }, duration: 0 }`,
      name,
    ).replace('//shop.', `//${shop}.`);
  const { stdout } = await run(file(one('Ada', 'north'), one('Bob', 'south'), one('Eve', 'north')));
  expect(stdout).toContain('3 passed, 0 failed');
});

it('an answer that takes too long runs into the timeout; children, events and requests of models are compared too', async () => {
  const flow = (more: string) => `name: order\ninputs: { id: { type: string } }\n${more}`;
  const cases: readonly (readonly [string, string])[] = [
    [
      'flow: [ { agent: price, operation: code, timeout: 30s, config: { script: price } } ]',
      'agents: { price: { output: 1, delay: 40s } }\nexpect: { error: TIMEOUT, duration: 30s }',
    ],
    [
      'flow: [ { ensemble: kid } ]',
      'agents: { inner: { output: 5 } }\nexpect: { calls: { inner: 1 }, events: [execution.started, { event: execution.completed }] }',
    ],
    [
      'flow: [ { agent: ask, operation: think, config: { model: m, prompt: hello } } ]\noutputs: { text: "${ask.output.text}" }',
      `http: [{ request: POST https://models.example/v1/chat/completions, reply: { json: { choices: [{ message: { role: assistant, content: hi }, finish_reason: stop }] } } }]
expect: { output: { text: hi }, calls: { 'POST https://models.example/v1/chat/completions': [{ json: { model: m } }] } }`,
    ],
  ];
  const config = "export default { models: { main: { url: 'https://models.example/v1' } } };\n";
  const kid = 'name: kid\nflow: [ { agent: inner, operation: storage, config: { type: kv, action: get, key: k } } ]\n';
  for (const [definition, more] of cases) {
    const files = {
      'ensembles/order.yaml': flow(definition),
      'ensembles/kid.yaml': kid,
      'ensemble.config.mjs': config,
    };
    const { stdout, stderr } = await run(file(test(more)), [], files);
    expect(`${stdout}${stderr}`).toContain('1 passed, 0 failed');
  }
});

describe('nothing leaves the process', () => {
  it('an agent without an answer fails its test, which names it; no mail is sent', async () => {
    await fails(
      `${ADA}\nexpect: { error: INVALID_REQUEST }`,
      'agent `tell` (email) has no answer: add `agents: { tell:',
    );
  });

  it('a request without an answer fails its test, which names it, also when the flow handles the failure', async () => {
    await fails(
      'agents: { tell: { output: {} } }\nexpect: { status: failed }',
      'GET https://shop.example/c/a has no answer',
    );
  });

  it('a `fetch` of a script is answered from the test, or refused', async () => {
    const scripts = {
      'scripts/price.mjs':
        "export default async () => (await (await fetch('https://prices.example/now')).json()).price;\n",
    };
    const answers = 'agents: { tell: { output: {} }, customer: { output: { status: 200, headers: {}, body: {} } } }';
    const fetched = test(
      `http: [{ request: GET https://prices.example/now, reply: { json: { price: 7 } } }]\n${answers}\nexpect: { output: { price: 7 } }`,
    );
    expect((await run(file(fetched), [], scripts)).stdout).toContain('1 passed');
    const refused = await run(file(test(`${answers}\nexpect: { status: failed }`)), [], scripts);
    expect(refused.stdout).toContain('GET https://prices.example/now has no answer');
  });
});

describe('a test file', () => {
  it('with wrong keys, names, types or expressions is refused with the frame', async () => {
    const { code, stdout } = await run(
      file(
        test(`
agents: { custmer: { output: 1 }, price: {} }
signals: [{ name: aproved }]
expect: { output: { nam: 1, price: "\${vlue}" }, notRun: [tel] }`),
      ),
    );
    expect(code).toBe(1);
    for (const part of [
      'tests[0].agents.custmer: there is no agent `custmer`',
      'help: did you mean `customer`?',
      'tests[0].agents.price: must have one of `output` and `error`',
      'no step waits for the signal `aproved`',
      'tests[0].expect.output.nam: there is no `nam` in it',
      '`expect` reads `value`, `input`, `output`, `error`, `steps`',
      'tests[0].expect.notRun[0]: there is no agent `tel`',
    ])
      expect(stdout).toContain(part);
    expect((await run('ensemble: ordr\ntests: [{ name: a }]')).stdout).toContain('did you mean `order`?');
    expect((await run(file(test('expct: 1')))).stdout).toContain('did you mean `expect`?');
  });

  it('may answer each of two steps that have one name', async () => {
    const mail = 'config: { provider: smtp, to: a@b.example, from: c@d.example, subject: s, body: t }';
    const order = `name: order
inputs: { id: { type: string, required: true } }
flow:
  - if: "\${input.id == 'b'}"
    then: [ { agent: tell, name: last, operation: email, ${mail} } ]
    else: [ { agent: price, name: last, operation: code, config: { script: price }, input: 1 } ]
`;
    const answers = 'agents: { last: { output: 7 } }\nexpect: { steps: { last: { output: 7 } } }';
    const { stdout } = await run(file(test(answers)), [], { 'ensembles/order.yaml': order });
    expect(stdout).toContain('1 passed, 0 failed');
  });

  it('with a signal that no step takes fails; one whose time comes after the end is not sent', async () => {
    const answers = `${ADA}\nagents: { tell: { output: {} } }\n`;
    await fails(
      `${answers}signals: [{ name: approved, payload: { by: Eve } }]`,
      'signal `approved` was sent, and no step that ran waited for it',
    );
    await passes(`${answers}signals: [{ name: approved, after: 9d, payload: { by: Eve } }]`);
  });

  it('needs no mail sender: an agent that sends has an answer', async () => {
    const text = file(test(`${ADA}\nagents: { tell: { output: {} } }`));
    const { stdout } = await run(text, [], { 'ensemble.config.mjs': "export default { env: ['SHOP', 'PARTNER'] };\n" });
    expect(stdout).toContain('1 passed, 0 failed');
    const none = await run(file(test(ADA)), [], {
      'ensemble.config.mjs': "export default { env: ['SHOP', 'PARTNER'] };\n",
    });
    expect(none.stdout).toContain('agent `tell` (email) has no answer');
  });

  it('with a wrong reply, a wrong event, or a signal in place of an agent is refused with the frame', async () => {
    const reply = "http: [{ request: 'GET https://shop.example/c/*', reply: { jsn: { name: Ada } } }]";
    await fails(reply, 'tests[0].http[0].reply', 'did you mean `json`?');
    await fails(
      `${ADA}\nexpect: { events: [agent.complete] }`,
      'there is no event `agent.complete`',
      'agent.completed',
    );
    await fails(`${ADA}\nexpect: { notRun: [approved] }`, '`approved` is a signal: here stand agents');
    await fails('agents: { tell: { output: { id: 1 } } }', 'there is no `id` in it, only `');
  });

  it('that answers or expects what the definition can never give is refused', async () => {
    await fails('agents: { customer: { output: { status: 404 } } }', 'output.status: can never be this');
    await fails('expect: { output: { by: 7 } }', 'expect.output.by: can never be this: it is text');
  });

  it('is no definition: the project loads, and `validate` refuses it by its name', async () => {
    const cwd = makeFolder({ ...PROJECT, 'ensembles/order.test.yaml': file(test('now: 0')) });
    const checked = await ensemble(['validate'], { cwd });
    expect(checked.stdout).toContain('no problems');
    const alone = await ensemble(['validate', 'ensembles/order.test.yaml'], { cwd });
    expect(alone.code).toBe(2);
    expect(alone.stderr).toContain('run them with `ensemble test`');
  });

  it('is looked for in the project; without one, and for another name, the command says so', async () => {
    const cwd = makeFolder(PROJECT);
    expect((await ensemble(['test'], { cwd })).stderr).toContain('ensembles has no test files');
    expect((await ensemble(['test', 'ensembles/order.yaml'], { cwd })).stderr).toContain('is not a test file');
    expect((await ensemble(['test', '--reporter', 'tap'], { cwd })).stderr).toContain('must be text, json, junit');
  });
});

describe('what is printed', () => {
  it('--coverage says which steps and branches no test ran', async () => {
    const { stdout } = await run(file(test(`${ADA}\nagents: { tell: { output: {} } }`)), ['--coverage']);
    expect(stdout).toContain('order: 3 of 5 steps ran');
    expect(stdout).toContain('no test ran flow[2].then (approved, note)');
  });

  it('--reporter json and junit print the results for programs', async () => {
    const text = file(
      test(`${ADA}\nagents: { tell: { output: {} } }`),
      test('expect: { output: { name: "<Bob>" } }', 'two'),
    );
    const json = JSON.parse((await run(text, ['--reporter', 'json'])).stdout);
    expect(json).toMatchObject({ passed: 1, failed: 1, files: [{ ensemble: 'order', tests: [{ name: 'one' }, {}] }] });
    const { stdout } = await run(text, ['--reporter', 'junit']);
    expect(stdout).toContain('<testsuites tests="2" failures="1">');
    expect(stdout).toContain('classname="ensembles/order.test.yaml" name="two"');
    expect(stdout).toContain('<failure message="GET https://shop.example/c/a has no answer');
  });
});

describe('--record', () => {
  it('prints a test of an execution of the store, which passes; secrets and redacted fields are not in it', async () => {
    const cwd = makeFolder({
      ...PROJECT,
      '.env': 'SHOP=https://shop.example\nPARTNER=https://partner.example\nKEY=a-secret-of-some-length\n',
      'ensembles/order.yaml': `
name: order
inputs: { id: { type: string }, email: { type: string } }
flow:
  - { agent: price, operation: code, config: { script: price } , input: 21 }
  - { agent: key, operation: code, config: { script: key } }
  - { wait: approved, name: approved }
outputs: { price: "\${price.output}", by: "\${approved.output.by}", key: "\${key.output}" }
`,
      'scripts/key.mjs': 'export default ({ env }) => env.KEY;\n',
      'ensemble.config.mjs': `import { sqliteStorage } from '${new URL('../../dist/sqlite.js', import.meta.url).href}';
        export default { env: ['SHOP', 'PARTNER'], secrets: ['KEY'], storage: sqliteStorage({ path: new URL('flows.db', import.meta.url).pathname }) };\n`,
    });
    const options = await loadProject(cwd, { storage: sqliteStorage({ path: join(cwd, 'flows.db') }) });
    const orchestrator = createOrchestrator(options);
    const input = { id: 'a', email: 'ada@x.example' };
    const handle = await (
      orchestrator.start as (name: string, ...rest: unknown[]) => ReturnType<typeof orchestrator.startAgent>
    )('order', input, { id: 'order-1' });
    await orchestrator.executions.signal(handle.id, 'approved', { by: 'bob' });
    await handle.result();
    await orchestrator.close();
    const recorded = await ensemble(['test', '--record', 'order-1', '--redact', 'email'], { cwd });
    expect(recorded).toMatchObject({ code: 0, stderr: '' });
    const { stdout } = recorded;
    expect(stdout).toContain('email: redacted');
    expect(stdout).not.toContain('ada@');
    expect(stdout).not.toContain('a-secret-of');
    writeFileSync(join(cwd, 'ensembles/order.test.yaml'), stdout);
    expect((await ensemble(['test', '--coverage'], { cwd })).stdout).toMatch(
      /order: 3 of 3 steps ran[\s\S]*1 passed, 0 failed/,
    );
    writeFileSync(join(cwd, 'ensemble.config.mjs'), 'export default 7;\n');
    const other = ['test', '--record', 'order-1', '--storage', 'sqlite:flows.db'];
    const unmasked = await ensembleProcess(other, { cwd });
    expect(unmasked).toMatchObject({ code: 1, stdout: '' });
    expect(unmasked.stderr).toContain('ensemble.config.mjs');
    writeFileSync(join(cwd, 'ensemble.config.mjs'), 'export default {};\n');
    expect(
      (await ensembleProcess(['test', '--record', 'order-2', '--storage', 'sqlite:flows.db'], { cwd })).stderr,
    ).toContain('order-2');
  });
});
