/** The tool servers of an orchestrator: their connections, tokens, signatures and lists of tools. */

import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import type { JsonObject } from '../../engine/base/json/json.ts';
import { suggestName } from '../../engine/base/suggest-name.ts';
import { toMs } from '../../engine/base/time/duration.ts';
import { underDeadline } from '../../engine/base/time/under-deadline.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { HttpClient, HttpRequest } from '../../engine/host/http.port.ts';
import { checkJsonSchema } from '../../engine/json-schema/check-json-schema.ts';
import { compileJsonSchema } from '../../engine/json-schema/compile-json-schema.ts';
import type { ValueCheck } from '../../engine/json-schema/rule.ts';
import type {
  McpClient,
  ToolCall,
  ToolDescription,
  ToolServer,
  ToolServerAccess,
  ToolServerCall,
  ToolServerOptions,
  ToolServers,
  ToolTransport,
} from '../../engine/operation/tool-server.port.ts';
import { signRequest } from '../../engine/signing/sign-request.ts';
import { httpToolServer } from './http-tool-server.ts';
import { oauthToken } from './oauth-token.ts';
import { type SharedTask, sharedTask } from './shared-task.ts';

export interface ToolServersDependencies {
  readonly servers: Readonly<Record<string, ToolServerOptions>>;
  readonly mcp?: McpClient | undefined;
  readonly http: HttpClient;
  readonly clock: Clock;
  /** The word in the names of the headers that sign a request. */
  readonly brand: string;
}

type Tools = readonly ToolDescription[];

interface Server {
  readonly options: ToolServerOptions;
  readonly access: ToolServerAccess;
}

/** A server and one way to speak to it. */
interface Connection {
  readonly server: ToolServer;
  /** Calls that need the list at the same time share the request. */
  readonly fetchList: SharedTask<Tools>;
}

const DEFAULT_TIMEOUT_MS = 30_000;
/** For requests that their signal ends earlier. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;
const MAX_TOOLS = 10_000;
/** How a server without lists answers. */
const LISTS_NO_TOOLS: readonly unknown[] = [404, 405, 501];

/** @param dependencies - servers whose options are checked. Nothing is sent before the first call */
export function toolServers(dependencies: ToolServersDependencies): ToolServers {
  const { clock } = dependencies;
  const servers = new Map(
    Object.entries(dependencies.servers).map(([name, options]) => [name, toServer(name, options, dependencies)]),
  );
  const connections = new Map<string, Connection>();
  const lists = new Map<Connection, { readonly tools: Tools; readonly at: number }>();
  const problemOf = argumentsCheck();

  const find = (name: string): Server => {
    const server = servers.get(name);
    if (!server) throw new OrchestratorError('NOT_CONFIGURED', `tool server \`${name}\` is not in \`mcpServers\``);
    return server;
  };
  const connect = ({ server: name, transport }: ToolServerCall): Connection => {
    const { options, access } = find(name);
    const used: ToolTransport = transport ?? options.transport ?? 'http';
    const key = `${used} ${name}`;
    const known = connections.get(key);
    if (known) return known;
    const server = used === 'http' ? httpToolServer(access, () => clock.now()) : connectByMcp(dependencies.mcp, access);
    const fetchList = sharedTask(async (signal) => {
      const tools = await server.listTools({ timeoutMs: NO_TIMEOUT_MS, signal });
      if (tools.length > MAX_TOOLS) throw tooManyTools(name, tools.length);
      lists.set(connection, { tools, at: clock.monotonic() });
      return tools;
    });
    const connection: Connection = { server, fetchList };
    connections.set(key, connection);
    return connection;
  };
  const knownList = (connection: Connection, cacheMs: number): Tools | undefined => {
    const list = lists.get(connection);
    return list && clock.monotonic() - list.at < cacheMs ? list.tools : undefined;
  };
  const timeoutOf = ({ server, timeoutMs }: ToolServerCall): number =>
    timeoutMs ?? toMs(find(server).options.timeout ?? DEFAULT_TIMEOUT_MS);
  const deadlineOf = (timeoutMs: number, signal: AbortSignal, what: string) => ({
    timeoutMs,
    signal,
    setTimer: clock.setTimer,
    late() {
      const message = `${what} took longer than ${timeoutMs} ms; raise its timeout or look at the server`;
      return new OrchestratorError('TIMEOUT', message, { details: { timeoutMs }, retryable: true });
    },
  });

  /** Why the list of the server does not allow a call. A list that was fetched before may be old: it refuses nothing. */
  const refusal = async (connection: Connection, server: string, cacheMs: number, call: CheckedCall) => {
    const problemIn = (tools: Tools) => {
      const tool = tools.find(({ name }) => name === call.tool);
      return tool ? problemOf(server, tool, call.arguments) : unknownTool(server, call.tool, tools);
    };
    const known = knownList(connection, cacheMs);
    if (known && !problemIn(known)) return undefined;
    const tools = await connection.fetchList(call.signal).catch(noneWithoutLists);
    return tools && problemIn(tools);
  };

  return {
    names: [...servers.keys()],
    async list(discovery) {
      const { server, cacheMs, signal } = discovery;
      const connection = connect(discovery);
      const deadline = deadlineOf(timeoutOf(discovery), signal, `the list of tool server \`${server}\``);
      return knownList(connection, cacheMs) ?? underDeadline(deadline, connection.fetchList);
    },
    async call(at, call, listed) {
      const { server } = at;
      const connection = connect(at);
      const timeoutMs = timeoutOf(at);
      const what = `tool \`${call.tool}\` of server \`${server}\``;
      return underDeadline(deadlineOf(timeoutMs, call.signal, what), async (signal) => {
        const problem =
          listed && 'cacheMs' in listed
            ? await refusal(connection, server, listed.cacheMs, { ...call, signal })
            : listed && problemOf(server, listed, call.arguments);
        if (problem) throw problem;
        return connection.server.callTool({ ...call, timeoutMs, signal });
      });
    },
    async close() {
      const open = [...connections.values()];
      connections.clear();
      await Promise.allSettled(open.map(({ server }) => server.close?.()));
    },
  };
}

type CheckedCall = Pick<ToolCall, 'tool' | 'arguments' | 'signal'>;

function toServer(
  name: string,
  options: ToolServerOptions,
  { http: given, clock, brand }: ToolServersDependencies,
): Server {
  const { url, auth, secret } = options;
  const http: HttpClient = {
    async send(request) {
      try {
        return await given.send(request);
      } catch (thrown) {
        throw request.signal?.aborted || isOrchestratorError(thrown) ? thrown : clientFailure(name, request, thrown);
      }
    },
  };
  const token = auth?.type === 'oauth' ? oauthToken({ auth, server: name, http, clock }) : undefined;
  const access: ToolServerAccess = {
    name,
    url,
    http,
    async authorize(renew, signal, refused): Promise<Readonly<Record<string, string>>> {
      if (auth?.type === 'bearer') return { Authorization: `Bearer ${auth.token}` };
      if (!token) return {};
      const isRefused = (value: string) => renew && (!refused || refused.Authorization === `Bearer ${value}`);
      return { Authorization: `Bearer ${await token(isRefused, signal)}` };
    },
    sign: (body) => (secret === undefined ? {} : signRequest(body, { secrets: [secret], brand, now: clock.now() })),
  };
  return { options, access };
}

// The clients of this library throw an OrchestratorError. The message of another client may contain addresses and headers.
function clientFailure(server: string, { method, url }: HttpRequest, cause: unknown): OrchestratorError {
  const { origin, pathname } = new URL(url);
  const message = `tool server \`${server}\`: ${method} ${origin}${pathname} failed in the HTTP client; the log has its error`;
  return new OrchestratorError('AGENT_FAILED', message, { cause, retryable: true });
}

function connectByMcp(mcp: McpClient | undefined, access: ToolServerAccess): ToolServer {
  if (mcp) return mcp.connect(access);
  const message = `tool server \`${access.name}\`: \`transport: mcp\` needs the option \`mcp\`, a client from 'ensemble-orchestrator/mcp'`;
  throw new OrchestratorError('NOT_CONFIGURED', message);
}

function tooManyTools(server: string, count: number): OrchestratorError {
  const message = `tool server \`${server}\` lists ${count} tools; at most ${MAX_TOOLS} are read`;
  return new OrchestratorError('AGENT_FAILED', message, { details: { reason: 'too-large', limit: MAX_TOOLS } });
}

function noneWithoutLists(thrown: unknown): undefined {
  if (isOrchestratorError(thrown, 'AGENT_FAILED') && LISTS_NO_TOOLS.includes(thrown.details.status)) return undefined;
  throw thrown;
}

type ArgumentsCheck = (server: string, tool: ToolDescription, given: JsonObject) => OrchestratorError | undefined;

/** A schema is compiled once. One with keywords that this library lacks is not checked. */
function argumentsCheck(): ArgumentsCheck {
  const checks = new WeakMap<ToolDescription, ValueCheck>();
  return (server, tool, given) => {
    const { name, inputSchema } = tool;
    if (!inputSchema) return undefined;
    const check = checks.get(tool) ?? compile(inputSchema);
    checks.set(tool, check);
    const result = check(given);
    if ('value' in result) return undefined;
    const problems = result.problems.map(({ path, message }) => (path === '' ? message : `${path} ${message}`));
    const message = `the arguments of tool \`${name}\` of server \`${server}\` do not fit its inputSchema: ${problems.join('; ')}`;
    return new OrchestratorError('INVALID_INPUT', message, { details: { issues: result.problems } });
  };
}

function compile(schema: JsonObject): ValueCheck {
  let isSupported = true;
  checkJsonSchema(schema, [], () => {
    isSupported = false;
  });
  return isSupported ? compileJsonSchema(schema) : (value) => ({ value });
}

/** The failure for a tool that the list of its server lacks. */
function unknownTool(server: string, tool: string, tools: readonly ToolDescription[]): OrchestratorError {
  const near = suggestName(
    tool,
    tools.map(({ name }) => name),
  );
  const hint = near === undefined ? '' : `; did you mean \`${near}\`?`;
  return new OrchestratorError('NOT_FOUND', `tool server \`${server}\` lists no tool \`${tool}\`${hint}`);
}
