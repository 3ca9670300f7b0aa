/** One connection to an MCP server: the client of the package, and its session. */

import type { CallScope } from './call-scope.ts';
import type { ToolServerAccess } from '../../engine/ports/tool-server.ts';
import { guardedTransport, SCOPE_HEADER } from './guarded-transport.ts';
import type { ClientPackage } from './load-client-package.ts';

type Client = InstanceType<ClientPackage['Client']>;
type ResponseCache = InstanceType<ClientPackage['InMemoryResponseCacheStore']>;

/** What `client.callTool` and `client.listTools` need to stay within a call. */
export interface RequestOptions {
  readonly signal: AbortSignal;
  readonly timeout: number;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Connection {
  readonly hasSession: boolean;
  /** @throws the failure of the scope, or what the client package throws */
  request<T>(
    scope: CallScope,
    headers: Readonly<Record<string, string>>,
    send: (client: Client, options: RequestOptions) => Promise<T>,
  ): Promise<T>;
  /** Ends the session. Never throws. */
  close(): Promise<void>;
}

/** What is known about a server from earlier connections: plain data, so that requests of a Worker may share it. */
export interface ServerMemory {
  /** The tools that were listed. With them, the client package checks what a tool returns. */
  cache?: ResponseCache;
  /** What the server answered when it was asked for its version. */
  version?: NonNullable<Parameters<Client['connect']>[1]>['prior'];
}

/** The largest number of pages of a list. */
const MAX_PAGES = 1000;
// The call's own deadline ends a request. With a longer delay, a platform's timer fires at once.
const NO_TIMEOUT = 2 ** 31 - 1;

export async function openConnection(
  load: () => Promise<ClientPackage>,
  access: ToolServerAccess,
  memory: ServerMemory,
  scope: CallScope,
): Promise<Connection> {
  const library = await load();
  if (scope.failure) throw scope.failure.error;
  memory.cache ??= new library.InMemoryResponseCacheStore();
  const client = new library.Client(
    { name: 'ensemble-orchestrator', version: '1' },
    {
      // No capability: the server can't ask for samples, for input of a person, or for roots.
      capabilities: {},
      inputRequired: { autoFulfill: false },
      // The package's default makes code from strings on Node.js.
      jsonSchemaValidator: new library.CfWorkerJsonSchemaValidator(),
      listMaxPages: MAX_PAGES,
      responseCacheStore: memory.cache,
      versionNegotiation: { mode: 'auto' },
    },
  );
  const transport = guardedTransport(access, library, scope);
  const prior = memory.version;
  const options = { signal: scope.signal, timeout: NO_TIMEOUT, ...(prior && { prior }) };
  try {
    await scope.run(client.connect(transport, options));
  } catch (error) {
    memory.version = undefined;
    throw error;
  }
  const discover = client.getDiscoverResult();
  memory.version = discover ? { kind: 'modern', discover } : { kind: 'legacy' };
  let count = 0;
  return {
    get hasSession() {
      return transport.sessionId !== undefined;
    },
    async request(call, headers, send) {
      const key = String(++count);
      transport.scopes.set(key, call);
      try {
        const options = { signal: call.signal, timeout: NO_TIMEOUT, headers: { ...headers, [SCOPE_HEADER]: key } };
        return await call.run(send(client, options));
      } finally {
        transport.scopes.delete(key);
      }
    },
    async close() {
      await transport.endSession();
      await client.close().catch(() => {});
    },
  };
}
