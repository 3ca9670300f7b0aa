/** The pipeline of a request: request, authenticate, limits, route and scope, orchestrator, respond. No stage calls an earlier stage. */

import type { RequestLimit } from '../engine/access/rules/limits.ts';
import { OrchestratorError } from '../engine/base/errors.ts';
import { isPromise } from '../engine/base/maybe-promise.ts';
import { METRICS } from '../engine/events/measurement.ts';
import type { HostInfo, PlainAnswer, PlainRequest } from '../engine/host/host.port.ts';
import { authenticate, principalOf } from './access/authenticate.ts';
import { authorizeCaller, type FoundRoute, findRoute, rejectUnusedInput } from './access/authorize.ts';
import { addressOf, countRequest, refuseExcess, setLimitHeaders } from './access/rate-limit.ts';
import type { HandlerDependencies, HttpCall, RouteAccess } from './call.ts';
import { corsHeaders, isPreflight } from './reply/cors.ts';
import { asProblem, EVENT_STREAM, errorReply, isHidden, type Reply, withPlainError } from './reply/reply.ts';
import { countedBytes, HeldBytes } from './request/byte-budget.ts';
import type { Found } from './router.ts';
import { readIdempotencyKey, runOnce } from './run-once.ts';

const REQUEST_ID = /^[A-Za-z0-9_.-]{1,128}$/;

/** Responds to one request. Never rejects: every failure becomes a response. */
export async function answerRequest(
  request: PlainRequest,
  host: HostInfo,
  match: Found,
  dependencies: HandlerDependencies,
): Promise<PlainAnswer> {
  const began = dependencies.measured?.measure ? dependencies.monotonic() : undefined;
  const requestId = requestIdOf(request);
  const address = addressOf(request, host, dependencies);
  const held = new HeldBytes(isOfWebhook(match) ? dependencies.webhookBodies.of(address) : dependencies.bodies);
  const unsent = new HeldBytes(dependencies.unsent);
  let reply: Reply;
  let body: PlainAnswer['body'];
  let limit: RequestLimit | undefined;
  try {
    const found = findRoute(match, request.method);
    const route = 'route' in found ? found : undefined;
    const isPublic = route?.route.scope === 'public' || isOfWebhook(match);
    const caller = isPublic ? undefined : await authenticate({ request, host, dependencies }, route);
    if (!isPublic && !isPreflight(dependencies.cors, request)) {
      const counted = countRequest(dependencies, principalOf(caller), address);
      limit = isPromise(counted) ? await counted : counted;
    }
    // An unknown path is refused after authentication, because authentication must see every request.
    reply =
      (limit && refuseExcess(limit)) ??
      ('refusal' in found
        ? found.refusal
        : (authorizeCaller(caller, found.route) ??
          (await refuseUnsent(found.route, request, unsent, dependencies)) ??
          (await runRoute(found, {
            dependencies,
            request,
            host,
            route: found.route,
            principal: principalOf(caller),
            params: found.params,
            requestId,
            held,
          }))));
    reply = forCaller(reply, request, match);
    body = bodyOf(reply, request.method, match, dependencies);
    if (!keepUnsent(unsent, body)) {
      reply = forCaller(errorReply(tooMuchUnsent()), request, match);
      body = bodyOf(reply, request.method, match, dependencies);
    }
  } catch (thrown) {
    if (isHidden(thrown)) logFailure(thrown, request, match, dependencies, { requestId, ip: address });
    reply = forCaller(errorReply(thrown), request, match);
    body = bodyOf(reply, request.method, match, dependencies);
    unsent.release();
  } finally {
    held.release();
  }
  const headers = headersOf(reply, request, requestId, dependencies);
  if (limit) setLimitHeaders(headers, limit, dependencies.orchestrator.limits.standardHeaders);
  measureRequest(dependencies, request, match, reply, began);
  return { status: reply.status, headers, body, ...(!unsent.isEmpty && { sent: () => unsent.release() }) };
}

function logFailure(
  err: unknown,
  request: PlainRequest,
  match: Found,
  { logger }: HandlerDependencies,
  { requestId, ip }: { readonly requestId: string; readonly ip: string | undefined },
): void {
  const { method } = request;
  logger.error({ err, requestId, method, path: shownPath(request, match), ip }, 'a request failed');
}

/** @param began - by the monotonic clock; undefined if nobody listened then */
function measureRequest(
  { measured, monotonic }: HandlerDependencies,
  { method }: PlainRequest,
  match: Found,
  { status, json }: Reply,
  began: number | undefined,
): void {
  const measure = measured?.measure;
  if (!measure || began === undefined) return;
  const route = typeof match === 'object' ? match.resource.routes.get(method) : undefined;
  const labels = [route ? method : 'other', route?.path ?? 'none', String(status)];
  measure(METRICS.http, labels, (monotonic() - began) / 1000);
  const { code } = (json as { readonly error?: { readonly code?: string } } | undefined)?.error ?? {};
  if (status === 429 && code !== undefined) measure(METRICS.refused, [code], 1);
}

/** Waits until the largest response of a route fits together with the unsent responses. */
async function refuseUnsent(
  { maxBytes }: RouteAccess,
  { method }: PlainRequest,
  unsent: HeldBytes,
  { setTimer }: HandlerDependencies,
): Promise<Reply | undefined> {
  if (maxBytes === undefined || method === 'HEAD') return undefined;
  return (await unsent.holdWhenFree(maxBytes, setTimer)) ? undefined : errorReply(tooMuchUnsent());
}

/** Counts a response by its real length. @returns false if it does not fit */
function keepUnsent(unsent: HeldBytes, body: PlainAnswer['body']): boolean {
  const bytes = typeof body === 'string' ? countedBytes(body.length) : 0;
  unsent.shrinkTo(bytes);
  return unsent.holdUpTo(bytes);
}

function tooMuchUnsent(): OrchestratorError {
  const message = 'readers have not taken the responses that are ready; try again';
  return new OrchestratorError('OVERLOADED', message, { retryable: true });
}

function runRoute({ route }: FoundRoute, call: HttpCall): Reply | Promise<Reply> {
  rejectUnusedInput(call.request, route);
  const key = route.method === 'POST' && !route.readsKey ? readIdempotencyKey(call.request) : undefined;
  return key === undefined ? route.run(call) : runOnce(call, route, key);
}

/** The errors of webhooks have one form only. */
function forCaller(reply: Reply, request: PlainRequest, match: Found): Reply {
  return isOfWebhook(match) ? reply : asProblem(reply, request.header('accept'));
}

function isOfWebhook(match: Found): boolean {
  return match === 'no-webhook' || (match !== 'nothing' && match.resource.isWebhook === true);
}

function requestIdOf(request: PlainRequest): string {
  const given = request.header('x-request-id');
  return given !== undefined && REQUEST_ID.test(given) ? given : crypto.randomUUID();
}

/** The path without a link's token, for logs: a link is a credential. */
function shownPath({ path }: PlainRequest, match: Found): string {
  const isLink = typeof match === 'object' && match.params.token !== undefined;
  return isLink ? `${path.slice(0, path.lastIndexOf('/') + 1)}***` : path;
}

function bodyOf(
  { json, html, stream }: Reply,
  method: string,
  match: Found,
  { toJson }: HandlerDependencies,
): PlainAnswer['body'] {
  if (method === 'HEAD') {
    void stream?.cancel();
    return undefined;
  }
  return stream ?? html ?? (json === undefined ? undefined : toJson(isOfWebhook(match) ? withPlainError(json) : json));
}

function headersOf(
  reply: Reply,
  request: PlainRequest,
  requestId: string,
  { cors, apiKeyHeader }: HandlerDependencies,
): Record<string, string> {
  const headers: Record<string, string> = {
    'x-request-id': requestId,
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    // A browser that opens a response runs nothing in it, whatever an execution has put there.
    'content-security-policy': 'sandbox',
  };
  if (reply.stream) headers['content-type'] = EVENT_STREAM;
  else if (reply.html !== undefined) headers['content-type'] = 'text/html; charset=utf-8';
  else if (reply.json !== undefined) headers['content-type'] = 'application/json; charset=utf-8';
  if (reply.headers) Object.assign(headers, reply.headers);
  if (cors) Object.assign(headers, corsHeaders(cors, request, apiKeyHeader));
  return headers;
}
