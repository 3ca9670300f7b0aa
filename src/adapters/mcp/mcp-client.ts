/** The port `McpClient` over the package `@modelcontextprotocol/client`: streamable HTTP, through the guarded HTTP client. */

import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import { flag, readOptions } from '../../engine/base/read-options.ts';
import type {
  McpClient,
  ToolAnswer,
  ToolCall,
  ToolDescription,
  ToolServer,
  ToolServerAccess,
} from '../../engine/operation/tool-server.port.ts';
import { type CallScope, callScope } from './call-scope.ts';
import { type Connection, openConnection, type ServerMemory } from './connection.ts';
import { needsNewConnection, toFailure } from './failure.ts';
import { type ClientPackage, loadClientPackage } from './load-client-package.ts';
import { sharedConnection } from './shared-connection.ts';

export interface McpClientOptions {
  /**
   * Whether the calls of this process share one session for each server. Otherwise each call makes a connection of its own and closes
   * it. Default: true, and false on Workers, where requests can't share a connection.
   */
  readonly shareSessions?: boolean | undefined;
}

/**
 * Connects to real MCP servers: the option `mcp` of `createOrchestrator`. It needs the package `@modelcontextprotocol/client`, which it
 * loads with the first call.
 *
 * The content of an answer is the tool's structured content. A tool without it answers with a list of content blocks, such as
 * `[{ type: 'text', text: '...' }]`.
 *
 * @example
 * ```ts
 * import { createOrchestrator } from 'ensemble-orchestrator';
 * import { mcpClient } from 'ensemble-orchestrator/mcp';
 *
 * createOrchestrator({
 *   mcp: mcpClient(),
 *   mcpServers: { weather: { url: 'https://weather.example/mcp', transport: 'mcp' } },
 * });
 * ```
 */
export function mcpClient(options: McpClientOptions = {}): McpClient {
  readOptions('mcpClient', options, { shareSessions: flag });
  const share = options.shareSessions ?? globalThis.navigator?.userAgent !== 'Cloudflare-Workers';
  return Object.freeze({
    connect: (access: ToolServerAccess) => mcpServer(access, share, loadClientPackage),
    ready: async () => void (await loadClientPackage()),
  });
}

/** How long a server may take to say which form it speaks. */
const PROBE_MS = 5000;

type Limits = Pick<ToolCall, 'timeoutMs' | 'signal'>;
type Use<T> = (connection: Connection, scope: CallScope) => Promise<T>;

/** How a call gets its connection. */
interface Joining {
  join(scope: CallScope): Promise<Connection>;
  drop(connection: Connection): void;
  isForgotten(thrown: unknown, connection: Connection): boolean;
}

/** @param share - whether calls share one connection */
export function mcpServer(access: ToolServerAccess, share: boolean, load: () => Promise<ClientPackage>): ToolServer {
  const memory: ServerMemory = {};
  const open = (scope: CallScope, timeoutMs: number) =>
    openConnection({ load, access, memory, probeMs: Math.min(PROBE_MS, timeoutMs / 2) }, scope);
  const shared = sharedConnection(access.name, open);
  const joinShared: Joining = { ...shared, isForgotten: needsNewConnection };

  /** A server that forgot the session or its form did nothing for the request: it is sent once more on a new connection. */
  async function useOnceMore<T>(scope: CallScope, use: Use<T>, { join, drop, isForgotten }: Joining): Promise<T> {
    const connection = await join(scope);
    try {
      return await use(connection, scope);
    } catch (thrown) {
      if (scope.ended || !isForgotten(thrown, connection)) throw thrown;
      drop(connection);
      memory.version = undefined;
      return use(await join(scope), scope);
    }
  }

  async function call<T>({ timeoutMs, signal }: Limits, use: Use<T>): Promise<T> {
    const scope = callScope(access.name, timeoutMs, signal);
    let own: Connection | undefined;
    const joinOwn: Joining = {
      async join() {
        own = await open(scope, scope.timeoutMs);
        return own;
      },
      drop: (connection) => void connection.close(),
      // A session that was made for this call is new to the server.
      isForgotten: (thrown, connection) => connection.isOld && needsNewConnection(thrown, connection),
    };
    try {
      const result = await scope.run(useOnceMore(scope, use, share ? joinShared : joinOwn));
      await own?.close();
      return result;
    } catch (thrown) {
      if (needsNewConnection(thrown)) memory.version = undefined;
      // The caller does not wait for the end of a session after a failure.
      void own?.close();
      throw scope.failure ? scope.failure.error : toFailure(thrown, access.name, scope);
    } finally {
      scope.end();
    }
  }

  return Object.freeze({
    listTools: (limits: Limits) => call(limits, listTools),
    callTool: (tool: ToolCall) => call(tool, (connection, scope) => callTool(connection, scope, tool)),
    close: () => shared.close(),
  });
}

async function listTools(connection: Connection, scope: CallScope): Promise<readonly ToolDescription[]> {
  const { tools } = await connection.request(scope, {}, async (client, options) =>
    // The package writes to the console if the server has no tools.
    client.getServerCapabilities()?.tools
      ? client.listTools(undefined, { ...options, cacheMode: 'refresh' })
      : { tools: [] },
  );
  return tools.map(({ name, description, inputSchema }) => ({
    name,
    ...(description === undefined ? {} : { description }),
    inputSchema: inputSchema as unknown as JsonObject,
  }));
}

async function callTool(connection: Connection, scope: CallScope, call: ToolCall): Promise<ToolAnswer> {
  const { tool: name, idempotencyKey } = call;
  // The protocol has no field for the key, so it goes as a header and in `_meta`, which is free for clients.
  const params = { name, arguments: { ...call.arguments }, _meta: { idempotencyKey } };
  const result = await connection.request(scope, { 'idempotency-key': idempotencyKey }, (client, options) =>
    client.callTool(params, options),
  );
  return {
    content: (result.structuredContent === undefined ? result.content : result.structuredContent) as Json,
    isError: result.isError === true,
  };
}
