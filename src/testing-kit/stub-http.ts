/** An HTTP client for tests: it answers from a table of routes, records its calls, and refuses calls without a route. */

import { OrchestratorError } from '../engine/base/errors.ts';
import type { Json } from '../engine/base/json/json.ts';
import { isRecord } from '../engine/base/read-options.ts';
import { suggestName } from '../engine/base/suggest-name.ts';
import type { HttpClient, HttpRequest, HttpResponse } from '../engine/host/http.port.ts';

/** One answer. It has one of `json`, `text`, `chunks` and `bytes`, or an empty body. */
export interface StubReply {
  /** Default 200. */
  readonly status?: number;
  /** Sent as `application/json`. */
  readonly json?: Json;
  readonly text?: string;
  /** The body as text in parts: a caller that reads the body as it comes (`onChunk`) receives them one by one. */
  readonly chunks?: readonly string[];
  readonly bytes?: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** Fails the call instead, with the error of a client whose connection broke or whose time ran out. */
  readonly error?: 'connection' | 'timeout';
}

/** One reply for every call, a list with one reply per call (the last one repeats), or a function of the request. */
export type StubAnswer = StubReply | readonly StubReply[] | ((call: StubCall) => StubReply | Promise<StubReply>);

/** A call that was made. */
export interface StubCall extends HttpRequest {
  /** The body as JSON; undefined without a body and for a body that is not JSON. */
  readonly json: Json | undefined;
}

export interface StubHttp extends HttpClient {
  /** All calls in their order, with the refused ones. */
  readonly calls: readonly StubCall[];
  /**
   * Adds a route, which wins over those before it, or replaces one.
   *
   * @param route - `METHOD url`, or a URL for every method; `*` matches any characters
   * @throws TypeError for a reply with an unknown key or a wrong value
   */
  on(route: string, answer: StubAnswer): StubHttp;
}

/**
 * Creates an HTTP client that answers from `routes`. Of several routes that match, the last one wins.
 *
 * @param routes - the answer of each route. A route is `METHOD url` or a URL alone; a URL without `?` matches any query, `*` any characters
 * @throws TypeError for a reply with an unknown key or a wrong value
 *
 * @example
 * ```ts
 * import { createTestOrchestrator, stubHttp } from 'ensemble-orchestrator/testing';
 *
 * const http = stubHttp({ 'GET https://api.example.com/users/7': { json: { name: 'Ada' } } });
 * const orchestrator = createTestOrchestrator({
 *   http,
 *   ensembles: ['name: e\nflow:\n  - { agent: user, operation: api, config: { url: "https://api.example.com/users/${input.id}" } }\noutputs: { name: "${user.output.body.name}" }'],
 * });
 * console.log((await orchestrator.execute('e', { id: 7 })).output); // { name: 'Ada' }
 * console.log(http.calls.length); // 1
 * ```
 */
export function stubHttp(routes: Readonly<Record<string, StubAnswer>> = {}): StubHttp {
  const table = new Map<string, Route>();
  const calls: StubCall[] = [];
  const stub: StubHttp = {
    calls,
    on(route, answer) {
      const made = toRoute(route, answer);
      // A key that is set again would keep its place before the others.
      table.delete(route);
      table.set(route, made);
      return stub;
    },
    async send(request) {
      request.signal?.throwIfAborted();
      const call = { ...request, json: readJson(request.body) };
      calls.push(call);
      const route = [...table.values()].reverse().find((candidate) => candidate.matches(request));
      if (!route) throw unexpectedRequest(request, [...table.keys()]);
      const { answer } = route;
      if (typeof answer === 'function') return toResponse(checkMade(await answer(call), request), request);
      const reply = isList(answer) ? answer[Math.min(route.used, answer.length - 1)] : answer;
      route.used += 1;
      return toResponse(reply as StubReply, request);
    },
  };
  for (const [route, answer] of Object.entries(routes)) stub.on(route, answer);
  return stub;
}

interface Route {
  readonly answer: StubAnswer;
  used: number;
  matches(request: HttpRequest): boolean;
}

function isList(answer: StubAnswer): answer is readonly StubReply[] {
  return Array.isArray(answer);
}

function toRoute(route: string, answer: StubAnswer): Route {
  const matches = routeMatcher(route);
  if (typeof answer !== 'function') {
    const replies = isList(answer) ? answer : [answer];
    if (replies.length === 0) throw new TypeError(`stubHttp: the list of replies of \`${route}\` is empty`);
    for (const reply of replies) checkReply(reply, `stubHttp: a reply of \`${route}\``);
  }
  return { answer, used: 0, matches };
}

/** Whether a request goes to a route: `METHOD url`, or a URL for every method. @throws TypeError for another text */
export function routeMatcher(route: string): Route['matches'] {
  const [, method, url] = /^(?:([A-Za-z]+)\s+)?(\S+)$/.exec(route) ?? [];
  if (url === undefined)
    throw new TypeError(`stubHttp: a route is \`METHOD url\` or a URL, not ${JSON.stringify(route)}`);
  const parts = (url.includes('*') ? url : asSent(url)).split('*');
  return (request) => {
    if (method !== undefined && method.toUpperCase() !== request.method.toUpperCase()) return false;
    const sent = url.includes('*') ? request.url : asSent(request.url);
    return matchesParts(url.includes('?') ? sent : (sent.split('?')[0] as string), parts);
  };
}

/** `https://a.example` is requested as `https://a.example/`. */
function asSent(url: string): string {
  return URL.canParse(url) ? new URL(url).href : url;
}

const BODIES = ['json', 'text', 'chunks', 'bytes'] as const;
const REPLY_KEYS: readonly string[] = [...BODIES, 'status', 'headers', 'error'] satisfies readonly (keyof StubReply)[];

function checkReply(reply: StubReply, what: string): void {
  const wrong = (rule: string) => new TypeError(`${what} ${rule}`);
  if (!isRecord(reply)) throw wrong(`must be an object such as { json: { id: 7 } }, not ${JSON.stringify(reply)}`);
  const unknown = Object.keys(reply).find((key) => !REPLY_KEYS.includes(key));
  if (unknown !== undefined) {
    const near = unknown === 'body' ? undefined : suggestName(unknown, REPLY_KEYS);
    const help = near ? `did you mean \`${near}\`?` : 'a body is `json`, `text`, `chunks` or `bytes`';
    throw wrong(`has the unknown key \`${unknown}\`; ${help}`);
  }
  const bodies = BODIES.filter((key) => reply[key] !== undefined);
  if (bodies.length > 1) throw wrong(`has ${bodies.join(' and ')}; a reply has one body`);
  const { status = 200, error } = reply;
  if (!Number.isInteger(status) || status < 100 || status > 599)
    throw wrong(`has the status ${JSON.stringify(status)}; a status is a whole number from 100 to 599`);
  if (error !== undefined && error !== 'connection' && error !== 'timeout')
    throw wrong(`has the error ${JSON.stringify(error)}; it is 'connection' or 'timeout'`);
}

/** A reply that a function made: what is wrong with it is the failure of the call. */
function checkMade(reply: StubReply, { method, url }: HttpRequest): StubReply {
  try {
    checkReply(reply, `stubHttp: the reply to ${method} ${url.split('?')[0]}`);
    return reply;
  } catch (wrong) {
    throw new OrchestratorError('INVALID_REQUEST', (wrong as Error).message);
  }
}

// Matches `*` without a regular expression: the first part is at the start, the last at the end, the others between in order.
function matchesParts(text: string, parts: readonly string[]): boolean {
  const first = parts[0] as string;
  const last = parts.at(-1) as string;
  if (parts.length === 1) return text === first;
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return false;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, at);
    if (found < 0 || found + part.length > text.length - last.length) return false;
    at = found + part.length;
  }
  return true;
}

function unexpectedRequest(request: HttpRequest, known: readonly string[]): OrchestratorError {
  const call = `${request.method.toUpperCase()} ${request.url.split('?')[0]}`;
  const stubbed = known.length === 0 ? 'nothing is stubbed' : `stubbed: ${known.join(', ')}`;
  return new OrchestratorError(
    'INVALID_REQUEST',
    `unexpected call ${call} (${stubbed}). Stub it: stubHttp({ '${call}': { json: { ... } } })`,
  );
}

function toResponse(reply: StubReply, request: HttpRequest): HttpResponse {
  if (reply.error === 'timeout')
    throw new OrchestratorError('TIMEOUT', `${request.method} ${request.url} took too long (stubbed)`, {
      retryable: true,
    });
  if (reply.error === 'connection') {
    const details = { reason: 'connection' };
    throw new OrchestratorError('AGENT_FAILED', `${request.method} ${request.url}: the connection broke (stubbed)`, {
      retryable: true,
      details,
    });
  }
  const isJson = reply.json !== undefined;
  const texts = isJson ? [JSON.stringify(reply.json)] : (reply.chunks ?? [reply.text ?? '']);
  const encoder = new TextEncoder();
  const body = reply.bytes ?? encoder.encode(texts.join(''));
  const type = isJson ? 'application/json' : reply.bytes ? 'application/octet-stream' : 'text/plain; charset=utf-8';
  const headers: Record<string, string> = body.byteLength === 0 ? {} : { 'content-type': type };
  for (const [name, value] of Object.entries(reply.headers ?? {})) headers[name.toLowerCase()] = value;
  const head = { status: reply.status ?? 200, headers };
  for (const chunk of reply.bytes ? [reply.bytes] : texts.map((part) => encoder.encode(part))) {
    if (chunk.byteLength > 0) request.onChunk?.(chunk, head);
  }
  return { ...head, body };
}

function readJson(body: HttpRequest['body']): Json | undefined {
  if (body === undefined) return undefined;
  try {
    return JSON.parse(typeof body === 'string' ? body : new TextDecoder().decode(body)) as Json;
  } catch {
    return undefined;
  }
}
