import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import { mcpClient } from '../../src/entries/mcp.ts';
import { createTestOrchestrator, stubHttp } from '../../src/entries/testing.ts';
import { createOrchestrator, fetchHttp, type ToolServerOptions } from '../../src/index.ts';
import { compileHost } from '../../src/orchestrator/create-orchestrator.ts';
import { checkEnsemble } from '../../src/orchestrator/definitions/load-definitions.ts';
import { scaled } from '../slowdown.ts';
import { type LocalServer, localHttp, reply, startServer } from './tool-server.ts';

let server: LocalServer;
beforeEach(async () => {
  server = await startServer();
});
afterEach(() => server.close());

/** What expressions of the config read. */
const VALUES = { t: 700, ttl: -1 };

interface Setup {
  readonly config?: object;
  readonly input?: unknown;
  readonly options?: Partial<ToolServerOptions>;
  readonly agent?: object;
  readonly brand?: string;
}

function started({ config = {}, input = { id: 7 }, options = {}, agent = {}, brand }: Setup = {}) {
  return createTestOrchestrator({
    ensembles: [
      {
        name: 'ask',
        flow: [{ agent: 'a', operation: 'tools', config: { mcp: 'crm', tool: 'lookup', ...config }, input, ...agent }],
        outputs: { output: '${a.output}' },
      } as never,
    ],
    mcpServers: { crm: { url: server.url, ...options } },
    http: localHttp(),
    ...(brand !== undefined && { brand }),
  });
}

async function run(setup: Setup = {}) {
  const orchestrator = started(setup);
  const execution = await orchestrator.execute('ask', VALUES);
  await orchestrator.close();
  return execution;
}

async function contentOf(setup: Setup = {}) {
  const { output, error } = await run(setup);
  expect(error).toBeUndefined();
  return (output as { output: { content: unknown; isError: boolean } }).output;
}

describe('tools: a refused call says what to check', () => {
  test.each([
    ['401', reply(401), 'answered 401; check the `auth` of the server'],
    ['404', reply(404), 'answered 404; check the name of the tool and the `url` of the server'],
    ['404 of a server that may speak MCP', reply(404), "one that speaks MCP needs `transport: 'mcp'`"],
    [
      'an event stream',
      reply(200, 'data: 1\n\n', { 'content-type': 'text/event-stream' }),
      'an event stream; a tool answers once, with JSON or text',
    ],
    ['a status with an error in JSON-RPC', reply(400, '{"jsonrpc":"2.0"}'), "an MCP server needs `transport: 'mcp'`"],
  ])('%s', async (_, answer, remedy) => {
    server.answer = answer;
    const { error } = await run();
    expect(error?.message).toContain(remedy);
  });
});

describe('tools: the call', () => {
  test('is a POST to <url>/tools/<tool> with { name, arguments }, where the input of the agent is the arguments', async () => {
    await run({ input: { id: 7, tags: ['a'] } });
    expect(server.requests).toHaveLength(1);
    const [request] = server.requests;
    expect(request).toMatchObject({ method: 'POST', target: '/tools/lookup' });
    expect(JSON.parse(request?.body ?? '')).toEqual({ name: 'lookup', arguments: { id: 7, tags: ['a'] } });
    expect(request?.headers).toMatchObject({ 'content-type': 'application/json' });
    expect(request?.headers['idempotency-key']).toMatch(/^[0-9a-f]{32}$/);
    expect(request?.headers.authorization).toBeUndefined();
    expect(Object.keys(request?.headers ?? {}).filter((name) => name.startsWith('x-'))).toEqual([]);
  });

  test('without an input of the agent, the input of the execution is the arguments', async () => {
    const orchestrator = createTestOrchestrator({
      ensembles: ['name: ask\nflow:\n  - { agent: a, operation: tools, config: { mcp: crm, tool: lookup } }'],
      mcpServers: { crm: { url: server.url } },
      http: localHttp(),
    });
    await orchestrator.execute('ask', { id: 9 });
    expect(JSON.parse(server.requests[0]?.body ?? '').arguments).toEqual({ id: 9 });
    await orchestrator.close();
  });

  test('the output is { tool, server, content, duration, isError }', async () => {
    const { output } = await run();
    expect(output).toEqual({
      output: { tool: 'lookup', server: 'crm', content: 'ok', duration: expect.any(Number), isError: false },
    });
  });

  it.each([
    ['../admin', '/v1/tools/..%2Fadmin?key=1'],
    ['a/b', '/v1/tools/a%2Fb?key=1'],
    ['a%2fb', '/v1/tools/a%252fb?key=1'],
    ['x?y', '/v1/tools/x%3Fy?key=1'],
    ['#', '/v1/tools/%23?key=1'],
    ['..\\x', '/v1/tools/..%5Cx?key=1'],
    ['zażółć 1', '/v1/tools/za%C5%BC%C3%B3%C5%82%C4%87%201?key=1'],
  ])('tool %j is one segment of the path, and the url keeps its path and query', async (tool, target) => {
    await run({ config: { tool }, options: { url: `${server.url}/v1/?key=1` } });
    expect(server.requests.map((request) => request.target)).toEqual([target]);
    expect(JSON.parse(server.requests[0]?.body ?? '').name).toBe(tool);
  });

  it.each([['text'], [[1]], [null], ['${[1]}']])('input %j is refused: arguments are an object', async (input) => {
    const { error } = await run({ input });
    expect(error).toMatchObject({ code: 'INVALID_INPUT', message: expect.stringContaining('must be an object') });
    expect(server.requests).toEqual([]);
  });

  test('a repeated attempt has the same Idempotency-Key, also after a crash', async () => {
    let asked: () => void = () => {};
    const first = new Promise<void>((resolve) => {
      asked = resolve;
    });
    server.answer = (_request, response) => {
      asked();
      if (server.requests.length > 1) return { content: 'done' };
      // The first answer never comes: the process dies while it waits.
      response.on('close', () => {});
      return undefined;
    };
    const orchestrator = started();
    const { id } = await orchestrator.start('ask');
    await first;
    const next = await orchestrator.crash();
    expect((await next.result(id)).output).toMatchObject({ output: { content: 'done' } });
    const keys = server.requests.map(({ headers }) => headers['idempotency-key']);
    expect(keys).toHaveLength(2);
    expect(keys[0]).toBe(keys[1]);
    await next.close();
  });
});

describe('tools: the answer', () => {
  it.each<[string, unknown, unknown, boolean]>([
    [
      '{ content, isError }',
      { content: [{ type: 'text', text: 'x' }], isError: false },
      [{ type: 'text', text: 'x' }],
      false,
    ],
    ['an error that the tool reports', { content: 'no such id', isError: true }, 'no such id', true],
    ['content alone', { content: { id: 1 } }, { id: 1 }, false],
    ['another object', { id: 1, name: 'Ada' }, { id: 1, name: 'Ada' }, false],
    ['an object that has a field `content`', { title: 'T', content: 'C' }, { title: 'T', content: 'C' }, false],
    ['an error without content', { isError: true, message: 'm' }, { isError: true, message: 'm' }, true],
    ['isError that is no boolean', { content: 1, isError: 'yes' }, { content: 1, isError: 'yes' }, false],
    ['a list', [1, 2], [1, 2], false],
    ['null', null, null, false],
  ])('%s', async (_what, answer, content, isError) => {
    server.answer = () => answer;
    expect(await contentOf()).toMatchObject({ content, isError });
  });

  it.each<[string, string, string | undefined, unknown]>([
    ['text', '{"a":1}', 'text/plain', '{"a":1}'],
    ['JSON without a content type', '{"a":1}', undefined, { a: 1 }],
    ['text without a content type', 'hello', undefined, 'hello'],
    ['nothing', '', 'application/json', null],
    ['a +json type', '{"content":1}', 'application/x+json; charset=utf-8', 1],
  ])('%s', async (_what, body, type, content) => {
    server.answer = reply(200, body, type === undefined ? {} : { 'content-type': type });
    expect((await contentOf()).content).toEqual(content);
  });

  it.each<[string, string | Uint8Array, string]>([
    ['JSON that is none', '<html>', 'invalid-json'],
    ['JSON nested too deep', `${'['.repeat(65)}${']'.repeat(65)}`, 'unsafe-json'],
    ['a prototype key', '{"__proto__":{"admin":true}}', 'unsafe-json'],
    ['bytes that are no text', new Uint8Array([0x22, 0xff, 0x22]), 'invalid-text'],
  ])('%s fails the agent, and is not tried again', async (_what, body, reason) => {
    server.answer = (_request, response) => void response.setHeader('content-type', 'application/json').end(body);
    const { error } = await run({ agent: { retry: { maxAttempts: 3 } } });
    expect(error).toMatchObject({ code: 'AGENT_FAILED', details: { status: 200, reason } });
    expect(server.requests).toHaveLength(1);
  });
});

describe('tools: failures', () => {
  it.each([
    [302, 1],
    [400, 1],
    [401, 1],
    [404, 1],
    [408, 3],
    [429, 3],
    [500, 3],
    [503, 3],
  ])('status %i fails the agent with AGENT_FAILED after %i attempts of 3', async (status, attempts) => {
    server.answer = reply(status, 'wrong', { location: 'http://127.0.0.1:1/' });
    const { status: ended, error, agents } = await run({ agent: { retry: { maxAttempts: 3 } } });
    expect(ended).toBe('failed');
    expect(error).toMatchObject({ code: 'AGENT_FAILED', details: { status, body: 'wrong' } });
    expect(error?.message).toContain(`tool server \`crm\`: POST ${server.url}/tools/lookup answered ${status}`);
    expect(agents[0]).toMatchObject({ attempts });
    expect(server.requests).toHaveLength(attempts);
  });

  test('the failure is readable as `a.failed`, and an error of the tool is not a failure', async () => {
    server.answer = () => ({ content: 'no', isError: true });
    expect((await run()).status).toBe('completed');
    server.answer = reply(500);
    expect(await run({ agent: { continueOnError: true } })).toMatchObject({
      status: 'completed',
      output: { output: null },
    });
  });

  test('Retry-After is honoured', async () => {
    let calls = 0;
    server.answer = (request, response) => {
      calls += 1;
      return calls > 1 ? 'done' : reply(429, '', { 'retry-after': '120' })(request, response);
    };
    const orchestrator = started({ agent: { retry: { maxAttempts: 2 } } });
    const began = orchestrator.clock.now();
    expect((await orchestrator.execute('ask')).status).toBe('completed');
    expect(orchestrator.clock.now() - began).toBeGreaterThanOrEqual(120_000);
    await orchestrator.close();
  });

  test('a redirect is never followed', async () => {
    const target = await startServer();
    server.answer = reply(307, '', { location: `${target.url}/tools/lookup` });
    const { error } = await run({
      options: { auth: { type: 'bearer', token: 'planted-token' }, secret: 'planted-secret' },
    });
    expect(error?.message).toMatch(/answered 307; redirects are not followed$/);
    expect(target.requests).toEqual([]);
    await target.close();
  });

  test('a server that can not be reached fails the agent, and is tried again', async () => {
    const gone = await startServer();
    await gone.close();
    const { error, agents } = await run({ options: { url: gone.url }, agent: { retry: { maxAttempts: 2 } } });
    expect(error).toMatchObject({ code: 'AGENT_FAILED', details: { reason: 'connection' } });
    expect(agents[0]).toMatchObject({ attempts: 2 });
  });

  test('a server at a private address is refused, unless the HTTP client allows it', async () => {
    const orchestrator = createTestOrchestrator({
      ensembles: ['name: ask\nflow:\n  - { agent: a, operation: tools, config: { mcp: crm, tool: x } }'],
      mcpServers: { crm: { url: 'http://169.254.169.254/' } },
      http: fetchHttp(),
    });
    expect((await orchestrator.execute('ask')).error).toMatchObject({
      code: 'INVALID_REQUEST',
      details: { reason: 'address' },
    });
    await orchestrator.close();
  });

  const OAUTH = {
    auth: { type: 'oauth', clientId: 'c', clientSecret: 'planted-secret', tokenUrl: 'https://t.example/?k=planted' },
  } as const;
  it.each<[string, Partial<ToolServerOptions>, RegExp]>([
    ['of a call', {}, /POST https:\/\/crm\.example\/tools\/x failed in the HTTP client/],
    ['of the request for a token', OAUTH, /POST https:\/\/t\.example\/ failed in the HTTP client/],
    ['of a call by MCP', { transport: 'mcp' }, /POST https:\/\/crm\.example\/ failed in the HTTP client/],
    [
      'of the request for a token by MCP',
      { ...OAUTH, transport: 'mcp' },
      /POST https:\/\/t\.example\/ failed in the HTTP client/,
    ],
  ])('an error of another HTTP client reaches the log, not the record: %s', async (_, options, message) => {
    const logged: unknown[] = [];
    const line = (fields: object) => void logged.push(...Object.values(fields));
    const orchestrator = createOrchestrator({
      ensembles: ['name: ask\nflow:\n  - { agent: a, operation: tools, config: { mcp: crm, tool: x }, input: {} }'],
      mcp: mcpClient(),
      mcpServers: { crm: { url: 'https://crm.example/?k=planted', ...options } },
      http: {
        send({ url, headers }) {
          throw new Error(`${url} ${JSON.stringify(headers)}`);
        },
      },
      logger: { debug: line, info: line, warn: line, error: line },
    });
    const { error } = await orchestrator.execute('ask');
    expect(error).toMatchObject({ code: 'AGENT_FAILED', message: expect.stringMatching(message) });
    expect(JSON.stringify(error)).not.toMatch(/planted|Basic/);
    const causes = logged.flatMap((value) => (value instanceof Error ? [String((value.cause as Error)?.message)] : []));
    expect(causes.join()).toContain('https://');
    await orchestrator.close();
  });
});

describe('tools: time', () => {
  const silent = () => undefined;

  it.each<[string, Setup, number]>([
    ['30 s by default', {}, 30_000],
    ['that of the server', { options: { timeout: '5s' } }, 5_000],
    ['that of the agent, which wins', { options: { timeout: '5s' }, config: { timeout: 200 } }, 200],
    ['an expression', { config: { timeout: '${input.t}' } }, 700],
  ])('the timeout is %s', async (_what, setup, timeoutMs) => {
    server.answer = silent;
    const orchestrator = started(setup);
    const handle = await orchestrator.start('ask', VALUES);
    while (server.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 2));
    await orchestrator.clock.advance(timeoutMs - 1);
    expect((await orchestrator.executions.get(handle.id)).status).toBe('running');
    await orchestrator.clock.advance(1);
    const { error } = await handle.result();
    expect(error).toMatchObject({ code: 'TIMEOUT', details: { timeoutMs } });
    expect(error?.message).toContain(`tool \`lookup\` of server \`crm\` took longer than ${timeoutMs} ms`);
    await orchestrator.close();
  });

  test('one deadline covers the token, the list and the call', async () => {
    const token = await startServer();
    token.answer = () => ({ access_token: 't1', token_type: 'bearer', expires_in: 3600 });
    const waits = new Map<string, () => void>();
    const hold = (name: string, then: unknown) => new Promise((resolve) => waits.set(name, () => resolve(then)));
    token.answer = () => hold('token', { access_token: 't1', token_type: 'bearer' });
    server.answer = ({ method }) =>
      method === 'GET' ? hold('list', { tools: [{ name: 'lookup' }] }) : hold('call', { content: 1 });
    const auth = { type: 'oauth', clientId: 'c', clientSecret: 's', tokenUrl: `${token.url}/token` } as const;
    const orchestrator = started({ options: { auth }, config: { cacheDiscovery: true, timeout: 1000 } });
    const handle = await orchestrator.start('ask');
    for (const name of ['token', 'list']) {
      while (!waits.has(name)) await new Promise((resolve) => setTimeout(resolve, 2));
      await orchestrator.clock.advance(400);
      waits.get(name)?.();
    }
    while (!waits.has('call')) await new Promise((resolve) => setTimeout(resolve, 2));
    await orchestrator.clock.advance(200);
    expect((await handle.result()).error).toMatchObject({ code: 'TIMEOUT', details: { timeoutMs: 1000 } });
    await orchestrator.close();
    await token.close();
  });

  test('an endless answer ends at the timeout, and its socket is closed', async () => {
    let closed: () => void = () => {};
    const isClosed = new Promise<void>((resolve) => {
      closed = resolve;
    });
    server.answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const timer = setInterval(() => response.write(' '), 5);
      response.on('close', () => {
        clearInterval(timer);
        closed();
      });
    };
    const orchestrator = createOrchestrator({
      ensembles: ['name: ask\nflow:\n  - { agent: a, operation: tools, config: { mcp: crm, tool: x, timeout: 100 } }'],
      mcpServers: { crm: { url: server.url } },
      http: localHttp(),
    });
    const began = performance.now();
    expect((await orchestrator.execute('ask')).error?.code).toBe('TIMEOUT');
    expect(performance.now() - began).toBeLessThan(scaled(600));
    await isClosed;
    await orchestrator.close();
  });

  test('an answer of more than 10 MiB fails the agent', async () => {
    server.answer = (_request, response) => void response.end(Buffer.alloc(11 * 1024 * 1024, 0x20));
    expect((await run()).error).toMatchObject({ code: 'AGENT_FAILED', details: { reason: 'too-large' } });
  });

  test('the duration is measured on the clock', async () => {
    const orchestrator = started();
    server.answer = async () => {
      await orchestrator.clock.advance(1234);
      return { content: 1 };
    };
    expect((await orchestrator.execute('ask')).output).toMatchObject({ output: { duration: 1234 } });
    await orchestrator.close();
  });
});

describe('tools: checks at load', () => {
  const definition = (config: object) => ({ name: 'ask', flow: [{ agent: 'a', operation: 'tools', config }] });
  const issuesOf = (config: object, options: object = { mcpServers: { crm: { url: 'https://crm.example' } } }) =>
    checkEnsemble(definition(config) as never, compileHost(options)).issues.map(
      ({ path, message, suggestion }) => `${path}: ${message}${suggestion === undefined ? '' : ` -> ${suggestion}`}`,
    );
  const at = 'flow[0].config';

  it.each<[string, object, string[]]>([
    ['nothing wrong', { mcp: 'crm', tool: 'x', timeout: 5, cacheDiscovery: true, cacheTTL: 60, transport: 'http' }, []],
    ['expressions in the rest', { mcp: 'crm', tool: 'x', timeout: '${input.t}', cacheTTL: '${input.c}' }, []],
    [
      'an unknown server',
      { mcp: 'crn', tool: 'x' },
      [`${at}.mcp: there is no tool server \`crn\` (in the option \`mcpServers\`: crm) -> crm`],
    ],
    [
      'a prototype key',
      { mcp: '__proto__', tool: 'x' },
      [expect.stringContaining('there is no tool server `__proto__`') as never],
    ],
    [
      'a method of objects',
      { mcp: 'toString', tool: 'x' },
      [expect.stringContaining('there is no tool server `toString`') as never],
    ],
    [
      'a server from an expression',
      { mcp: '${input.server}', tool: 'x' },
      [`${at}.mcp: must be a plain name: it is decided when the definition is loaded`],
    ],
    [
      'a tool from an expression',
      { mcp: 'crm', tool: '${input.tool}' },
      [`${at}.tool: must be a plain name: it is decided when the definition is loaded`],
    ],
    ['an empty tool', { mcp: 'crm', tool: '' }, [`${at}.tool: must not be empty`]],
    ['a dot', { mcp: 'crm', tool: '.' }, [expect.stringContaining('can not be `.` or `..`') as never]],
    ['two dots', { mcp: 'crm', tool: '..' }, [expect.stringContaining('can not be `.` or `..`') as never]],
    ['half of a character', { mcp: 'crm', tool: '\ud800' }, [expect.stringContaining('half of a character') as never]],
    ['a long name', { mcp: 'crm', tool: 'x'.repeat(257) }, [`${at}.tool: can have at most 256 characters`]],
    [
      'a negative TTL',
      { mcp: 'crm', tool: 'x', cacheTTL: -1 },
      [expect.stringMatching(/cacheTTL: .*0 to 86400/) as never],
    ],
    [
      'a TTL of 1e12',
      { mcp: 'crm', tool: 'x', cacheTTL: 1e12 },
      [expect.stringMatching(/cacheTTL: .*0 to 86400/) as never],
    ],
    ['a timeout of 0', { mcp: 'crm', tool: 'x', timeout: 0 }, [expect.stringContaining('must be a duration') as never]],
    ['stdio', { mcp: 'crm', tool: 'x', transport: 'stdio' }, [expect.stringContaining('transport') as never]],
    ['an unknown key', { mcp: 'crm', tool: 'x', tiemout: 5 }, [expect.stringContaining('tiemout') as never]],
    ['no tool', { mcp: 'crm' }, [expect.stringContaining('tool') as never]],
  ])('%s', (_what, config, expected) => expect(issuesOf(config)).toEqual(expected));

  test('a wrong cacheTTL from an expression fails the agent', async () => {
    const { error } = await run({ config: { cacheDiscovery: true, cacheTTL: '${input.ttl}' } });
    expect(error).toMatchObject({ code: 'INVALID_INPUT', message: expect.stringContaining('from 0 to 86400') });
    expect(server.requests).toEqual([]);
  });

  test('without the option `mcpServers`, the definition is refused with NOT_CONFIGURED, which names the option', () => {
    const create = () => createTestOrchestrator({ ensembles: [definition({ mcp: 'crm', tool: 'x' }) as never] });
    expect(create).toThrow(expect.objectContaining({ code: 'NOT_CONFIGURED' }));
    expect(create).toThrow(/`mcpServers: \{ "crm": \{ url \} \}`/);
  });

  test('`transport: mcp` without the option `mcp` is refused with NOT_CONFIGURED, which names the entry', () => {
    const create = () =>
      createTestOrchestrator({
        ensembles: [definition({ mcp: 'crm', tool: 'x', transport: 'mcp' }) as never],
        mcpServers: { crm: { url: 'https://crm.example' } },
      });
    expect(create).toThrow(expect.objectContaining({ code: 'NOT_CONFIGURED' }));
    expect(create).toThrow(/needs the option `mcp`; .*'ensemble-orchestrator\/mcp'/);
  });

  test('a host that is not known may have any tool server', () => {
    const host = { ...compileHost({}), lenient: true };
    expect(checkEnsemble(definition({ mcp: 'crm', tool: 'x', transport: 'mcp' }) as never, host).issues).toEqual([]);
    expect(checkEnsemble(definition({ mcp: '${input.x}', tool: 'x' }) as never, host).issues).toHaveLength(1);
  });

  test('the definition needs `mcp:<name>` of its process', () => {
    const operation = compileHost({}).operations.get('tools');
    expect(operation?.needs?.({ mcp: 'crm', tool: 'x' })).toEqual(['mcp:crm']);
  });
});

describe('tools: another transport', () => {
  test('`transport: mcp` calls the client of the option `mcp`, on the server or on the agent', async () => {
    const calls: unknown[] = [];
    const closed: string[] = [];
    const mcp = {
      connect: ({ name }: { readonly name: string }) => ({
        listTools: async () => [],
        async callTool({ tool, arguments: given, timeoutMs }: { tool: string; arguments: object; timeoutMs: number }) {
          calls.push({ name, tool, given, timeoutMs });
          return { content: 'by mcp', isError: false };
        },
        async close() {
          closed.push(name);
        },
      }),
    };
    const flow = [
      { agent: 'a', operation: 'tools', config: { mcp: 'crm', tool: 'x' }, input: { n: 1 } },
      { agent: 'b', operation: 'tools', config: { mcp: 'plain', tool: 'y', transport: 'mcp', timeout: 50 }, input: {} },
    ];
    const orchestrator = createTestOrchestrator({
      ensembles: [{ name: 'ask', flow, outputs: { a: '${a.output.content}', b: '${b.output.server}' } } as never],
      mcpServers: { crm: { url: 'https://crm.example', transport: 'mcp' }, plain: { url: 'https://plain.example' } },
      mcp,
      http: stubHttp(),
    });
    expect((await orchestrator.execute('ask')).output).toEqual({ a: 'by mcp', b: 'plain' });
    expect(calls).toEqual([
      { name: 'crm', tool: 'x', given: { n: 1 }, timeoutMs: 30_000 },
      { name: 'plain', tool: 'y', given: {}, timeoutMs: 50 },
    ]);
    await orchestrator.close();
    expect(closed).toEqual(['crm', 'plain']);
  });
});
