/**
 * Runs a bundle of `mcp-worker.mjs` on workerd without compatibility flags, against MCP servers made with the official package. It
 * prints as JSON what each kind of server came to. `node serve-mcp-worker.mjs <bundle>`
 */

import { createServer } from 'node:http';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, fromJsonSchema, McpServer } from '@modelcontextprotocol/server';
import { Miniflare } from 'miniflare';

const schema = (name, type) =>
  fromJsonSchema({ type: 'object', properties: { [name]: { type } }, required: [name], additionalProperties: false });

function createTools() {
  const server = new McpServer({ name: 'test', version: '1.0.0' });
  const inputSchema = schema('words', 'string');
  server.registerTool('echo', { inputSchema }, ({ words }) => ({ content: [{ type: 'text', text: words }] }));
  server.registerTool('count', { inputSchema, outputSchema: schema('count', 'integer') }, ({ words }) => ({
    content: [],
    structuredContent: { count: words.split(' ').length },
  }));
  return server;
}

/** @returns handlers by kind; `sessions` counts those that are open */
function serverOf(kind, sessions) {
  if (kind === 'modern') return toNodeHandler(createMcpHandler(createTools, { legacy: 'reject' }));
  return async (request, response) => {
    const id = request.headers['mcp-session-id'];
    let transport = sessions.get(id);
    if (id !== undefined && !transport) return response.writeHead(404).end();
    if (!transport) {
      transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: () => crypto.randomUUID(),
        enableJsonResponse: kind === 'sessions, JSON',
        onsessioninitialized: (created) => void sessions.set(created, transport),
        onsessionclosed: (closed) => void sessions.delete(closed),
      });
      await createTools().connect(transport);
    }
    return transport.handleRequest(request, response);
  };
}

async function outcomeOf(kind) {
  const sessions = new Map();
  const server = createServer(serverOf(kind, sessions));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const miniflare = new Miniflare({
    modules: true,
    scriptPath: process.argv[2],
    compatibilityDate: '2026-07-01',
    compatibilityFlags: [],
    bindings: { MCP_URL: `http://127.0.0.1:${server.address().port}/mcp` },
  });
  const ask = async (words) => {
    const response = await miniflare.dispatchFetch(`http://worker.example/?words=${encodeURIComponent(words)}`);
    const text = await response.text();
    if (response.status !== 200) throw new Error(text);
    return JSON.parse(text);
  };
  try {
    const runs = [await ask('a b'), await ask('a'), ...(await Promise.all([ask('a b c'), ask('d')]))];
    return { runs, openSessions: sessions.size };
  } finally {
    await miniflare.dispose();
    server.closeAllConnections();
    server.close();
  }
}

const outcomes = {};
for (const kind of ['sessions', 'sessions, JSON', 'modern']) outcomes[kind] = await outcomeOf(kind);
console.log(JSON.stringify(outcomes));
