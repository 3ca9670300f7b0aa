/** MCP servers that break off, lie, refuse or answer without end: each call ends with a code, in time, and without a secret. */

import type { ServerResponse } from 'node:http';
import { type EventStore, inputRequired } from '@modelcontextprotocol/server';
import { describe, expect, it } from 'vitest';
import type { HttpClient } from '../../src/engine/host/http.port.ts';
import { callOf, connect, LOCAL, serve } from './access.ts';
import type { ServeOptions } from './mcp-servers.ts';

type Message = Parameters<EventStore['storeEvent']>[1];

/** Keeps the events of all streams, as a server does that lets its clients resume. */
function eventStore(): EventStore {
  const events: { id: string; stream: string; message: Message }[] = [];
  return {
    async storeEvent(stream, message) {
      const id = `event-${events.length}`;
      events.push({ id, stream, message });
      return id;
    },
    async replayEventsAfter(last, { send }) {
      const from = events.findIndex(({ id }) => id === last);
      const stream = events[from]?.stream ?? '';
      for (const { id, message } of events.slice(from + 1).filter((event) => event.stream === stream)) {
        if (Object.keys(message).length > 0) await send(id, message);
      }
      return stream;
    },
  };
}

const json = (response: ServerResponse, value: unknown, status = 200) =>
  Boolean(response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value)));

const stream = (response: ServerResponse, text: string) =>
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write(text);

describe('a stream that breaks', () => {
  it('is resumed after the last event', async () => {
    let calls = 0;
    const served = await serve({
      kind: 'sessions',
      events: eventStore(),
      retryInterval: 10,
      tools: (server) =>
        server.registerTool('job', {}, async (context) => {
          calls += 1;
          setTimeout(() => context.http?.closeSSE?.(), 20);
          await new Promise((resolve) => setTimeout(resolve, 200));
          return { content: [{ type: 'text', text: 'done' }] };
        }),
    });
    const server = connect(served.url);
    expect((await server.callTool(callOf('job'))).content).toEqual([{ type: 'text', text: 'done' }]);
    expect(served.asked().filter((asked) => asked.startsWith('GET event-'))).not.toEqual([]);
    expect(calls).toBe(1);
  });

  it('is resumed when the connection is destroyed', async () => {
    const served = await serve({
      kind: 'sessions',
      intercept({ rpc, method, headers }, response) {
        if (rpc === 'tools/call') {
          stream(response, 'id: e-1\nretry: 10\ndata: \n\n');
          setTimeout(() => response.destroy(), 20);
        }
        if (method === 'GET') {
          const result = { content: [{ type: 'text', text: `after ${headers['last-event-id']}` }] };
          stream(response, `id: e-2\ndata: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result })}\n\n`);
          response.end();
        }
        return rpc === 'tools/call' || method === 'GET';
      },
    });
    const server = connect(served.url);
    expect((await server.callTool(callOf('echo'))).content).toEqual([{ type: 'text', text: 'after e-1' }]);
  });

  it('is given up at once when the server does not know it any more', async () => {
    const served = await serve({
      kind: 'sessions',
      intercept({ rpc, method }, response) {
        if (rpc === 'tools/call') {
          stream(response, 'id: e-1\nretry: 1\ndata: \n\n');
          response.end();
        }
        if (method === 'GET') response.writeHead(404).end();
        return rpc === 'tools/call' || method === 'GET';
      },
    });
    const server = connect(served.url);
    await expect(server.callTool(callOf('echo'))).rejects.toMatchObject({ details: { reason: 'incomplete' } });
    expect(served.seen.filter(({ method }) => method === 'GET')).toHaveLength(1);
  });

  it('is given up after five resumptions', async () => {
    const served = await serve({
      kind: 'sessions',
      intercept({ rpc, method }, response) {
        if (rpc !== 'tools/call' && method !== 'GET') return false;
        stream(response, 'id: e-1\nretry: 1\ndata: \n\n');
        response.end();
        return true;
      },
    });
    const server = connect(served.url);
    await expect(server.callTool(callOf('echo'))).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      details: { reason: 'incomplete' },
      retryable: true,
    });
    expect(served.seen.filter(({ method }) => method === 'GET')).toHaveLength(5);
  });

  it('without the number of an event, the call fails at once', async () => {
    const served = await serve({
      kind: 'sessions',
      intercept({ rpc }, response) {
        if (rpc !== 'tools/call') return false;
        stream(response, ': nothing yet\n\n');
        setTimeout(() => response.destroy(), 20);
        return true;
      },
    });
    const wholeOnly: HttpClient = { send: ({ onChunk: _, ...request }) => LOCAL.send(request) };
    for (const http of [LOCAL, wholeOnly]) {
      const server = connect(served.url, { http });
      await expect(server.callTool(callOf('echo'))).rejects.toMatchObject({ code: 'AGENT_FAILED', retryable: true });
    }
  });

  it('a stream that stays open after the result does not hold the call, and is closed', async () => {
    let closed = 0;
    const served = await serve({
      kind: 'sessions',
      intercept({ rpc, message }, response) {
        if (rpc !== 'tools/call') return false;
        response.on('close', () => {
          closed += 1;
        });
        const result = { content: [] };
        stream(response, `data: ${JSON.stringify({ jsonrpc: '2.0', id: message.id, result })}\n\n`);
        return true;
      },
    });
    const server = connect(served.url);
    expect((await server.callTool(callOf('echo'))).content).toEqual([]);
    await expect.poll(() => closed).toBe(1);
  });
});

describe('a server that lies', () => {
  const LIES: readonly [string, (response: ServerResponse) => unknown, object][] = [
    [
      'another id',
      (response) => json(response, { jsonrpc: '2.0', id: 77, result: {} }),
      { details: { reason: 'incomplete' } },
    ],
    [
      'another id in a stream',
      (response) => {
        stream(response, 'data: {"jsonrpc":"2.0","id":77,"result":{}}\n\n');
        response.end();
      },
      { details: { reason: 'incomplete' } },
    ],
    ['no answer', (response) => response.writeHead(202).end(), { details: { reason: 'incomplete' } }],
    ['a page', (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>'), { retryable: false }],
    [
      'broken JSON',
      (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{"jso'),
      { retryable: false },
    ],
    ['JSON that is no message', (response) => json(response, [1, 2]), { retryable: false }],
    [
      'a redirect',
      (response) => response.writeHead(307, { location: '/other' }).end(),
      { details: { status: 307 }, retryable: false },
    ],
    [
      'more than 10 MiB',
      (response) => json(response, { jsonrpc: '2.0', id: 1, result: 'x'.repeat(11_000_000) }),
      { details: { reason: 'too-large' }, retryable: false },
    ],
  ];
  it.each(LIES)('%s: the call fails', async (_, answer, expected) => {
    const served = await serve({
      kind: 'sessions',
      json: true,
      intercept({ rpc }, response) {
        if (rpc === 'tools/call') answer(response);
        return rpc === 'tools/call';
      },
    });
    await expect(connect(served.url).callTool(callOf('echo'))).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      ...expected,
    });
    expect(served.asked().filter((asked) => asked === 'POST tools/call')).toHaveLength(1);
  });

  it('a wrong result is refused: a tool that returns something else than it lists', async () => {
    const served = await serve({
      kind: 'sessions',
      json: true,
      intercept: ({ rpc, message }, response) =>
        rpc === 'tools/call' && json(response, { jsonrpc: '2.0', id: message.id, result: { content: 'text' } }),
    });
    await expect(connect(served.url).callTool(callOf('echo'))).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable: false,
    });
  });
});

describe('a server that refuses', () => {
  it.each([
    [400, false],
    [403, false],
    [405, false],
    [429, true],
    [503, true],
  ])('status %i: retryable is %s', async (status, retryable) => {
    const served = await serve({
      kind: 'stateless',
      intercept: ({ rpc }, response) =>
        rpc === 'tools/call' && Boolean(response.writeHead(status, { 'retry-after': '7' }).end('not now')),
    });
    await expect(connect(served.url).callTool(callOf('echo'))).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable,
      details: { status, retryAfterMs: 7000, body: 'not now' },
    });
  });

  it('while it connects, too', async () => {
    const served = await serve({
      kind: 'sessions',
      intercept: (_, response) => Boolean(response.writeHead(503, { 'retry-after': '7' }).end()),
    });
    await expect(connect(served.url).callTool(callOf('echo'))).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable: true,
      details: { status: 503, retryAfterMs: 7000 },
    });
  });

  it('an unknown tool and wrong arguments are not tried again', async () => {
    const server = connect((await serve({ kind: 'modern' })).url);
    await expect(server.callTool(callOf('nobody'))).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable: false,
      details: { reason: 'mcp-error' },
    });
  });

  it('an internal error of the server can be tried again', async () => {
    const error = { code: -32603, message: 'the database is away' };
    const served = await serve({
      kind: 'sessions',
      json: true,
      intercept: ({ rpc, message }, response) =>
        rpc === 'tools/call' && json(response, { jsonrpc: '2.0', id: message.id, error }),
    });
    await expect(connect(served.url).callTool(callOf('echo'))).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      message: 'tool server `test` refused the call: the database is away (-32603)',
      retryable: true,
    });
  });

  it('a server that is not there: the call fails with the error of the exchange', async () => {
    const served = await serve({ kind: 'sessions' });
    await served.close();
    await expect(connect(served.url).callTool(callOf('echo'))).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable: true,
      details: { reason: 'connection', code: 'ECONNREFUSED' },
    });
  });

  it('an address that the HTTP client refuses is not reached', async () => {
    await expect(connect('http://10.0.0.1/mcp').callTool(callOf('echo'))).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      retryable: false,
    });
  });

  it('what it asks of the client during a call is refused', async () => {
    const served = await serve({
      kind: 'sessions',
      tools: (server) =>
        server.registerTool('ask', {}, async (context) => {
          await context.mcpReq.elicitInput({ message: 'Who?', requestedSchema: { type: 'object', properties: {} } });
          return { content: [] };
        }),
    });
    const answer = await connect(served.url).callTool(callOf('ask'));
    expect(answer.isError).toBe(true);
  });
});

it('input that a tool asks for without a look at what the client can do is refused', async () => {
  const result = { resultType: 'input_required', inputRequests: { who: { method: 'roots/list', params: {} } } };
  const served = await serve({
    kind: 'modern',
    intercept: ({ rpc, message }, response) =>
      rpc === 'tools/call' && json(response, { jsonrpc: '2.0', id: message.id, result }),
  });
  await expect(connect(served.url).callTool(callOf('echo'))).rejects.toMatchObject({
    code: 'AGENT_FAILED',
    details: { reason: 'unsupported-result-type' },
    retryable: false,
  });
});

it('input that a tool asks for in its answer is refused', async () => {
  const served = await serve({
    kind: 'modern',
    tools: (server) =>
      server.registerTool('ask', {}, () =>
        inputRequired({
          inputRequests: {
            who: inputRequired.elicit({ message: 'Who?', requestedSchema: { type: 'object', properties: {} } }),
          },
        }),
      ),
  });
  await expect(connect(served.url).callTool(callOf('ask'))).rejects.toMatchObject({
    code: 'AGENT_FAILED',
    retryable: false,
  });
});

describe('a list of tools', () => {
  const named = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => ({ name: `tool-${from + i}`, inputSchema: { type: 'object' } }));

  it('has the tools of all pages', async () => {
    const served = await serve({
      kind: 'sessions',
      json: true,
      intercept({ rpc, message }, response) {
        if (rpc !== 'tools/list') return false;
        const from = Number((message.params as { cursor?: string } | undefined)?.cursor ?? 0);
        const more = from + 10 < 1000 ? { nextCursor: String(from + 10) } : {};
        return json(response, { jsonrpc: '2.0', id: message.id, result: { tools: named(from, 10), ...more } });
      },
    });
    const tools = await connect(served.url).listTools(callOf(''));
    expect(tools.map(({ name }) => name)).toEqual(named(0, 1000).map(({ name }) => name));
  });

  it('without end is refused', async () => {
    let page = 0;
    const served = await serve({
      kind: 'sessions',
      json: true,
      intercept({ rpc, message }, response) {
        if (rpc !== 'tools/list') return false;
        page += 1;
        const result = { tools: [{ ...named(page, 1)[0], description: 'x'.repeat(100_000) }], nextCursor: `${page}` };
        return json(response, { jsonrpc: '2.0', id: message.id, result });
      },
    });
    await expect(connect(served.url).listTools(callOf(''))).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable: false,
    });
    expect(page).toBeLessThan(120);
  });

  it('of a server without tools is empty', async () => {
    const served = await serve({ kind: 'sessions', tools: () => {} });
    expect(await connect(served.url).listTools(callOf(''))).toEqual([]);
  });
});

describe('a server that asks', () => {
  const ask = (id: string) => `data: ${JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' })}\n\n`;
  const result = (id: unknown) => ({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'done' }] } });

  it.each(['sessions', 'stateless'] as const)('is answered within the call (%s)', async (kind) => {
    const served = await serve({
      kind,
      async intercept({ rpc, message }, response) {
        if (rpc !== 'tools/call') return false;
        stream(response, [1, 2, 3, 4].map((n) => ask(`ask-${n}`)).join(''));
        await expect
          .poll(() => served.seen.filter(({ message: sent }) => `${sent.id}`.startsWith('ask-')).length)
          .toBe(4);
        response.end(`data: ${JSON.stringify(result(message.id))}\n\n`);
        return true;
      },
    });
    const answer = await connect(served.url).callTool(callOf('echo'));
    expect(answer.content).toEqual([{ type: 'text', text: 'done' }]);
  });

  it.each([
    ['as events', (asks: readonly string[]) => asks.join('')],
    ['as events whose lines end with CR', (asks: readonly string[]) => asks.join('').replaceAll('\n', '\r')],
  ])('for more than a few things ends the call, and nothing is answered after that (%s)', async (_, write) => {
    const served = await serve({
      kind: 'sessions',
      intercept({ rpc }, response) {
        if (rpc !== 'tools/call') return false;
        stream(response, write(Array.from({ length: 60 }, (_, n) => ask(`ask-${n}`))));
        return true;
      },
    });
    const server = connect(served.url);
    await expect(server.callTool(callOf('echo'))).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      message: expect.stringContaining('requests of its own within one call'),
      details: { reason: 'too-many-requests' },
      retryable: false,
    });
    const answered = () => served.seen.filter(({ message }) => `${message.id}`.startsWith('ask-')).length;
    const count = answered();
    expect(count).toBeLessThanOrEqual(32);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(answered()).toBe(count);
  });

  it('for more than a few things in a list ends the call', async () => {
    const served = await serve({
      kind: 'sessions',
      intercept({ rpc }, response) {
        if (rpc !== 'tools/call') return false;
        return json(
          response,
          Array.from({ length: 60 }, (_, n) => ({ jsonrpc: '2.0', id: `ask-${n}`, method: 'ping' })),
        );
      },
    });
    await expect(connect(served.url).callTool(callOf('echo'))).rejects.toMatchObject({
      details: { reason: 'too-many-requests' },
    });
    expect(served.seen.filter(({ message }) => `${message.id}`.startsWith('ask-'))).toEqual([]);
  });
});

describe('a stream that breaks again', () => {
  /** Breaks `broken` resumptions before their first event, then answers. */
  const breaking = (broken: number) => {
    let resumed = 0;
    return serve({
      kind: 'sessions',
      intercept({ rpc, method }, response) {
        if (rpc === 'tools/call') {
          stream(response, 'id: e-1\nretry: 10\ndata: \n\n');
          setTimeout(() => response.destroy(), 20);
          return true;
        }
        if (method !== 'GET') return false;
        if (++resumed <= broken) {
          stream(response, ': working\n\n');
          setTimeout(() => response.destroy(), 5);
          return true;
        }
        const result = { content: [{ type: 'text', text: `after ${resumed}` }] };
        stream(response, `id: e-2\ndata: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result })}\n\n`);
        response.end();
        return true;
      },
    });
  };

  it('before its first event is resumed up to five times in a row', async () => {
    const served = await breaking(4);
    const { content } = await connect(served.url).callTool(callOf('echo'));
    expect(content).toEqual([{ type: 'text', text: 'after 5' }]);
    expect(served.asked().filter((asked) => asked.startsWith('GET e-1'))).toHaveLength(5);
  });

  it('is given up after five times in a row without an event', async () => {
    const served = await breaking(100);
    await expect(connect(served.url).callTool(callOf('echo'))).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable: true,
    });
    expect(served.asked().filter((asked) => asked.startsWith('GET e-1'))).toHaveLength(5);
  });
});

describe('a server of another form', () => {
  it.each([
    ['modern', 'sessions'],
    ['sessions', 'modern'],
    ['modern', 'stateless'],
    ['stateless', 'modern'],
  ] as const)('that was %s and is %s now is asked again for its form, and the call succeeds', async (before, after) => {
    const options: { -readonly [K in keyof ServeOptions]: ServeOptions[K] } = { kind: before };
    const served = await serve(options);
    for (const shareSessions of [true, false]) {
      options.kind = before;
      const server = connect(served.url, {}, { shareSessions });
      expect((await server.callTool(callOf('echo'))).isError).toBe(false);
      expect((await server.callTool(callOf('echo'))).isError).toBe(false);
      options.kind = after;
      served.forgetSessions();
      expect((await server.callTool(callOf('echo', 'now'))).content).toEqual([{ type: 'text', text: 'now' }]);
    }
  });

  it('that never answers the question for its form is asked in the older one', async () => {
    const served = await serve({ kind: 'sessions', intercept: ({ rpc }) => rpc === 'server/discover' });
    const { content } = await connect(served.url).callTool(callOf('echo', 'hello', { timeoutMs: 1000 }));
    expect(content).toEqual([{ type: 'text', text: 'hello' }]);
  });

  it.each(['initialize', 'tools/call'])(
    'that refuses `%s` with 403 and asks for another scope: the error has the status',
    async (at) => {
      const served = await serve({
        kind: 'sessions',
        intercept({ rpc }, response) {
          if (rpc !== at) return false;
          response.writeHead(403, { 'www-authenticate': 'Bearer error="insufficient_scope", scope="tools"' }).end('no');
          return true;
        },
      });
      await expect(connect(served.url).callTool(callOf('echo'))).rejects.toMatchObject({
        message: expect.stringContaining('answered 403'),
        details: { status: 403 },
      });
    },
  );
});
