/** Who shares a session with an MCP server, and what happens when the server forgets it. */

import { describe, expect, it } from 'vitest';
import { callOf, connect, serve } from './access.ts';

describe('calls that share a session', () => {
  it('parallel first calls connect once', async () => {
    const served = await serve({ kind: 'sessions' });
    const server = connect(served.url);
    const answers = await Promise.all(['a', 'b', 'c'].map((words) => server.callTool(callOf('echo', words))));
    expect(answers.map(({ content }) => content)).toEqual(['a', 'b', 'c'].map((text) => [{ type: 'text', text }]));
    expect(served.asked().filter((asked) => asked === 'POST initialize')).toHaveLength(1);
    expect(served.sessions.size).toBe(1);
  });

  it('a caller that leaves while the connection is made does not stop the others', async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const served = await serve({
      kind: 'sessions',
      intercept: async ({ rpc }) => {
        if (rpc === 'initialize') await held;
        return false;
      },
    });
    const server = connect(served.url);
    const caller = new AbortController();
    const first = expect(server.callTool(callOf('echo', 'a', { signal: caller.signal }))).rejects.toBe('enough');
    const second = server.callTool(callOf('echo', 'b'));
    await expect.poll(served.asked).toContain('POST initialize');
    caller.abort('enough');
    await first;
    release();
    expect((await second).content).toEqual([{ type: 'text', text: 'b' }]);
    expect(served.sessions.size).toBe(1);
  });

  it('a connection that nobody waits for any more is given up, and the next call makes another', async () => {
    const served = await serve({
      kind: 'sessions',
      intercept: ({ rpc }) =>
        rpc === 'initialize' && served.asked().filter((asked) => asked === 'POST initialize').length === 1,
    });
    const server = connect(served.url);
    await expect(server.callTool(callOf('echo', 'a', { timeoutMs: 300 }))).rejects.toMatchObject({ code: 'TIMEOUT' });
    expect((await server.callTool(callOf('echo', 'b'))).isError).toBe(false);
  });

  it.each([404, 400])(
    'a session that the server forgot is replaced, and the call is sent once more: %i',
    async (status) => {
      const known = (id: unknown) => id === undefined || served.sessions.has(String(id));
      const served = await serve({
        kind: 'sessions',
        intercept: ({ headers }, response) =>
          !known(headers['mcp-session-id']) && Boolean(response.writeHead(status).end()),
      });
      const server = connect(served.url);
      await server.callTool(callOf('echo'));
      served.forgetSessions();
      const answers = await Promise.all(['a', 'b'].map((words) => server.callTool(callOf('echo', words))));
      expect(answers.map(({ isError }) => isError)).toEqual([false, false]);
      expect(served.sessions.size).toBe(1);
    },
  );

  it('a server that knows none of its sessions gets the call twice, and no more', async () => {
    const served = await serve({
      kind: 'sessions',
      intercept: ({ rpc }, response) => rpc === 'tools/call' && Boolean(response.writeHead(404).end()),
    });
    await expect(connect(served.url).callTool(callOf('echo'))).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable: false,
      details: { status: 404 },
    });
    expect(served.asked().filter((asked) => asked === 'POST tools/call')).toHaveLength(2);
  });

  it('`close` ends the session at the server', async () => {
    const served = await serve({ kind: 'sessions' });
    const server = connect(served.url);
    await server.callTool(callOf('echo'));
    await server.close?.();
    expect(served.asked().at(-1)).toBe('DELETE');
    expect(served.sessions.size).toBe(0);
  });

  it('opens no stream for messages that belong to no call', async () => {
    const served = await serve({ kind: 'sessions' });
    await connect(served.url).callTool(callOf('echo'));
    expect(served.seen.filter(({ method }) => method === 'GET')).toEqual([]);
  });
});

describe('calls with a session of their own, as on Workers', () => {
  it('each call connects and ends its session', async () => {
    const served = await serve({ kind: 'sessions' });
    const server = connect(served.url, {}, { shareSessions: false });
    await Promise.all([server.callTool(callOf('echo', 'a')), server.callTool(callOf('echo', 'b'))]);
    expect(served.asked().filter((asked) => asked === 'POST initialize')).toHaveLength(2);
    expect(served.asked().filter((asked) => asked === 'DELETE')).toHaveLength(2);
    expect(served.sessions.size).toBe(0);
  });

  it('a server that does not answer the end of its session does not change the result of the call', async () => {
    const served = await serve({ kind: 'sessions', intercept: ({ method }) => method === 'DELETE' });
    const server = connect(served.url, {}, { shareSessions: false });
    expect((await server.callTool(callOf('echo', 'a', { timeoutMs: 1500 }))).isError).toBe(false);
  });

  it('only the first call asks for the version of the server', async () => {
    const served = await serve({ kind: 'sessions' });
    const server = connect(served.url, {}, { shareSessions: false });
    for (let call = 0; call < 3; call++) await server.callTool(callOf('echo'));
    expect(served.asked().filter((asked) => asked === 'POST server/discover')).toHaveLength(1);
  });

  it('what a tool returns is checked with the list of an earlier call', async () => {
    let isListed = false;
    const served = await serve({
      kind: 'sessions',
      json: true,
      intercept: ({ rpc, message }, response) => {
        if (rpc !== 'tools/call') return false;
        const result = { content: [], structuredContent: { count: isListed ? 'two' : 2 } };
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }));
        return true;
      },
    });
    const server = connect(served.url, {}, { shareSessions: false });
    await server.listTools(callOf(''));
    expect((await server.callTool(callOf('count'))).content).toEqual({ count: 2 });
    isListed = true;
    await expect(server.callTool(callOf('count'))).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      message: expect.stringContaining("does not match the tool's output schema"),
      retryable: false,
    });
  });
});
