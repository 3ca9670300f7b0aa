/** The tool server ports: one server, the client that connects to one, and all servers of an orchestrator. */

import type { Json, JsonObject } from '../base/json/json.ts';
import type { Duration } from '../base/time/duration.ts';
import type { HttpClient } from '../host/http.port.ts';
import type { WithReady } from '../host/with-ready.port.ts';

/** A tool as its server lists it. */
export interface ToolDescription {
  readonly name: string;
  readonly description?: string;
  /** A JSON Schema of type `object`. Without it, the arguments are not checked. */
  readonly inputSchema?: JsonObject;
}

export interface ToolCall {
  readonly tool: string;
  readonly arguments: JsonObject;
  /** The longest time of the call, in ms. */
  readonly timeoutMs: number;
  /** Equal each time the same call is made again. */
  readonly idempotencyKey: string;
  readonly signal: AbortSignal;
}

/** What a tool returned. */
export interface ToolAnswer {
  readonly content: Json;
  /** The tool reports an error. */
  readonly isError: boolean;
}

/**
 * A tool server. If `signal` aborts, a method rejects with its reason. Otherwise it rejects with an `OrchestratorError` that says
 * whether trying again can help.
 */
export interface ToolServer {
  listTools(call: Pick<ToolCall, 'timeoutMs' | 'signal'>): Promise<readonly ToolDescription[]>;
  callTool(call: ToolCall): Promise<ToolAnswer>;
  /** Ends what is open, such as a session. */
  close?(): Promise<void>;
}

/** What a connection to a tool server needs. */
export interface ToolServerAccess {
  /** The name in the option `mcpServers`. */
  readonly name: string;
  readonly url: string;
  readonly http: HttpClient;
  /**
   * The headers that authorize a request: empty for a public server.
   * @param renew - the server refused the last ones with 401: another token is obtained, if there is a way to
   * @param refused - the headers that were refused, if they are known: a token that another call obtained since then is used
   */
  authorize(
    renew: boolean,
    signal: AbortSignal,
    refused?: Readonly<Record<string, string>>,
  ): Promise<Readonly<Record<string, string>>>;
  /** The headers that sign a body: empty for a server without `secret`. */
  sign(body: string): Readonly<Record<string, string>>;
}

/** Connects to servers of the Model Context Protocol: the option `mcp`. */
export interface McpClient extends WithReady {
  connect(access: ToolServerAccess): ToolServer;
}

export type ToolTransport = 'http' | 'mcp';

/** How requests to a tool server are authorized. */
export type ToolServerAuth =
  | { readonly type: 'bearer'; readonly token: string }
  | { readonly type: 'oauth'; readonly clientId: string; readonly clientSecret: string; readonly tokenUrl: string };

/** An entry of the option `mcpServers`. */
export interface ToolServerOptions {
  readonly url: string;
  /** Without it, the server is public. */
  readonly auth?: ToolServerAuth | undefined;
  /** The longest time of one request. An agent's own `timeout` wins. Default `30s`. */
  readonly timeout?: Duration | undefined;
  /** Signs each request with HMAC-SHA256: `X-Service-Signature` and `X-Service-Timestamp`. */
  readonly secret?: string | undefined;
  /** How the server is spoken to, unless an agent says it. Default `http`. */
  readonly transport?: ToolTransport | undefined;
}

/** Where and how long a call may take; the fields of an agent's config win over those of the server. */
export interface ToolServerCall {
  readonly server: string;
  readonly transport?: ToolTransport | undefined;
  /** For everything together: the token, the list and the call. Default: that of the server. */
  readonly timeoutMs?: number | undefined;
}

export interface Discovery extends ToolServerCall {
  /** How long a list that was fetched before is used, in ms. 0: it is always fetched. */
  readonly cacheMs: number;
  readonly signal: AbortSignal;
}

/** The tool servers of an orchestrator. `tools` agents and the tools of `think` agents use the same ones. */
export interface ToolServers {
  readonly names: readonly string[];
  /** The tools that a server lists. @throws as the port `ToolServer` */
  list(discovery: Discovery): Promise<readonly ToolDescription[]>;
  /**
   * Calls a tool. Its arguments are checked if the tool's schema is known.
   *
   * @param listed - the tool as its server lists it. `{ cacheMs }`: it is looked up in the server's list, as {@link list} gives it
   * @throws as the port `ToolServer`; INVALID_INPUT for arguments that don't fit; NOT_FOUND for a tool that the list lacks
   */
  call(
    at: ToolServerCall,
    call: Omit<ToolCall, 'timeoutMs'>,
    listed?: ToolDescription | Pick<Discovery, 'cacheMs'>,
  ): Promise<ToolAnswer>;
  close(): Promise<void>;
}
