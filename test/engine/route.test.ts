/** Routes with member and prompt targets, and the form of the specification from text to result. */

import { describe, expect, it } from 'vitest';
import type { ModelRequest } from '../../src/entries/adapter.ts';
import { createTestOrchestrator, fakeModel, stubHttp } from '../../src/entries/testing.ts';
import { OrchestratorError } from '../../src/index.ts';
import { boom, code, deferred, echo, ok, scene, turns, when } from './scene.ts';

type Fields = Readonly<Record<string, unknown>>;
const member = (name: string, script = 'ok', fields: Fields = {}) => ({
  name,
  operation: 'code',
  config: { script },
  ...fields,
});
const route = (routes: readonly Fields[], fields: Fields = {}): Fields => ({ agent: 'r', routes, ...fields });

/** A model that answers with its prompt. */
function echoModel() {
  const answer = ({ messages: [first] }: ModelRequest) => `answer to ${first?.role === 'user' ? first.text : ''}`;
  const model = fakeModel(Array.from({ length: 9 }, () => answer));
  const prompts = () => model.requests.map(({ messages: [first] }) => first?.role === 'user' && first.text);
  return { models: { echo: model }, prompts };
}
const think = (agent: string, { config, ...fields }: Fields = {}): Fields => ({
  agent,
  operation: 'think',
  config: { model: 'm', ...(config as object | undefined) },
  ...fields,
});

describe('route', () => {
  const byGroup = [
    { condition: "${input.group == 'a'}", member: 'one' },
    { condition: "input.group == 'b'", member: 'two' },
    { default: true, member: 'three' },
  ];

  it.each([
    ['a', 'one', 0],
    ['b', 'two', 1],
    ['c', 'three', 2],
  ])('group %s goes to %s', async (group, target, index) => {
    const { run, ran } = scene({
      agents: [member('one'), member('two'), member('three')],
      flow: [route(byGroup), ok('z')],
      outputs: { r: '${r.output}', two: '${two.executed}' },
    });
    const result = await run({ group });
    expect(ran).toEqual([target, 'z']);
    expect(result.output).toEqual({ r: { route: index, target, output: target }, two: target === 'two' });
    expect(result.agents[0]).toMatchObject({ name: target, key: `flow[0].${target}` });
    expect(result.metrics.agents).toBe(2);
  });

  it('the first entry whose condition holds is chosen, in order', async () => {
    const { run, ran } = scene({
      agents: [member('one'), member('two')],
      flow: [
        route([
          { condition: true, member: 'one' },
          { condition: true, member: 'two' },
        ]),
      ],
    });
    await run();
    expect(ran).toEqual(['one']);
  });

  it('no condition holds: nothing runs, and the flow continues', async () => {
    const { run, ran } = scene({
      agents: [member('one')],
      flow: [route([{ condition: '${false}', member: 'one' }]), ok('z')],
      outputs: { r: '${r.output}', success: '${r.success}' },
    });
    expect((await run()).output).toEqual({ r: { route: null, target: null, output: null }, success: true });
    expect(ran).toEqual(['z']);
  });

  it('one member in two entries is one agent', async () => {
    const { run } = scene({
      agents: [member('one')],
      flow: [
        route([
          { condition: '${input.x}', member: 'one' },
          { default: true, member: 'one' },
        ]),
      ],
      outputs: { one: '${one.output}' },
    });
    expect((await run({ x: false })).output).toEqual({ one: 'one' });
  });

  it("a member's own condition may skip it", async () => {
    const { run, ran } = scene({
      agents: [member('one', 'ok', when('input.go'))],
      flow: [route([{ default: true, member: 'one' }])],
      outputs: { r: '${r.output}' },
    });
    expect((await run({ go: false })).output).toEqual({ r: { route: 0, target: 'one', output: null } });
    expect(ran).toEqual([]);
  });

  it('a member with its own retry and input', async () => {
    let tries = 0;
    const { run } = scene(
      {
        agents: [
          {
            name: 'one',
            operation: 'code',
            config: { script: 'flaky' },
            input: { n: '${input.n}' },
            retry: { maxAttempts: 3 },
          },
        ],
        flow: [route([{ default: true, member: 'one' }])],
        outputs: { n: '${r.output.output}' },
      },
      {
        scripts: {
          flaky: ({ input }) => {
            if (++tries < 3) throw new Error('not yet');
            return input.n;
          },
        },
      },
    );
    expect(await run({ n: 5 })).toMatchObject({ duration: 3000, output: { n: 5 } });
  });

  it('a member that fails fails the route: with its error, and an `output` of null', async () => {
    const { run } = scene({
      agents: [member('bad', 'boom')],
      flow: [route([{ default: true, member: 'bad' }]), echo('z', { r: '${r}' }, when('r.failed'))],
      outputs: { z: '${z.output.r}' },
    });
    expect((await run()).output).toEqual({
      z: {
        executed: true,
        success: false,
        failed: true,
        output: { route: 0, target: 'bad', output: null },
        error: { code: 'AGENT_FAILED', message: 'boom in bad', agent: 'bad' },
      },
    });
  });

  it('a condition that cannot be evaluated fails the route, and a later condition handles that', async () => {
    const { run, ran } = scene({
      agents: [member('one')],
      flow: [route([{ condition: '${input.text - 1}', member: 'one' }]), ok('z', when('r.failed'))],
    });
    expect((await run({ text: 'x' })).status).toBe('completed');
    expect(ran).toEqual(['z']);
  });

  it("random() in a condition depends on the execution's seed: about half of the runs choose each way", async () => {
    const { run, ran } = scene({
      agents: [member('one'), member('two')],
      flow: [
        route([
          { condition: '${random() < 0.5}', member: 'one' },
          { default: true, member: 'two' },
        ]),
      ],
    });
    for (let i = 0; i < 200; i++) await run();
    const ones = ran.filter((name) => name === 'one').length;
    expect(ones).toBeGreaterThan(50);
    expect(ones).toBeLessThan(150);
  });
});

describe('route with prompts', () => {
  const byTone = route([
    { condition: '${input.tone == "kind"}', prompt: 'Be kind to ${input.who}' },
    { default: true, prompt: 'Be brief' },
  ]);

  it.each([
    ['kind', 'Be kind to Ada', 0],
    ['other', 'Be brief', 1],
  ])('tone %s: only the next think without a prompt uses the prompt', async (tone, prompt, index) => {
    const { models, prompts } = echoModel();
    const { run } = scene(
      {
        flow: [byTone, ok('between'), think('first'), think('second', { continueOnError: true })],
        outputs: { r: '${r.output}', text: '${first.output.text}', error: '${second.error.message}' },
      },
      { models },
    );
    const result = await run({ tone, who: 'Ada' });
    expect(prompts()).toEqual([prompt]);
    expect(result.output).toEqual({
      r: { route: index, target: prompt, output: null },
      text: `answer to ${prompt}`,
      error: expect.stringContaining('the agent has no prompt'),
    });
  });

  it('a think with a prompt uses its own, and leaves the chosen prompt to the next', async () => {
    const { models, prompts } = echoModel();
    const { run } = scene({ flow: [byTone, think('own', { config: { prompt: 'Mine' } }), think('next')] }, { models });
    await run({ tone: 'other' });
    expect(prompts()).toEqual(['Mine', 'Be brief']);
  });

  it('a skipped think does not use the prompt', async () => {
    const { models, prompts } = echoModel();
    const { run } = scene({ flow: [byTone, think('skipped', when('false')), think('next')] }, { models });
    await run({ tone: 'other' });
    expect(prompts()).toEqual(['Be brief']);
  });

  it('a think that is retried gets the same prompt', async () => {
    const model = fakeModel([new OrchestratorError('AGENT_FAILED', 'busy', { retryable: true }), 'Hello']);
    const { run } = scene(
      { flow: [byTone, think('first', { retry: { maxAttempts: 2 } })] },
      { models: { fake: model } },
    );
    expect((await run({ tone: 'other' })).status).toBe('completed');
    expect(model.requests.map(({ messages }) => messages)).toEqual([
      [{ role: 'user', text: 'Be brief' }],
      [{ role: 'user', text: 'Be brief' }],
    ]);
  });

  it('values in a prompt are text: they are not evaluated again', async () => {
    const { models, prompts } = echoModel();
    const { run } = scene({ flow: [byTone, think('first')] }, { models, env: { KEY: 'value of key' } });
    await run({ tone: 'kind', who: '${env.KEY} {{ env.KEY }}' });
    expect(prompts()).toEqual(['Be kind to ${env.KEY} {{ env.KEY }}']);
  });

  it('a prompt that cannot be evaluated fails the route like an agent, and a condition handles that', async () => {
    const { run, ran } = scene([route([{ default: true, prompt: '${input.text - 1}' }]), ok('z', when('r.failed'))]);
    expect((await run({ text: 'x' })).status).toBe('completed');
    expect(ran).toEqual(['z']);
    const unguarded = await scene([route([{ default: true, prompt: '${input.text - 1}' }])]).run({ text: 'x' });
    expect(unguarded.error).toMatchObject({ code: 'EXPRESSION_ERROR', agent: 'r' });
  });

  it('in a foreach with several items at once, each item uses its own prompt', async () => {
    const { models, prompts } = echoModel();
    const gate = deferred();
    const steps = [route([{ default: true, prompt: 'About ${item}' }]), code('wait', 'gate'), think('answer')];
    const { start } = scene(
      { flow: [{ foreach: ['a', 'b', 'c'], concurrency: 3, steps, name: 'all' }] },
      { models, scripts: { gate: () => gate.promise } },
    );
    const handle = await start();
    await turns();
    gate.resolve(1);
    await handle.result();
    expect(prompts()).toEqual(['About a', 'About b', 'About c']);
  });

  it('a prompt that an item chose and did not use reaches no other item', async () => {
    const { models, prompts } = echoModel();
    const steps = [
      { if: '${item == 1}', then: [route([{ default: true, prompt: 'of item 1' }])], else: [think('answer')] },
    ];
    const { run } = scene({ flow: [{ foreach: [1, 2], steps }] }, { models });
    expect((await run()).error?.message).toContain('the agent has no prompt');
    expect(prompts()).toEqual([]);
  });
});

describe('the form of the specification, from text to result', () => {
  const text = `
name: intake
input:
  customer: { type: string, required: true }
members:
  - name: fetch-user
    type: API
    config: { url: "https://api.example.com/users/\${input.customer}", method: GET, params: { full: true } }
  - name: score
    type: Function
    config: { script: score }
    input: { plan: "\${fetch-user.output.body.plan}" }
  - name: choose
    type: Route
    config:
      routes:
        - when: \${score.output.value > 10}
          member: accept
        - default: true
          agent: refuse
  - name: accept
    type: Function
    config: { script: say, text: welcome }
  - name: refuse
    type: Function
    config: { script: say, text: sorry }
flow:
  - member: fetch-user
  - member: score
    when: \${fetch-user.success}
  - member: choose
output:
  text: \${choose.output.output}
  value: \${score.output.value || 0}
  refused: \${refuse.executed ? 'yes' : 'no'}
`;

  it.each([
    ['gold', { text: 'welcome', value: 20, refused: 'no' }],
    ['free', { text: 'sorry', value: 4, refused: 'yes' }],
  ])('plan %s', async (plan, expected) => {
    const http = stubHttp({ 'GET https://api.example.com/users/7': { json: { plan } } });
    const orchestrator = createTestOrchestrator({
      ensembles: [text],
      http,
      scripts: {
        score: ({ input }) => ({ value: input.plan.length * (input.plan === 'gold' ? 5 : 1) }),
        say: ({ config }) => config.text,
      },
    });
    const result = await orchestrator.execute('intake', { customer: '7' });
    expect(result).toMatchObject({ status: 'completed', output: expected });
    expect(http.calls.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'GET https://api.example.com/users/7?full=true',
    ]);
  });

  it('both forms of one ensemble are one definition, with one version', async () => {
    const older = {
      name: 'e',
      members: [{ name: 'a', type: 'Function', config: { script: 'ok' } }],
      flow: [{ member: 'a', when: '${input.x}' }],
      output: { a: '${a.output}' },
    };
    const current = {
      name: 'e',
      agents: [{ name: 'a', operation: 'code', config: { script: 'ok' } }],
      flow: [{ agent: 'a', condition: '${input.x}' }],
      outputs: { a: '${a.output}' },
    };
    const version = async (ensemble: typeof older | typeof current) =>
      (await createTestOrchestrator({ ensembles: [ensemble], scripts: { ok: () => 1 } }).ensembles.get('e')).version;
    expect(await version(older)).toBe(await version(current));
  });

  it('an agent without `input` gets the input of the run', async () => {
    const { run } = scene({
      flow: [code('a', 'echo'), echo('b', { only: '${input.x}' }), echo('c', null)],
      outputs: { a: '${a.output}', b: '${b.output}', c: '${c.output}' },
    });
    expect((await run({ x: 1, y: 2 })).output).toEqual({ a: { x: 1, y: 2 }, b: { only: 1 }, c: null });
    expect((await run()).output).toEqual({ a: {}, b: { only: null }, c: null });
  });

  it('an agent runs twice under two names', async () => {
    const agents = [member('a', 'echo')];
    const { run, ran } = scene({
      agents,
      flow: [
        { agent: 'a', input: 1 },
        { agent: 'a', name: 'again', input: '${a.output + 1}' },
      ],
      outputs: { a: '${a.output}', again: '${again.output}' },
    });
    expect((await run()).output).toEqual({ a: 1, again: 2 });
    expect(ran).toEqual(['a', 'again']);
  });

  it("the step's fields override the agent's", async () => {
    const agents = [member('a', 'echo', { input: 'of the agent', condition: '${false}' })];
    const { run } = scene({
      agents,
      flow: [{ agent: 'a', input: 'of the step', condition: '${true}' }, boom('b', { continueOnError: true })],
      outputs: { a: '${a.output}' },
    });
    expect((await run()).output).toEqual({ a: 'of the step' });
  });
});
