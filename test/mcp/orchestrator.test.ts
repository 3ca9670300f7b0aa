/** An ensemble with a `tools` agent calls a real MCP server. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createOrchestrator, fetchHttp } from 'ensemble-orchestrator';
import { mcpClient } from 'ensemble-orchestrator/mcp';
import { afterEach, describe, expect, it } from 'vitest';
import { serve } from './access.ts';

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

const ENSEMBLE = {
  name: 'words',
  inputs: { words: { type: 'string' } },
  flow: [
    {
      agent: 'counter',
      operation: 'tools',
      config: { mcp: 'text', tool: 'count', cacheDiscovery: true },
      input: { words: '${input.words}' },
    },
  ],
  outputs: { count: '${counter.output.content.count}', failed: '${counter.output.isError}' },
} as const;

describe('a `tools` agent with `transport: mcp`', () => {
  it('calls the tool, and the flow reads its structured content', async () => {
    const served = await serve({ kind: 'sessions' });
    const orchestrator = createOrchestrator({
      ensembles: [ENSEMBLE],
      http: fetchHttp({ allow: ['127.0.0.0/8'] }),
      mcp: mcpClient(),
      mcpServers: { text: { url: served.url, transport: 'mcp', secret: 'a-shared-secret' } },
    });
    open.push(orchestrator);
    const runs = await Promise.all(['a b c', 'd'].map((words) => orchestrator.execute('words', { words })));
    expect(runs.map(({ status, output }) => ({ status, output }))).toEqual([
      { status: 'completed', output: { count: 3, failed: false } },
      { status: 'completed', output: { count: 1, failed: false } },
    ]);
    expect(served.asked().filter((asked) => asked === 'POST initialize')).toHaveLength(1);
    expect(served.asked().filter((asked) => asked === 'POST tools/list')).toHaveLength(1);
    for (const { headers } of served.seen) expect(headers['x-service-signature']).toMatch(/^sha256=/);
    await orchestrator.close();
    expect(served.sessions.size).toBe(0);
  });

  it('authorizes with OAuth client credentials, and renews a token that the server refuses', async () => {
    let issued = 0;
    const tokens = createServer((_, response) => {
      issued += 1;
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ access_token: `token-${issued}`, token_type: 'Bearer', expires_in: 3600 }));
    });
    await new Promise<void>((resolve) => tokens.listen(0, '127.0.0.1', resolve));
    open.push({ close: () => tokens.close() });
    let valid = 'token-1';
    const served = await serve({
      kind: 'sessions',
      intercept: ({ headers }, response) =>
        headers.authorization !== `Bearer ${valid}` && Boolean(response.writeHead(401).end()),
    });
    const orchestrator = createOrchestrator({
      ensembles: [ENSEMBLE],
      http: fetchHttp({ allow: ['127.0.0.0/8'] }),
      mcp: mcpClient(),
      mcpServers: {
        text: {
          url: served.url,
          transport: 'mcp',
          auth: {
            type: 'oauth',
            clientId: 'me',
            clientSecret: 'client-secret',
            tokenUrl: `http://127.0.0.1:${(tokens.address() as AddressInfo).port}/token`,
          },
        },
      },
    });
    open.push(orchestrator);
    expect((await orchestrator.execute('words', { words: 'a b' })).output).toEqual({ count: 2, failed: false });
    valid = 'token-2';
    expect((await orchestrator.execute('words', { words: 'a' })).output).toEqual({ count: 1, failed: false });
    expect(issued).toBe(2);
  });
});
