/** What the adapter gets for a server in these tests, and a call with defaults. After each test, everything is closed. */

import { afterEach } from 'vitest';
import { fetchHttp } from '../../src/adapters/http/fetch-http.ts';
import { type McpClientOptions, mcpClient } from '../../src/adapters/mcp/mcp-client.ts';
import type { ToolCall, ToolServer, ToolServerAccess } from '../../src/engine/operation/tool-server.port.ts';
import { type ServedMcp, type ServeOptions, serveMcp } from './mcp-servers.ts';

export const LOCAL = fetchHttp({ allow: ['127.0.0.0/8'] });

const open: { close?: () => Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close?.();
});

export async function serve(options: ServeOptions): Promise<ServedMcp> {
  const served = await serveMcp(options);
  open.push(served);
  return served;
}

export function connect(
  url: string,
  access: Partial<ToolServerAccess> = {},
  options: McpClientOptions = {},
): ToolServer {
  const server = mcpClient(options).connect({
    name: 'test',
    url,
    http: LOCAL,
    authorize: async () => ({}),
    sign: () => ({}),
    ...access,
  });
  open.push(server);
  return server;
}

export function callOf(tool: string, words = 'one two', call: Partial<ToolCall> = {}): ToolCall {
  return {
    tool,
    arguments: { words },
    timeoutMs: 20_000,
    idempotencyKey: 'key-1',
    signal: new AbortController().signal,
    ...call,
  };
}
