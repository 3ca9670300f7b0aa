/** MCP servers made with the official package, on 127.0.0.1: with and without sessions, of the older and of the newer protocol. */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, type EventStore, fromJsonSchema, McpServer } from '@modelcontextprotocol/server';

/** One HTTP request that the server received. */
export interface SeenRequest {
  readonly method: string;
  readonly headers: IncomingMessage['headers'];
  /** The method of its JSON-RPC message. */
  readonly rpc: string | undefined;
  readonly message: {
    readonly id?: string | number;
    readonly params?: { readonly name?: string; readonly _meta?: Record<string, unknown> };
  };
}

export interface ServedMcp {
  readonly url: string;
  readonly seen: readonly SeenRequest[];
  /** What was asked, such as `POST tools/call`. */
  readonly asked: () => readonly string[];
  /** The ids of the sessions that are open. */
  readonly sessions: ReadonlySet<string>;
  forgetSessions(): void;
  close(): Promise<void>;
}

export interface ServeOptions {
  readonly kind: 'sessions' | 'stateless' | 'modern';
  /** Answers are JSON instead of a stream of events. */
  readonly json?: boolean;
  readonly events?: EventStore;
  readonly retryInterval?: number;
  /** Adds the tools of a server. Default: {@link addTools}. */
  readonly tools?: (server: McpServer) => void;
  /** Answers a request itself if it returns true. */
  readonly intercept?: (request: SeenRequest, response: ServerResponse, count: number) => boolean | Promise<boolean>;
}

const NAME = { name: 'test', version: '1.0.0' };

export async function serveMcp(options: ServeOptions): Promise<ServedMcp> {
  const transports = new Map<string, NodeStreamableHTTPServerTransport>();
  const seen: SeenRequest[] = [];
  const create = () => {
    const server = new McpServer(NAME);
    (options.tools ?? addTools)(server);
    return server;
  };
  const modern = toNodeHandler(createMcpHandler(create, { legacy: 'reject' }));

  async function sessionOf(request: SeenRequest): Promise<NodeStreamableHTTPServerTransport | undefined> {
    const id = request.headers['mcp-session-id'];
    if (typeof id === 'string') return transports.get(id);
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: options.kind === 'stateless' ? undefined : () => crypto.randomUUID(),
      onsessioninitialized: (created) => void transports.set(created, transport),
      onsessionclosed: (closed) => void transports.delete(closed),
      enableJsonResponse: options.json ?? false,
      ...(options.events && { eventStore: options.events }),
      ...(options.retryInterval !== undefined && { retryInterval: options.retryInterval }),
    });
    await create().connect(transport);
    return transport;
  }

  const http = createServer(async (incoming, response) => {
    const parts: Buffer[] = [];
    for await (const part of incoming) parts.push(part as Buffer);
    const text = Buffer.concat(parts).toString();
    const message = text === '' ? {} : JSON.parse(text);
    const request: SeenRequest = {
      method: incoming.method ?? '',
      headers: incoming.headers,
      rpc: message.method,
      message,
    };
    seen.push(request);
    if (await options.intercept?.(request, response, seen.length)) return;
    if (options.kind === 'modern') return void modern(incoming, response as never, message);
    const transport = await sessionOf(request);
    if (!transport) return void response.writeHead(404).end('{}');
    await transport.handleRequest(incoming, response, text === '' ? undefined : message);
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    seen,
    asked: () => seen.map(({ method, rpc, headers }) => `${method} ${rpc ?? headers['last-event-id'] ?? ''}`.trim()),
    get sessions() {
      return new Set(transports.keys());
    },
    forgetSessions: () => transports.clear(),
    close: () =>
      new Promise((resolve) => {
        http.close(() => resolve());
        http.closeAllConnections();
      }),
  };
}

const WORDS = fromJsonSchema<{ words: string }>({
  type: 'object',
  properties: { words: { type: 'string' } },
  required: ['words'],
});
const COUNT = fromJsonSchema<{ count: number }>({
  type: 'object',
  properties: { count: { type: 'integer' } },
  required: ['count'],
});

/** `echo` returns text, `count` structured content, `fail` an error, `slow` waits until its request is cancelled. */
export function addTools(server: McpServer): void {
  server.registerTool('echo', { description: 'Returns the words.', inputSchema: WORDS }, ({ words }) => ({
    content: [{ type: 'text', text: words }],
  }));
  server.registerTool('count', { inputSchema: WORDS, outputSchema: COUNT }, ({ words }) => ({
    content: [{ type: 'text', text: 'see the structured content' }],
    structuredContent: { count: words.split(' ').length },
  }));
  server.registerTool('fail', { inputSchema: WORDS }, ({ words }) => ({
    content: [{ type: 'text', text: words }],
    isError: true,
  }));
  server.registerTool('slow', { inputSchema: WORDS }, async (_, context) => {
    await new Promise((resolve) => {
      context.mcpReq.signal.addEventListener('abort', resolve, { once: true });
    });
    return { content: [] };
  });
}
