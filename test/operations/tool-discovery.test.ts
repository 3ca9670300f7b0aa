/** The lists of tools: when they are fetched, how long they are kept, and what they refuse. */

import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import { toolServers } from '../../src/adapters/tool-servers/tool-servers.ts';
import type { ToolServers } from '../../src/engine/operation/tool-server.port.ts';
import { createTestOrchestrator, manualClock } from '../../src/entries/testing.ts';
import { type Answer, type LocalServer, localHttp, reply, startServer } from './tool-server.ts';

const LOOKUP = {
  name: 'lookup',
  description: 'Finds a customer.',
  inputSchema: { type: 'object', properties: { id: { type: 'integer', default: 3 } }, required: ['id'] },
};

let server: LocalServer;
let list: Answer;
beforeEach(async () => {
  server = await startServer();
  list = () => ({ tools: [LOOKUP] });
  server.answer = (request, response) => (request.method === 'GET' ? list(request, response) : { content: 'ok' });
});
afterEach(() => server.close());

const gets = () => server.requests.filter(({ method }) => method === 'GET').length;
const posts = () => server.requests.length - gets();

function started(config: object = { cacheDiscovery: true }, options: object = {}, concurrent = 1) {
  const step = {
    agent: 'a',
    operation: 'tools',
    config: { mcp: 'crm', ...config },
    input: '${input.arguments}',
  };
  const flowOf = (tool: string) => [{ ...step, config: { ...step.config, tool } }];
  return createTestOrchestrator({
    ensembles: [
      { name: 'lookup', flow: flowOf('lookup') } as never,
      { name: 'lookpu', flow: flowOf('lookpu') } as never,
      { name: 'many', flow: [{ foreach: '${input.all}', concurrency: concurrent, steps: flowOf('lookup') }] } as never,
    ],
    mcpServers: { crm: { url: `${server.url}/v1?key=1`, ...options } },
    http: localHttp(),
  });
}

type Started = ReturnType<typeof started>;
const ask = (orchestrator: Started, given: unknown = { id: 1 }, name: 'lookup' | 'lookpu' = 'lookup') =>
  orchestrator.execute(name, { arguments: given });

describe('discovery of a `tools` agent', () => {
  test('a call needs no list: without cacheDiscovery, none is fetched', async () => {
    const orchestrator = started({});
    await ask(orchestrator, { id: 'no integer' });
    expect([gets(), posts()]).toEqual([0, 1]);
    await orchestrator.close();
  });

  test('with cacheDiscovery, the list is fetched once with GET <url>/tools, and used for 300 s', async () => {
    const orchestrator = started();
    for (let i = 0; i < 3; i++) expect((await ask(orchestrator)).status).toBe('completed');
    await orchestrator.clock.advance(299_000);
    await ask(orchestrator);
    expect([gets(), posts()]).toEqual([1, 4]);
    expect(server.requests[0]).toMatchObject({ method: 'GET', target: '/v1/tools?key=1', body: '' });
    await orchestrator.clock.advance(1_000);
    await ask(orchestrator);
    expect([gets(), posts()]).toEqual([2, 5]);
    await orchestrator.close();
  });

  it.each<[number, number]>([
    [60, 60_000],
    [0.5, 500],
    [86_400, 86_400_000],
  ])('cacheTTL: %d s', async (cacheTTL, ms) => {
    const orchestrator = started({ cacheDiscovery: true, cacheTTL });
    await ask(orchestrator);
    await orchestrator.clock.advance(ms - 1);
    await ask(orchestrator);
    expect(gets()).toBe(1);
    await orchestrator.clock.advance(1);
    await ask(orchestrator);
    expect(gets()).toBe(2);
    await orchestrator.close();
  });

  test('cacheTTL: 0 fetches the list for each call', async () => {
    const orchestrator = started({ cacheDiscovery: true, cacheTTL: 0 });
    for (let i = 0; i < 2; i++) await ask(orchestrator);
    expect([gets(), posts()]).toEqual([2, 2]);
    await orchestrator.close();
  });

  test('parallel calls share one request for the list', async () => {
    const orchestrator = started({ cacheDiscovery: true }, {}, 50);
    const all = Array.from({ length: 50 }, (_, i) => i);
    expect((await orchestrator.execute('many', { all, arguments: { id: 1 } })).status).toBe('completed');
    expect([gets(), posts()]).toEqual([1, 50]);
    await orchestrator.close();
  });

  test('the list is fetched with the credentials and a signature of the empty body', async () => {
    const orchestrator = started(
      { cacheDiscovery: true },
      { auth: { type: 'bearer', token: 'fixed-token' }, secret: 'planted-signing-secret' },
    );
    await ask(orchestrator);
    expect(server.requests[0]?.headers).toMatchObject({
      authorization: 'Bearer fixed-token',
      'x-service-signature': expect.stringMatching(/^sha256=[0-9a-f]{64}$/),
      'x-service-timestamp': expect.stringMatching(/^\d{10}$/),
    });
    await orchestrator.close();
  });

  test('arguments that do not fit the inputSchema fail the agent before the call', async () => {
    const orchestrator = started();
    const { error } = await ask(orchestrator, { id: 'seven' });
    expect(error).toMatchObject({
      code: 'INVALID_INPUT',
      details: { issues: [{ path: 'id', message: expect.stringContaining('whole number') }] },
    });
    expect(error?.message).toMatch(
      /^the arguments of tool `lookup` of server `crm` do not fit its inputSchema: id must be/,
    );
    expect(posts()).toBe(0);
    await orchestrator.close();
  });

  test('arguments are sent as they are given, without the defaults of the schema', async () => {
    list = () => ({ tools: [{ ...LOOKUP, inputSchema: { ...LOOKUP.inputSchema, required: [] } }] });
    const orchestrator = started();
    await ask(orchestrator, {});
    expect(JSON.parse(server.requests.at(-1)?.body ?? '').arguments).toEqual({});
    await orchestrator.close();
  });

  test('a tool that the list lacks fails the agent with NOT_FOUND and the nearest name', async () => {
    const orchestrator = started();
    expect((await ask(orchestrator, { id: 1 }, 'lookpu')).error).toMatchObject({
      code: 'NOT_FOUND',
      message: 'tool server `crm` lists no tool `lookpu`; did you mean `lookup`?',
    });
    expect(posts()).toBe(0);
    await orchestrator.close();
  });

  test('a list that was kept refuses nothing: the tool or its schema may be newer', async () => {
    const orchestrator = started();
    await ask(orchestrator);
    list = () => [LOOKUP, { name: 'lookpu' }];
    expect((await ask(orchestrator, {}, 'lookpu')).status).toBe('completed');
    expect(gets()).toBe(2);
    list = () => [{ name: 'lookup', inputSchema: { type: 'object' } }];
    expect((await ask(orchestrator, { id: 'seven' })).status).toBe('completed');
    expect(gets()).toBe(3);
    await orchestrator.close();
  });

  it.each([
    ['a keyword', { type: 'object', $recursiveRef: '#' }],
    ['a reference to another document', { type: 'object', $ref: 'https://schemas.example/a.json' }],
    ['a slow pattern', { type: 'object', properties: { id: { type: 'string', pattern: '^(a+)+$' } } }],
    ['a schema that is none', { type: 7 }],
    ['an endless reference', { $ref: '#' }],
  ])('%s that this library does not check leaves the arguments unchecked', async (_what, inputSchema) => {
    list = () => ({ tools: [{ name: 'lookup', inputSchema }] });
    const orchestrator = started();
    expect((await ask(orchestrator, { id: 1 })).status).toBe('completed');
    await orchestrator.close();
  });

  it.each([[404], [405], [501]])(
    'a server that answers %i lists no tools: the call is made unchecked',
    async (status) => {
      list = reply(status);
      const orchestrator = started();
      for (let i = 0; i < 2; i++) expect((await ask(orchestrator, { id: 'seven' })).status).toBe('completed');
      // An error is never kept.
      expect([gets(), posts()]).toEqual([2, 2]);
      await orchestrator.close();
    },
  );

  it.each<[string, Answer, object]>([
    ['500', reply(500), { status: 500 }],
    ['403', reply(403), { status: 403 }],
    ['no list', () => ({ tool: [] }), { reason: 'invalid-list' }],
    ['a tool without a name', () => [{ description: 'x' }], { reason: 'invalid-list' }],
    ['text', reply(200, '<html>', { 'content-type': 'text/html' }), { reason: 'invalid-list' }],
    [
      '10,001 tools',
      () => Array.from({ length: 10_001 }, (_, i) => ({ name: `t${i}` })),
      { reason: 'too-large', limit: 10_000 },
    ],
    [
      'a million tools',
      () => Array.from({ length: 1_000_000 }, (_, i) => ({ name: `t${i}` })),
      { reason: 'too-large' },
    ],
  ])('%s as a list fails the agent, and is not kept', async (_what, answer, details) => {
    const usual = list;
    list = answer;
    const orchestrator = started();
    expect((await ask(orchestrator)).error).toMatchObject({ code: 'AGENT_FAILED', details });
    expect(posts()).toBe(0);
    list = usual;
    expect((await ask(orchestrator)).status).toBe('completed');
    await orchestrator.close();
  });
});

describe('the port ToolServers', () => {
  const signal = new AbortController().signal;
  const at = { server: 'crm', signal };
  const create = (): { readonly servers: ToolServers; readonly clock: ReturnType<typeof manualClock> } => {
    const clock = manualClock();
    const servers = toolServers({
      servers: { crm: { url: server.url }, erp: { url: `${server.url}/erp` } },
      http: localHttp(),
      clock,
      brand: 'service',
    });
    return { servers, clock };
  };

  test('`list` gives name, description and inputSchema, and keeps the list of each server apart', async () => {
    list = ({ target }) => ({ tools: [{ ...LOOKUP, name: target, secret: 'not kept', inputSchema: undefined }] });
    const { servers } = create();
    expect(servers.names).toEqual(['crm', 'erp']);
    for (let i = 0; i < 2; i++) {
      expect(await servers.list({ ...at, cacheMs: 1000 })).toEqual([
        { name: '/tools', description: 'Finds a customer.' },
      ]);
      expect(await servers.list({ ...at, server: 'erp', cacheMs: 1000 })).toMatchObject([{ name: '/erp/tools' }]);
    }
    expect(gets()).toBe(2);
    await servers.list({ ...at, cacheMs: 0 });
    expect(gets()).toBe(3);
  });

  test('`call` checks the arguments against a tool that the caller has', async () => {
    const { servers } = create();
    const call = { tool: 'lookup', arguments: { id: 'seven' }, idempotencyKey: 'k', signal };
    await expect(servers.call({ server: 'crm' }, call, LOOKUP)).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    expect(await servers.call({ server: 'crm' }, { ...call, arguments: { id: 1 } }, LOOKUP)).toEqual({
      content: 'ok',
      isError: false,
    });
    expect(gets()).toBe(0);
  });

  test('a tool whose name a path can not hold, a server that is unknown, and a signal that has aborted', async () => {
    const { servers } = create();
    const call = { tool: '..', arguments: {}, idempotencyKey: 'k', signal };
    await expect(servers.call({ server: 'crm' }, call)).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    await expect(servers.call({ server: 'toString' }, call)).rejects.toMatchObject({ code: 'NOT_CONFIGURED' });
    await expect(servers.call({ server: 'crm', transport: 'mcp' }, call)).rejects.toMatchObject({
      code: 'NOT_CONFIGURED',
    });
    const reason = new Error('enough');
    await expect(servers.call({ server: 'crm' }, { ...call, signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(server.requests).toEqual([]);
  });

  test('on Workers, where the I/O of a request ends with it, nothing is shared but values', async () => {
    const { navigator } = globalThis;
    Object.defineProperty(globalThis, 'navigator', { value: { userAgent: 'Cloudflare-Workers' }, configurable: true });
    try {
      const { servers } = create();
      const call = { tool: 'lookup', arguments: { id: 1 }, idempotencyKey: 'k', signal };
      await Promise.all([1, 2, 3].map(() => servers.call({ server: 'crm' }, call, { cacheMs: 1000 })));
      expect(gets()).toBe(3);
      await servers.call({ server: 'crm' }, call, { cacheMs: 1000 });
      expect(gets()).toBe(3);
    } finally {
      Object.defineProperty(globalThis, 'navigator', { value: navigator, configurable: true });
    }
  });
});
