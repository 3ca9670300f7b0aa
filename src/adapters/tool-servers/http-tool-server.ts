/** A tool server over plain HTTP: `GET <url>/tools` lists its tools, and `POST <url>/tools/<tool>` calls one. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { isMap } from '../../engine/base/json/is-map.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import type { HttpRequest, HttpResponse } from '../../engine/host/http.port.ts';
import { querySecrets } from '../../engine/host/peer-text.ts';
import { toolNameProblem } from '../../engine/operation/tool-name.ts';
import type {
  ToolAnswer,
  ToolCall,
  ToolDescription,
  ToolServer,
  ToolServerAccess,
} from '../../engine/operation/tool-server.port.ts';
import { readAnswer, statusFailure } from './read-answer.ts';

type Headers = Readonly<Record<string, string>>;
type Request = Pick<HttpRequest, 'method'> & {
  readonly path: readonly string[];
  readonly headers?: Headers;
  readonly body?: string;
};

/** @param now - Unix ms, for `Retry-After` */
export function httpToolServer(access: ToolServerAccess, now: () => number): ToolServer {
  return {
    async listTools(limits) {
      return toTools(access, await exchange(access, { method: 'GET', path: [] }, limits, now));
    },
    async callTool(call) {
      const { tool, idempotencyKey } = call;
      const body = JSON.stringify({ name: tool, arguments: call.arguments });
      const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': idempotencyKey };
      return toAnswer(await exchange(access, { method: 'POST', path: [tool], headers, body }, call, now));
    },
  };
}

/** The answer of a 2xx status. One that is refused with 401 is sent once more, if there is another token. */
async function exchange(
  access: ToolServerAccess,
  request: Request,
  limits: Pick<ToolCall, 'timeoutMs' | 'signal'>,
  now: () => number,
): Promise<Json> {
  const { signal, timeoutMs } = limits;
  const url = urlOf(access, request.path);
  const what = `tool server \`${access.name}\`: ${request.method} ${url.origin}${url.pathname}`;
  let secret: Headers = {};
  const send = (authorization: Headers): Promise<HttpResponse> => {
    const { method, body = '' } = request;
    secret = { ...authorization, ...access.sign(body) };
    const headers = { Accept: 'application/json', ...request.headers, ...secret };
    const sent = { method, url: url.href, headers, ...(method === 'POST' && { body }), timeoutMs, signal };
    return access.http.send({ ...sent, partialBody: true });
  };
  const authorization = await access.authorize(false, signal);
  let response = await send(authorization);
  if (response.status === 401) {
    const renewed = await access.authorize(true, signal, authorization);
    if (renewed.Authorization !== authorization.Authorization) response = await send(renewed);
  }
  if (response.status < 200 || response.status > 299) {
    const sent = [...Object.values(secret), ...querySecrets(access.url)];
    const because = hint(response);
    throw statusFailure(what, response, { now: now(), sent, ...(because && { because }) });
  }
  if (response.bodyFailure) throw response.bodyFailure;
  return readAnswer(what, response);
}

/** What to do about a status. MCP servers answer the form of this adapter with errors in JSON-RPC. */
function hint({ status, body }: HttpResponse): string | undefined {
  if (status === 401) return 'check the `auth` of the server';
  if (status >= 500 || status < 400) return undefined;
  if (new TextDecoder().decode(body).includes('"jsonrpc"')) return "an MCP server needs `transport: 'mcp'`";
  return status === 404
    ? "check the name of the tool and the `url` of the server; one that speaks MCP needs `transport: 'mcp'`"
    : undefined;
}

/** A tool is one segment of the path, whatever its name is. The path and the query of the server's own url stay. */
function urlOf({ name, url: server }: ToolServerAccess, path: readonly string[]): URL {
  const problem = path.map(toolNameProblem).find(Boolean);
  if (problem !== undefined) {
    const message = `tool server \`${name}\`: the name of a tool ${problem}`;
    throw new OrchestratorError('INVALID_REQUEST', message, { details: { reason: 'url' } });
  }
  const url = new URL(server);
  const segments = path.map((segment) => encodeURIComponent(segment));
  url.pathname = [url.pathname.replace(/\/+$/, ''), 'tools', ...segments].join('/');
  url.hash = '';
  return url;
}

function toTools({ name }: ToolServerAccess, answer: Json): readonly ToolDescription[] {
  const list: unknown = isMap(answer) ? answer.tools : answer;
  const isTool = (tool: unknown): tool is JsonObject =>
    isMap(tool as Json) && typeof (tool as JsonObject).name === 'string';
  if (!Array.isArray(list) || !list.every(isTool)) {
    const message = `tool server \`${name}\` answered with something else than its tools; expected { tools: [{ name, description, inputSchema }] }`;
    throw new OrchestratorError('AGENT_FAILED', message, { details: { reason: 'invalid-list' } });
  }
  return list.map(({ name, description, inputSchema }) => ({
    name: name as string,
    ...(typeof description === 'string' && { description }),
    ...(isMap(inputSchema) && { inputSchema }),
  }));
}

/** `{ content, isError }` says both. Any other value is the content. */
function toAnswer(answer: Json): ToolAnswer {
  if (!isMap(answer)) return { content: answer, isError: false };
  const says = typeof answer.isError === 'boolean' || Object.keys(answer).length === 1;
  const content = says && Object.hasOwn(answer, 'content') ? (answer.content as Json) : answer;
  return { content, isError: answer.isError === true };
}
