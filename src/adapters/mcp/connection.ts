/** One connection to an MCP server: the client of the package, and its session. */

import type { ToolServerAccess } from '../../engine/operation/tool-server.port.ts';
import type { CallScope } from './call-scope.ts';
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
  /** Whether the form of the server was learned for an earlier call. It may have another one by now. */
  readonly isOld: boolean;
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

export interface OpenDependencies {
  readonly load: () => Promise<ClientPackage>;
  readonly access: ToolServerAccess;
  readonly memory: ServerMemory;
  /** How long the server may take to say which form it speaks, ms. One that is silent is asked in the older form. */
  readonly probeMs: number;
}

/** How a connection is made: in the form that the server had before, or in the older one; otherwise it is asked. */
type Form = Pick<ServerMemory, 'version'> & { readonly legacy?: boolean };

/** A form that the server refuses is forgotten, and the server is asked once. */
export async function openConnection(dependencies: OpenDependencies, scope: CallScope): Promise<Connection> {
  const { memory } = dependencies;
  const { version } = memory;
  try {
    return await connect(dependencies, scope, { version });
  } catch (error) {
    memory.version = undefined;
    const isSilent = (error as { readonly code?: unknown } | null)?.code === 'REQUEST_TIMEOUT';
    if (scope.ended || (version === undefined && !isSilent)) throw error;
    return connect(dependencies, scope, { legacy: version === undefined });
  }
}

async function connect(
  { load, access, memory, probeMs }: OpenDependencies,
  scope: CallScope,
  form: Form,
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
      versionNegotiation: form.legacy ? { mode: 'legacy' } : { mode: 'auto', probe: { timeoutMs: probeMs } },
    },
  );
  const transport = guardedTransport(access, library, scope);
  const prior = form.version;
  const options = { signal: scope.signal, timeout: NO_TIMEOUT, ...(prior && { prior }) };
  try {
    await scope.run(client.connect(transport, options));
  } catch (error) {
    void client.close().catch(() => {});
    throw error;
  }
  const discover = client.getDiscoverResult();
  memory.version = discover ? { kind: 'modern', discover } : { kind: 'legacy' };
  let count = 0;
  return {
    get isOld() {
      return prior !== undefined || count > 1;
    },
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
