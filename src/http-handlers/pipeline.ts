/** The request line: request, authenticate, route and scope, orchestrator, respond. No stage reaches back to an earlier one. */

import type { HostInfo, PlainAnswer, PlainRequest } from '../engine/ports/host.ts';
import { type FoundRoute, findRoute, refuseCaller, refuseUnread } from './admit-route.ts';
import { authenticate, principalOf } from './authenticate.ts';
import { HeldBody } from './body-budget.ts';
import type { Call, HandlerParts } from './call.ts';
import { corsHeaders } from './cors.ts';
import { EVENT_STREAM, errorReply, isHidden, type Reply } from './reply.ts';
import type { Match } from './router.ts';

const REQUEST_ID = /^[A-Za-z0-9_.-]{1,128}$/;

/** Answers one request. Never rejects: whatever goes wrong is an answer. */
export async function answerRequest(
  request: PlainRequest,
  host: HostInfo,
  match: Match | 'nothing' | undefined,
  parts: HandlerParts,
): Promise<PlainAnswer> {
  const requestId = requestIdOf(request);
  const held = new HeldBody(parts.bodies);
  let reply: Reply;
  let body: PlainAnswer['body'];
  try {
    const found = findRoute(match, request.method);
    const isPublic = 'route' in found && found.route.scope === 'public';
    const caller = isPublic ? undefined : await authenticate(request, parts.orchestrator);
    // An unknown path is refused behind the stages that must see every request, with what they found out about the caller.
    reply =
      'refusal' in found
        ? found.refusal
        : (refuseCaller(caller, found.route) ??
          (await runRoute(found, {
            parts,
            request,
            host,
            principal: principalOf(caller),
            params: found.params,
            requestId,
            held,
          })));
    body = bodyOf(reply, request.method, parts);
  } catch (thrown) {
    if (isHidden(thrown)) {
      const { method } = request;
      const path = shownPath(request, match);
      parts.logger.error({ err: thrown, requestId, method, path, ip: host.ip }, 'a request failed');
    }
    reply = errorReply(thrown);
    body = bodyOf(reply, request.method, parts);
  } finally {
    held.release();
  }
  return { status: reply.status, headers: headersOf(reply, request, requestId, parts), body };
}

function runRoute({ route }: FoundRoute, call: Call): Reply | Promise<Reply> {
  refuseUnread(call.request, route);
  return route.run(call);
}

function requestIdOf(request: PlainRequest): string {
  const given = request.header('x-request-id');
  return given !== undefined && REQUEST_ID.test(given) ? given : crypto.randomUUID();
}

/** As logs may hold it: a link is a credential. */
function shownPath({ path }: PlainRequest, match: Match | 'nothing' | undefined): string {
  const isLink = typeof match === 'object' && match.params.token !== undefined;
  return isLink ? `${path.slice(0, path.lastIndexOf('/') + 1)}***` : path;
}

function bodyOf({ json, html, stream }: Reply, method: string, { toJson }: HandlerParts): PlainAnswer['body'] {
  if (method === 'HEAD') {
    void stream?.cancel();
    return undefined;
  }
  return stream ?? html ?? (json === undefined ? undefined : toJson(json));
}

function headersOf(
  reply: Reply,
  request: PlainRequest,
  requestId: string,
  { cors }: HandlerParts,
): PlainAnswer['headers'] {
  const headers: Record<string, string> = {
    'x-request-id': requestId,
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    // A browser that is led to an answer shows it as text at most, whatever a run put into it (A128).
    'content-security-policy': 'sandbox',
  };
  if (reply.stream) headers['content-type'] = EVENT_STREAM;
  else if (reply.html !== undefined) headers['content-type'] = 'text/html; charset=utf-8';
  else if (reply.json !== undefined) headers['content-type'] = 'application/json; charset=utf-8';
  if (reply.headers) Object.assign(headers, reply.headers);
  if (cors) Object.assign(headers, corsHeaders(cors, request));
  return headers;
}
