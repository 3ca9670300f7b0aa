/** Counts each request against the limits of its caller and its address, and says in headers how much is left (the specification's limits, rules 2 and 3). */

import type { RequestLimit } from '../../engine/access/rules/limits.ts';
import type { Principal } from '../../engine/access/token.ts';
import { OrchestratorError } from '../../engine/base/errors.ts';
import type { HostInfo, PlainRequest } from '../../engine/host/host.port.ts';
import type { MaybePromise } from '../../engine/operation/operation.port.ts';
import type { HandlerDependencies, HttpCall } from '../call.ts';
import { errorReply, type Reply } from '../reply/reply.ts';

/** The address of the client; undefined if the host does not know it. */
export function addressOf(
  request: PlainRequest,
  { ip }: HostInfo,
  { findAddress }: HandlerDependencies,
): string | undefined {
  return findAddress(ip, request.header('x-forwarded-for'));
}

/** Counts a request of a public webhook, or one that its webhook refuses. */
export function countWebhookRequest(
  { dependencies, request, host }: HttpCall,
  webhook: 'public' | 'refused',
): MaybePromise<RequestLimit> {
  return dependencies.orchestrator.limits.countRequest({ address: addressOf(request, host, dependencies), webhook });
}

export function countRequest(
  { orchestrator }: HandlerDependencies,
  principal: Principal | undefined,
  address: string | undefined,
): MaybePromise<RequestLimit> {
  return orchestrator.limits.countRequest({ principal, address });
}

/** The response to a request beyond a limit; undefined for any other request. */
export function refuseExcess(limit: RequestLimit): Reply | undefined {
  if (limit.allowed) return undefined;
  const isAddress = limit.of === 'address';
  const retryAfter = retryAfterOf(limit);
  // The specification's body is that of a token's limit.
  const details = {
    limit: limit.limit,
    reset: secondsOf(limit.resetAt),
    retryAfter,
    ...(isAddress && { of: limit.of }),
  };
  const whose = limit.isShared ? ' of all clients without a known address' : isAddress ? ' of this address' : '';
  const message = `the limit of ${limit.limit} requests${whose} is reached; send the next one in ${retryAfter} seconds`;
  return errorReply(new OrchestratorError('RATE_LIMIT_EXCEEDED', message, { details }));
}

/** Writes the headers of the limit. @param standard - also those of the IETF's draft `RateLimit header fields for HTTP` */
export function setLimitHeaders(headers: Record<string, string>, limit: RequestLimit, standard: boolean): void {
  headers['x-ratelimit-limit'] = String(limit.limit);
  headers['x-ratelimit-remaining'] = String(limit.remaining);
  headers['x-ratelimit-reset'] = String(secondsOf(limit.resetAt));
  if (!limit.allowed) headers['x-ratelimit-retry-after'] = String(retryAfterOf(limit));
  if (!standard) return;
  headers['ratelimit-policy'] = `"${limit.of}";q=${limit.limit};w=${Math.ceil(limit.windowMs / 1000)}`;
  headers.ratelimit = `"${limit.of}";r=${limit.remaining};t=${Math.max(0, Math.ceil(limit.waitMs / 1000))}`;
}

function secondsOf(instant: number): number {
  return Math.ceil(instant / 1000);
}

// A client that waits so long is served, so the time is rounded up.
function retryAfterOf({ waitMs }: RequestLimit): number {
  return Math.max(1, Math.ceil(waitMs / 1000));
}
