/** Real MCP servers, made with the official package: tools are listed and called, over JSON and streams, with and without sessions. */

import { describe, expect, it } from 'vitest';
import { callOf, connect, serve } from './access.ts';
import type { ServeOptions } from './mcp-servers.ts';

const SERVERS: readonly [string, ServeOptions][] = [
  ['with sessions, over streams', { kind: 'sessions' }],
  ['with sessions, over JSON', { kind: 'sessions', json: true }],
  ['without sessions, over streams', { kind: 'stateless' }],
  ['without sessions, over JSON', { kind: 'stateless', json: true }],
  ['of the protocol of 2026', { kind: 'modern' }],
];

describe.each(SERVERS)('a server %s', (_, options) => {
  it('lists its tools with their schemas', async () => {
    const { url } = await serve(options);
    const tools = await connect(url).listTools(callOf(''));
    expect(tools.map(({ name }) => name)).toEqual(['echo', 'count', 'fail', 'slow']);
    expect(tools[0]).toMatchObject({
      description: 'Returns the words.',
      inputSchema: { type: 'object', properties: { words: { type: 'string' } }, required: ['words'] },
    });
  });

  it('answers with structured content, otherwise with the content blocks', async () => {
    const server = connect((await serve(options)).url);
    expect(await server.callTool(callOf('count'))).toEqual({ content: { count: 2 }, isError: false });
    expect(await server.callTool(callOf('echo'))).toEqual({
      content: [{ type: 'text', text: 'one two' }],
      isError: false,
    });
  });

  it('an error of the tool is an answer', async () => {
    const server = connect((await serve(options)).url);
    expect(await server.callTool(callOf('fail', 'no such city'))).toEqual({
      content: [{ type: 'text', text: 'no such city' }],
      isError: true,
    });
  });

  it('a call ends at its deadline, and the server is told', async () => {
    const served = await serve(options);
    const server = connect(served.url);
    await server.listTools(callOf(''));
    await expect(server.callTool(callOf('slow', '', { timeoutMs: 300 }))).rejects.toMatchObject({
      code: 'TIMEOUT',
      retryable: true,
      details: { timeoutMs: 300 },
    });
    if (options.kind === 'sessions') await expect.poll(served.asked).toContain('POST notifications/cancelled');
  });

  it('a cancelled call rejects with the reason of its signal', async () => {
    const served = await serve(options);
    const caller = new AbortController();
    const call = connect(served.url).callTool(callOf('slow', '', { signal: caller.signal }));
    const rejected = expect(call).rejects.toBe('enough');
    await expect.poll(served.asked).toContain('POST tools/call');
    caller.abort('enough');
    await rejected;
  });

  it('sends the idempotency key as a header and in `_meta`', async () => {
    const served = await serve(options);
    await connect(served.url).callTool(callOf('echo'));
    const call = served.seen.find(({ rpc }) => rpc === 'tools/call');
    expect(call?.headers['idempotency-key']).toBe('key-1');
    expect(call?.message.params?._meta).toMatchObject({ idempotencyKey: 'key-1' });
    expect(Object.keys(call?.headers ?? {}).filter((name) => /^x-/.test(name))).toEqual([]);
  });
});
