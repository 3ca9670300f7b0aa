/** A `think` agent with tools: which tools the model gets, what its calls do, and what of it survives a crash. */

import { describe, expect, it } from 'vitest';
import type { ModelRequest } from '../../src/entries/adapter.ts';
import { sqliteStorage } from '../../src/entries/sqlite.ts';
import {
  createTestOrchestrator,
  type FakeAnswer,
  fakeModel,
  type StubAnswer,
  stubHttp,
  type TestOrchestratorOptions,
} from '../../src/entries/testing.ts';
import type { Json, JsonObject } from '../../src/index.ts';
import { memoryStorage } from '../../src/index.ts';

const NEVER = () => new Promise<never>(() => {});
const call = (name: string, args: Json = {}) => ({ name, arguments: args });
const calls = (...toolCalls: ReturnType<typeof call>[]) => ({ toolCalls });

const FIND = {
  name: 'find',
  description: 'Finds pages',
  inputSchema: { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] },
};
const READ = { name: 'read.page', description: 'Reads a page' };

interface Setup {
  readonly tools: readonly JsonObject[];
  readonly config?: object;
  readonly step?: object;
  readonly agents?: readonly object[];
  /** By the path on the server. */
  readonly routes?: Readonly<Record<string, StubAnswer>>;
  readonly options?: TestOrchestratorOptions;
}

function setup(answers: readonly FakeAnswer[], { tools, config, step, agents = [], routes = {}, options }: Setup) {
  const model = fakeModel(answers, { prices: { small: { input: 1, output: 1 } } });
  const http = stubHttp({ 'GET https://docs.example/tools': { json: { tools: [FIND, READ] } } });
  for (const [path, answer] of Object.entries(routes)) http.on(`POST https://docs.example/tools/${path}`, answer);
  const ensemble = {
    name: 'e',
    flow: [{ agent: 'a', operation: 'think', config: { model: 'small', prompt: 'Go', tools, ...config }, ...step }],
    agents,
    outputs: { text: '${a.output.text}' },
  };
  const orchestrator = createTestOrchestrator({
    http,
    models: { fake: model },
    mcpServers: { docs: { url: 'https://docs.example' } },
    ensembles: [ensemble as never],
    ...options,
  });
  const posts = () => http.calls.filter(({ method }) => method === 'POST');
  return { model, http, orchestrator, posts, run: () => orchestrator.execute('e') };
}

const results = (request: ModelRequest | undefined) =>
  (request?.messages ?? []).flatMap((message) => (message.role === 'tool' ? [[message.result, message.isError]] : []));
const names = (request: ModelRequest | undefined) => request?.tools?.map(({ name }) => name);

describe('the tools of a tool server', () => {
  it('are given to the model by names that it may use, and called with its arguments', async () => {
    const { run, model, posts } = setup([calls(call('find', { q: 'x' })), calls(call('read_page', { n: 1 })), 'Done'], {
      tools: [{ mcp: 'docs' }],
      routes: { find: { json: { content: ['p1'], isError: false } }, 'read.page': { json: { content: 'text' } } },
    });
    const execution = await run();
    expect([execution.error, execution.output]).toEqual([undefined, { text: 'Done' }]);
    expect(model.requests[0]?.tools).toEqual([
      FIND,
      { name: 'read_page', description: 'Reads a page', inputSchema: { type: 'object', properties: {} } },
    ]);
    expect(posts().map(({ json }) => json)).toEqual([
      { name: 'find', arguments: { q: 'x' } },
      { name: 'read.page', arguments: { n: 1 } },
    ]);
    expect(results(model.requests[2])).toEqual([
      [['p1'], false],
      ['text', false],
    ]);
  });

  it('may be chosen by name; a name that the server does not list fails with the nearest one', async () => {
    const one = setup(['ok'], { tools: [{ mcp: 'docs', tool: 'find' }] });
    await one.run();
    expect(names(one.model.requests[0])).toEqual(['find']);
    const { error } = await setup([], { tools: [{ mcp: 'docs', tool: ['fnd'] }] }).run();
    expect(error).toMatchObject({ code: 'NOT_FOUND', message: expect.stringContaining('did you mean `find`?') });
  });

  it('get different names when two have the same', async () => {
    const { run, model } = setup(['ok'], {
      tools: [
        { mcp: 'docs', tool: 'find' },
        { mcp: 'docs', tool: 'find' },
        { mcp: 'docs', tool: 'find' },
        { agent: 'find' },
      ],
      agents: [{ name: 'find', operation: 'code', config: { script: 's' } }],
      options: { scripts: { s: () => 1 } },
    });
    await run();
    expect(names(model.requests[0])).toEqual(['find', 'docs_find', 'docs_find_2', 'agent_find']);
  });

  it('that report an error, or fail for good, are told to the model', async () => {
    const { run, model } = setup(
      [calls(call('find', { q: 'a' }), call('find', { q: 'b' }), call('find', { q: 3 })), 'Ok'],
      {
        tools: [{ mcp: 'docs' }],
        routes: { find: [{ json: { content: 'no index', isError: true } }, { status: 403, json: {} }] },
      },
    );
    expect((await run()).output).toEqual({ text: 'Ok' });
    const [reported, failed, wrong] = results(model.requests[1]);
    expect(reported).toEqual(['no index', true]);
    expect(failed).toEqual([expect.stringContaining('403'), true]);
    expect(wrong).toEqual([expect.stringMatching(/arguments.*q/), true]);
  });

  it('that fail for now fail the attempt; its retry repeats only the call that failed', async () => {
    const { run, model, posts } = setup([calls(call('find', { q: 'a' }), call('find', { q: 'b' })), 'Ok'], {
      tools: [{ mcp: 'docs' }],
      step: { retry: { maxAttempts: 2 } },
      routes: { find: [{ json: 1 }, { status: 503, headers: { 'retry-after': '30' } }, { json: 2 }] },
    });
    const execution = await run();
    expect([execution.output, execution.duration]).toEqual([{ text: 'Ok' }, 30_000]);
    expect(posts().map(({ json }) => (json as { arguments: { q: string } }).arguments.q)).toEqual(['a', 'b', 'b']);
    const keys = posts().map(({ headers }) => headers?.['Idempotency-Key']);
    expect([keys[1] === keys[2], keys[0] === keys[1]]).toEqual([true, false]);
    expect(model.requests.length).toBe(2);
  });
});

describe('agents as tools', () => {
  const lookup = { name: 'lookup', description: 'Looks up an order', operation: 'code', config: { script: 'lookup' } };
  const parameters = {
    type: 'object',
    properties: { id: { type: 'integer' }, depth: { type: 'integer', default: 1 } },
    required: ['id'],
  };

  it('have their own description, are called with checked arguments, and retry by themselves', async () => {
    let attempts = 0;
    const { run, model } = setup([calls(call('lookup', { id: 7 })), 'Ok'], {
      tools: [{ agent: 'lookup', parameters }],
      agents: [{ ...lookup, input: { order: '${input.id}', depth: '${input.depth}' }, retry: { maxAttempts: 2 } }],
      options: {
        scripts: {
          lookup: ({ input }) => {
            attempts += 1;
            if (attempts === 1) throw new Error('busy');
            return input;
          },
        },
      },
    });
    const execution = await run();
    expect(model.requests[0]?.tools).toEqual([
      { name: 'lookup', description: 'Looks up an order', inputSchema: parameters },
    ]);
    expect(results(model.requests[1])).toEqual([[{ order: 7, depth: 1 }, false]]);
    expect([execution.output, attempts, execution.duration]).toEqual([{ text: 'Ok' }, 2, 1_000]);
  });

  it('that fail, wrong arguments, unknown tools and arguments that are no object are told to the model', async () => {
    const { run, model } = setup(
      [
        calls(call('lookup', { id: 1 }), call('lookup', { id: 'x' }), call('lookpu', {}), call('lookup', '{"id":')),
        'Ok',
      ],
      {
        tools: [{ agent: 'lookup', parameters }],
        agents: [lookup],
        options: {
          scripts: {
            lookup: () => {
              throw new Error('there is no order 1');
            },
          },
        },
      },
    );
    expect((await run()).output).toEqual({ text: 'Ok' });
    expect(results(model.requests[1])).toEqual([
      ['there is no order 1', true],
      [expect.stringContaining('`id`'), true],
      [expect.stringContaining('did you mean lookup?'), true],
      [expect.stringContaining('not a JSON object'), true],
    ]);
  });

  it('may be shared agents, and think agents of their own', async () => {
    const { run, orchestrator } = setup([calls(call('expert', { q: 'why' })), 'Because', 'It says: because'], {
      tools: [{ agent: 'expert', description: 'Knows' }],
      options: {
        agents: [
          {
            name: 'expert',
            operation: 'think',
            config: { provider: 'fake', model: 'big', prompt: 'Explain ${input.q}' },
          },
        ],
      },
    });
    const { id, output, metrics } = await run();
    expect([output, metrics.usage?.inputTokens]).toEqual([{ text: 'It says: because' }, 30]);
    const { steps } = await orchestrator.executions.steps(id);
    expect(steps.map(({ key, name }) => [key, name])).toEqual(
      expect.arrayContaining([
        ['flow[0].tool[1].flow[0].model[1]', 'big'],
        ['flow[0].model[2]', 'small'],
      ]),
    );
  });
});

describe('the loop', () => {
  it('runs the calls of one answer at the same time, five at most, and gives their results in order', async () => {
    let active = 0;
    let most = 0;
    const { run, model } = setup([calls(...Array.from({ length: 12 }, (_, i) => call('slow', { i }))), 'Ok'], {
      tools: [{ agent: 'slow' }],
      agents: [{ name: 'slow', operation: 'code', config: { script: 'slow' } }],
      options: {
        scripts: {
          slow: async ({ input }) => {
            active += 1;
            most = Math.max(most, active);
            await new Promise((resolve) => setImmediate(resolve));
            active -= 1;
            return input.i;
          },
        },
      },
    });
    await run();
    expect(most).toBe(5);
    expect(results(model.requests[1])).toEqual(Array.from({ length: 12 }, (_, i) => [i, false]));
  });

  it('ends after `maxSteps` calls of the model, without a retry', async () => {
    const asks = Array.from({ length: 9 }, () => calls(call('find', { q: 'x' })));
    const { run, model, posts } = setup(asks, {
      tools: [{ mcp: 'docs' }],
      config: { maxSteps: 3 },
      step: { retry: { maxAttempts: 3 } },
      routes: { find: { json: 1 } },
    });
    const { error } = await run();
    expect(error).toMatchObject({ code: 'AGENT_FAILED', details: { reason: 'max-steps' } });
    expect(error?.message).toContain('after 3 calls; raise `maxSteps`');
    expect([model.requests.length, posts().length]).toEqual([3, 2]);
  });

  it('with a schema checks the last answer, and its repair is one call more', async () => {
    const { run } = setup([calls(call('find', { q: 'x' })), 'nothing', '{"n":1}'], {
      tools: [{ mcp: 'docs' }],
      config: { maxSteps: 2, schema: { type: 'object', required: ['n'] } },
      routes: { find: { json: 1 } },
    });
    expect((await run()).output).toEqual({ text: '{"n":1}' });
  });

  it('makes none of 10,000 calls of one answer, and begins a new conversation on a retry', async () => {
    const many = calls(...Array.from({ length: 10_000 }, () => call('find', { q: 'x' })));
    const { run, posts } = setup([many, 'Ok'], { tools: [{ mcp: 'docs' }], step: { retry: { maxAttempts: 2 } } });
    expect((await run()).output).toEqual({ text: 'Ok' });
    expect(posts().length).toBe(0);
  });

  it('fails with INVALID_OUTPUT for an answer that is too large to be stored', async () => {
    const many = calls(...Array.from({ length: 100_000 }, () => call('find', { q: 'x' })));
    const { error } = await setup([many], { tools: [{ mcp: 'docs' }] }).run();
    expect(error).toMatchObject({ code: 'INVALID_OUTPUT', message: expect.stringContaining('4 MiB') });
  });

  it('cuts a result of a megabyte for the model, and says so', async () => {
    const { run, model } = setup([calls(call('find', { q: 'x' })), 'Ok'], {
      tools: [{ mcp: 'docs' }],
      routes: { find: { json: { content: 'x'.repeat(1_000_000) } } },
    });
    await run();
    const [[text] = []] = results(model.requests[1]) as [string, boolean][];
    expect(text?.length).toBeLessThan(66_000);
    expect(text).toContain('934464 more characters are left out');
  });

  it('never takes a name of Object.prototype for a tool', async () => {
    const { run, model } = setup([calls(call('__proto__'), call('constructor')), 'Ok'], { tools: [{ mcp: 'docs' }] });
    await run();
    expect(results(model.requests[1]).map(([, isError]) => isError)).toEqual([true, true]);
  });

  it('fails if the model calls a tool and the agent has none', async () => {
    const { error } = await setup([calls(call('find'))], { tools: [] }).run();
    expect(error).toMatchObject({ details: { reason: 'tool-calls' }, message: expect.stringContaining('has none') });
  });
});

describe.each([
  ['memory', () => memoryStorage()],
  ['SQLite', () => sqliteStorage({ path: ':memory:' })],
])('after a crash, on %s', (_storage, createStorage) => {
  /** What the process does outside of itself, in order. The first time that it comes to `at`, it hangs there and crashes. */
  async function crashAt(at: number) {
    const effects: string[] = [];
    let hung = false;
    const effect = async <T>(name: string, value: T): Promise<T> => {
      effects.push(name);
      if (effects.length === at && !hung) {
        hung = true;
        atPoint();
        return NEVER();
      }
      return value;
    };
    let atPoint: () => void = () => {};
    const reached = new Promise<void>((resolve) => {
      atPoint = resolve;
    });
    const answer = (step: number): FakeAnswer => {
      const given = [
        calls(call('find', { q: 'a' })),
        calls(call('order', { id: 1 }), call('find', { q: 'b' })),
        'Done',
      ];
      return given[step] as FakeAnswer;
    };
    // The script of a fake model goes on with each request, so the answer is chosen by the conversation.
    const reply = async (request: ModelRequest) => {
      const step = request.messages.filter(({ role }) => role === 'assistant').length;
      return (await effect(`model ${step + 1}`, answer(step))) as string;
    };
    const storage = createStorage();
    const { orchestrator, http } = setup(
      Array.from({ length: 9 }, () => reply),
      {
        tools: [{ mcp: 'docs', tool: 'find' }, { agent: 'order' }],
        agents: [{ name: 'order', operation: 'code', config: { script: 'order' } }],
        routes: {
          find: async (request) => {
            const { q } = (JSON.parse(String(request.body)) as { arguments: { q: string } }).arguments;
            return effect(`find ${q}`, { json: { content: q } });
          },
        },
        options: { storage, scripts: { order: () => effect('order', 'shipped') } },
      },
    );
    http.on('GET https://docs.example/tools', () => effect('list', { json: { tools: [FIND, READ] } }));
    const handle = await orchestrator.start('e');
    handle.result().catch(() => {});
    await reached;
    const next = await orchestrator.crash();
    const run = await next.result(handle.id);
    await next.close();
    return { effects, run };
  }

  const ORDER = ['list', 'model 1', 'find a', 'model 2', 'order', 'find b', 'model 3'];

  it.each(ORDER.map((name, i) => [name, i + 1] as const))(
    'at `%s`, resumes there: nothing that was stored runs again',
    async (name, at) => {
      const { effects, run } = await crashAt(at);
      expect([run.status, run.output, run.recoveries]).toEqual(['completed', { text: 'Done' }, 1]);
      expect(run.metrics.usage).toEqual({ inputTokens: 30, outputTokens: 15, cost: 0.000045 });
      const times = (one: string) => effects.filter((effect) => effect === one).length;
      // Two calls of one answer run at the same time: the other one may have been stored before the crash, or not.
      const sameTime = ['order', 'find b'];
      for (const one of ORDER) {
        if (one === name) expect(times(one)).toBe(2);
        else if (!(sameTime.includes(one) && sameTime.includes(name))) expect([one, times(one)]).toEqual([one, 1]);
      }
    },
  );
});

it('a list of tools that changed after the crash does not change the tools of the conversation', async () => {
  let lists = 0;
  const answers: FakeAnswer[] = [
    () => {
      started();
      return NEVER();
    },
    () => calls(call('find', { q: 'x' })),
    'Ok',
  ];
  let started: () => void = () => {};
  const reached = new Promise<void>((resolve) => {
    started = resolve;
  });
  const { orchestrator, http, model } = setup(answers, {
    tools: [{ mcp: 'docs' }],
    routes: { find: { json: 1 } },
  });
  http.on('GET https://docs.example/tools', () => {
    lists += 1;
    return { json: { tools: lists === 1 ? [FIND] : [] } };
  });
  const handle = await orchestrator.start('e');
  handle.result().catch(() => {});
  await reached;
  const next = await orchestrator.crash();
  expect((await next.result(handle.id)).output).toEqual({ text: 'Ok' });
  expect([lists, names(model.requests[1])]).toEqual([1, ['find']]);
});
