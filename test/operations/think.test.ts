/** The `think` operation: what the model is asked, how its answer is read, and what happens when it is wrong. */

import { describe, expect, it } from 'vitest';
import {
  createTestOrchestrator,
  type FakeAnswer,
  fakeModel,
  type TestOrchestratorOptions,
} from '../../src/entries/testing.ts';
import { isOrchestratorError, OrchestratorError } from '../../src/index.ts';

type Config = Record<string, unknown>;

const ensemble = (config: Config, more: object = {}) => ({
  name: 'e',
  flow: [{ agent: 'a', operation: 'think', config: { model: 'small', prompt: 'Hi', ...config }, ...more }],
  outputs: { a: '${a.output}' },
});

function setup(answers: readonly FakeAnswer[], config: Config = {}, more: object = {}, options = {}) {
  const model = fakeModel(answers, { prices: { small: { input: 1, output: 3 } } });
  const orchestrator = createTestOrchestrator({
    ensembles: [ensemble(config, more) as never],
    models: { fake: model },
    ...options,
  });
  return { model, orchestrator, run: (input?: unknown) => orchestrator.execute('e', input) };
}

function refusal(config: Config, options: TestOrchestratorOptions = { models: { fake: fakeModel([]) } }) {
  try {
    createTestOrchestrator({ ensembles: [ensemble(config) as never], ...options });
  } catch (error) {
    if (isOrchestratorError(error)) return error;
    throw error;
  }
  throw new Error('the definition was accepted');
}

const issuesOf = (error: OrchestratorError) =>
  (error.details as { issues: { path: string; message: string; suggestion?: string }[] }).issues;

const SCHEMA = {
  type: 'object',
  properties: { kind: { enum: ['refund', 'spam'] }, urgent: { type: 'boolean', default: false } },
  required: ['kind'],
};

describe('a call', () => {
  it('asks the model with the evaluated config, and gives text, usage, cost, model and provider', async () => {
    const { run, model } = setup(
      [{ text: 'Salut', usage: { inputTokens: 2_000, outputTokens: 1_000 }, model: 'small-7' }],
      {
        prompt: 'Translate: ${input.text}',
        system: 'Into ${input.language}.',
        temperature: 0.5,
        maxTokens: 100,
        timeout: '90s',
      },
    );
    const execution = await run({ text: 'Hi', language: 'French' });
    expect(execution.output).toEqual({
      a: {
        text: 'Salut',
        usage: { inputTokens: 2_000, outputTokens: 1_000, cost: 0.005 },
        model: 'small-7',
        provider: 'fake',
        finishReason: 'stop',
      },
    });
    expect(model.requests).toMatchObject([
      {
        model: 'small',
        system: 'Into French.',
        messages: [{ role: 'user', text: 'Translate: Hi' }],
        temperature: 0.5,
        maxTokens: 100,
        timeoutMs: 90_000,
      },
    ]);
  });

  it('never evaluates what the input holds, and is a step of its own', async () => {
    const { run, model, orchestrator } = setup(['ok'], { prompt: 'Read ${input.text}' });
    const { id } = await run({ text: '${env.KEY} {{ name }}' });
    expect(model.requests[0]?.messages).toEqual([{ role: 'user', text: 'Read ${env.KEY} {{ name }}' }]);
    const { steps } = await orchestrator.executions.steps(id);
    expect(steps.map(({ key, kind, name }) => [key, kind, name])).toContainEqual([
      'flow[0].model[1]',
      'model',
      'small',
    ]);
  });

  it('with `stream` sends each part of the text to listeners, and a replayed answer sends nothing', async () => {
    const { orchestrator, run } = setup(['one two three'], { stream: true });
    const deltas: string[] = [];
    orchestrator.on('agent.delta', ({ data }) => deltas.push(data.text));
    await run();
    expect(deltas.join('')).toBe('one two three');
    expect(deltas.length).toBeGreaterThan(1);
  });

  it('without `stream` asks the provider for no stream', async () => {
    const { run, model } = setup(['x']);
    await run();
    expect(model.requests[0]?.onText).toBeUndefined();
  });

  it('that is retried has the same idempotency key, and begins after the wait that the server asked for', async () => {
    const busy = new OrchestratorError('AGENT_FAILED', 'answered 429', {
      retryable: true,
      details: { status: 429, retryAfterMs: 20_000 },
    });
    const { run, model } = setup([busy, 'late'], {}, { retry: { maxAttempts: 2 } });
    const execution = await run();
    expect([execution.status, execution.duration]).toEqual(['completed', 20_000]);
    expect(new Set(model.requests.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
  });

  it('of a provider that throws something else fails without its message, which goes to the log', async () => {
    const lines: string[] = [];
    const log = (...line: unknown[]) =>
      void lines.push(JSON.stringify(line.map((part) => String((part as { err?: unknown })?.err ?? part))));
    const logger = { debug() {}, info() {}, warn() {}, error: log };
    const { run } = setup([new Error('connect https://user:pw@models.internal')], {}, {}, { logger, errors: {} });
    const execution = await run();
    expect(execution.error?.message).toBe('model provider `fake` failed; the log has its error');
    expect(JSON.stringify(execution)).not.toContain('models.internal');
    expect(lines.join()).toContain('models.internal');
  });

  const ANSWER = {
    text: 'x',
    toolCalls: [],
    usage: { inputTokens: 1, outputTokens: 1 },
    finishReason: 'stop',
    model: 'm',
  };
  it.each<[object | null]>([
    [{ choices: [] }],
    [null],
    [{ ...ANSWER, usage: { inputTokens: -1, outputTokens: 1 } }],
    [{ ...ANSWER, model: undefined }],
    [{ ...ANSWER, finishReason: { unified: 'stop' } }],
    [{ ...ANSWER, toolCalls: [{ name: 'x', arguments: {} }] }],
  ])('of a provider whose answer is not one fails with the form that is expected: %j', async (answer) => {
    const generate = async () => answer as never;
    const orchestrator = createTestOrchestrator({ ensembles: [ensemble({}) as never], models: { own: { generate } } });
    expect((await orchestrator.execute('e')).error?.message).toContain('no answer of the form { text, toolCalls');
  });
});

describe('a schema', () => {
  it.each([
    ['plain JSON', '{"kind":"spam"}'],
    ['JSON in a code fence', 'Here it is:\n```json\n{"kind":"spam"}\n```\nDone.'],
    ['JSON in a fence that is never closed', '```\n{"kind":"spam"}'],
  ])('reads %s as `object`, with the defaults of the schema', async (_what, text) => {
    const { run, model } = setup([text], { schema: SCHEMA });
    expect((await run()).output).toMatchObject({ a: { text, object: { kind: 'spam', urgent: false } } });
    expect(model.requests[0]?.schema).toEqual(SCHEMA);
  });

  it('tells the model once what is wrong with its answer', async () => {
    const { run, model } = setup(['{"kind":"order"}', '{"kind":"spam"}'], { schema: SCHEMA });
    const execution = await run();
    expect(execution.output).toMatchObject({
      a: { object: { kind: 'spam' }, usage: { inputTokens: 20, outputTokens: 10, cost: 0.00005 } },
    });
    expect(execution.metrics.usage).toEqual({ inputTokens: 20, outputTokens: 10, cost: 0.00005 });
    const [, answer, repair] = model.requests[1]?.messages ?? [];
    expect(answer).toMatchObject({ role: 'assistant', answer: { text: '{"kind":"order"}' } });
    expect(repair).toMatchObject({ role: 'user', text: expect.stringContaining('`kind`') });
  });

  it('fails the attempt after a second wrong answer, and a retry begins a new conversation', async () => {
    const { run, model } = setup(['no', 'no', '{"kind":"spam"}'], { schema: SCHEMA }, { retry: { maxAttempts: 2 } });
    const execution = await run();
    expect(execution.output).toMatchObject({ a: { object: { kind: 'spam' }, usage: { inputTokens: 30 } } });
    expect(execution.agents[0]?.attempts).toBe(2);
    expect(model.requests.map(({ messages }) => messages.length)).toEqual([1, 3, 1]);
  });

  it('without a retry fails with the problems and the reason', async () => {
    const { run } = setup(['no', '{"kind":1}'], { schema: SCHEMA });
    const { error, metrics } = await run();
    expect(error).toMatchObject({ code: 'AGENT_FAILED', details: { reason: 'schema' } });
    expect(error?.message).toContain('`kind`');
    expect(metrics.usage?.inputTokens).toBe(20);
  });

  it('uses one new conversation for each attempt, also between failures of the server', async () => {
    const busy = new OrchestratorError('AGENT_FAILED', 'answered 500', { retryable: true });
    const answers = ['no', 'no', busy, 'no', busy, 'no', '{"kind":"spam"}'];
    const { run, model } = setup(answers, { schema: SCHEMA }, { retry: { maxAttempts: 6 } });
    const execution = await run();
    expect(execution.output).toMatchObject({ a: { object: { kind: 'spam' } } });
    // 1: no, no. 2: 500. 3: no, 500. 4: no (repair). 5: the answer.
    expect(execution.agents[0]?.attempts).toBe(5);
    expect(model.requests.length).toBe(7);
  });

  it.each([
    ['length', /raise `maxTokens`/],
    ['content-filter', /refused/],
  ] as const)('does not repair an answer that ended by %s, and says what to do', async (finishReason, message) => {
    const { run, model } = setup([{ text: '{"ki', finishReason }], { schema: SCHEMA }, { retry: { maxAttempts: 3 } });
    const { error } = await run();
    expect([error?.details?.reason, model.requests.length]).toEqual([finishReason, 1]);
    expect(error?.message).toMatch(message);
  });

  it('refuses prototype keys and nesting without end, and reads 1 MB of brackets and fences in little time', async () => {
    const hostile = ['{"kind":"spam","__proto__":{"x":1}}', '['.repeat(100_000), '```json\n'.repeat(125_000)];
    for (const text of hostile) {
      const { run } = setup([text, text], { schema: SCHEMA });
      expect((await run()).error?.details?.reason).toBe('schema');
    }
  });

  it('without a schema, an answer that was cut off is the output, and says so', async () => {
    const { run } = setup([{ text: 'Once upon', finishReason: 'length' }]);
    expect((await run()).output).toMatchObject({ a: { text: 'Once upon', finishReason: 'length' } });
  });
});

describe('at load', () => {
  const two = { models: { one: fakeModel([]), two: fakeModel([]) } };

  it('no provider is NOT_CONFIGURED, and names the option', () => {
    expect(refusal({}, {})).toMatchObject({
      code: 'NOT_CONFIGURED',
      message: expect.stringContaining('option `models`'),
    });
    const named = refusal({ provider: 'openai' }, { models: { opnai: fakeModel([]) } });
    expect(named.code).toBe('NOT_CONFIGURED');
    expect(issuesOf(named)[0]).toMatchObject({
      message: expect.stringContaining('`models.openai`'),
      suggestion: 'opnai',
      path: 'flow[0].config.provider',
    });
  });

  it('several providers need a name, and are listed', () => {
    const error = refusal({}, two);
    expect([error.code, issuesOf(error)[0]?.message]).toEqual([
      'INVALID_DEFINITION',
      'needs a `provider`: several are configured; write `one` or `two`',
    ]);
  });

  it.each([
    [{ model: undefined }, 'model', /required/],
    [{ prompt: 'prompt://greet' }, 'prompt', /must say which version/],
    [{ prompt: '' }, 'prompt', /empty/],
    [{ provider: '${input.p}' }, 'provider', /plain name/],
    [{ temperature: -1 }, 'temperature', /at least 0/],
    [{ maxTokens: 0 }, 'maxTokens', /from 1/],
    [{ maxSteps: 101 }, 'maxSteps', /from 1 to 100/],
    [{ schema: { type: 'strng' } }, 'schema.type', /must be `string`/],
    [{ schema: { type: 'object', properties: { a: { pattern: '(a+)+$' } } } }, 'schema.properties.a.pattern', /slow/],
    [{ stream: 'yes' }, 'stream', /true or false/],
    [{ promt: 'x' }, 'promt', /promt/],
    [{ tools: '${input.tools}' }, 'tools', /must be a list/],
    [{ tools: [{ mcp: 'docs' }] }, 'tools[0].mcp', /`mcpServers\.docs`/],
    [{ tools: [{ agent: 'nobody' }] }, 'tools[0].agent', /nobody/],
    [{ tools: [{ agent: 'a' }] }, 'tools[0].agent', /leads back/],
    [{ tools: [{ name: 'x' }] }, 'tools[0]', /mcp/],
    [{ tools: [{ agent: 'a', parameters: { type: 'array' } }] }, 'tools[0].parameters', /type `object`/],
  ] as const)('%j is refused at %s', (config, path, message) => {
    const issues = issuesOf(refusal(config as Config));
    expect(issues.map((issue) => issue.path)).toContain(`flow[0].config.${path}`);
    expect(issues.find((issue) => issue.path === `flow[0].config.${path}`)?.message).toMatch(message);
  });

  it('an agent without a prompt is refused, unless a router gives one', () => {
    const models = { fake: fakeModel([]) };
    const flow = [{ agent: 'a', operation: 'think', config: { model: 'm' } }];
    const load = (steps: readonly object[]) =>
      createTestOrchestrator({ ensembles: [{ name: 'e', flow: steps } as never], models });
    expect(() => load(flow)).toThrow(/needs a `prompt`/);
    expect(() => load([{ agent: 'r', routes: [{ default: true, prompt: 'Hi' }] }, ...flow])).not.toThrow();
  });

  it('a shared agent without a prompt may be used where a router gives one', async () => {
    const model = fakeModel(['ok']);
    const orchestrator = createTestOrchestrator({
      models: { fake: model },
      agents: [{ name: 'writer', operation: 'think', config: { model: 'm' } }],
      ensembles: [
        {
          name: 'e',
          flow: [{ agent: 'r', routes: [{ default: true, prompt: 'Write' }] }, { agent: 'writer' }],
        } as never,
      ],
    });
    expect((await orchestrator.execute('e')).status).toBe('completed');
    expect(model.requests[0]?.messages).toEqual([{ role: 'user', text: 'Write' }]);
    expect((await orchestrator.executeAgent('writer')).error?.message).toContain('no prompt');
  });
});

describe('the option `models`', () => {
  const create = (entry: unknown) => createTestOrchestrator({ models: { m: entry as never } });

  it.each([
    [{}, /must be \{ url, apiKey\? \}/],
    [null, /must be \{ url/],
    [{ url: 'localhost' }, /http or https address/],
    [{ url: 'ftp://x.example' }, /http or https address/],
    [{ url: 'https://user:pw@x.example' }, /without a user name/],
    [Object.assign(() => null, { languageModel() {} }), /or aiModels\(provider\)/],
    [{ url: 'https://x.example/v1/chat/completions' }, /`url` must end before `\/chat\/completions`/],
    [{ url: 'https://x.example', apiKey: '' }, /`apiKey` must be text/],
    [{ url: 'https://x.example', apikey: 'k' }, /`apikey` is not an option.*`apiKey`/],
    [{ url: 'https://x.example', headers: { 'a b': 'x' } }, /header `a b`/],
    [{ url: 'https://x.example', prices: { m: { input: -1, output: 0 } } }, /`prices` must be/],
    [{ url: 'https://x.example', structuredOutput: 'xml' }, /'json_schema' or 'json_object' or 'prompt'/],
  ])('%j is refused', (entry, message) => {
    expect(() => create(entry)).toThrow(message);
  });

  it('masks keys and headers of servers in logs and errors, and never shows them in a refusal', async () => {
    const lines: unknown[] = [];
    const log = (fields: unknown, text: unknown) => void lines.push(fields, text);
    const orchestrator = createTestOrchestrator({
      logger: { debug: log, info: log, warn: log, error: log },
      models: { m: { url: 'https://x.example', apiKey: 'sk-the-secret-key', headers: { 'x-org': 'org-secret-id' } } },
      scripts: {
        leak: ({ logger }) => {
          logger.info({}, 'sk-the-secret-key org-secret-id');
          throw new Error('sk-the-secret-key org-secret-id');
        },
      },
      ensembles: ['name: e\nflow:\n  - { agent: a, operation: code, config: { script: leak } }'],
    });
    const run = await orchestrator.execute('e');
    expect(run.error?.message).toBe('*** ***');
    expect(JSON.stringify([run, lines])).not.toMatch(/secret-(key|id)/);
  });
});
