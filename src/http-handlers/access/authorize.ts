/** The third stage of the pipeline: finds the route, and checks whether this caller may use it. */

import { hasScope, type Principal, type TokenScope } from '../../engine/access/token.ts';
import { OrchestratorError } from '../../engine/base/errors.ts';
import type { PlainRequest } from '../../engine/host/host.port.ts';
import { errorReply, type Reply } from '../reply/reply.ts';
import { readQuery } from '../request/read-query.ts';
import type { Found, Match, Route } from '../router.ts';
import type { Caller } from './authenticate.ts';

export interface FoundRoute {
  readonly route: Route;
  readonly params: Match['params'];
}

/** The path and the method are checked before credentials, so the response for an unknown path is the same for every caller. */
export function findRoute(match: Found, method: string): FoundRoute | { readonly refusal: Reply } {
  if (match === 'nothing' || match === 'no-webhook') {
    const message =
      match === 'nothing'
        ? 'there is nothing at this path; look it up in the list of routes'
        : 'there is no webhook at this path';
    return { refusal: errorReply(new OrchestratorError('NOT_FOUND', message)) };
  }
  const { allow, routes, isWebhook } = match.resource;
  const route = routes.get(method);
  if (route) return { route, params: match.params };
  if (method === 'OPTIONS' && !isWebhook) return { refusal: { status: 204, headers: { allow } } };
  const message = `this path takes ${allow}; send one of these methods`;
  return { refusal: errorReply(new OrchestratorError('METHOD_NOT_ALLOWED', message), { allow }) };
}

/**
 * Refuses what a route would ignore, because the sender relies on its effect.
 *
 * @throws INVALID_REQUEST for a query or a condition that the route does not read
 */
export function rejectUnusedInput(request: PlainRequest, { scope, method, readsQuery, readsIfMatch }: Route): void {
  // Mail programs and proxies add parameters to links and probes.
  if (scope === 'public') return;
  if (!readsQuery) readQuery(request.query, {});
  // Reads are answered whole, whatever the caller has already.
  if (method === 'GET') return;
  const unread = ['If-Match', 'If-None-Match', 'If-Unmodified-Since'].slice(readsIfMatch ? 1 : 0);
  const found = unread.find((name) => request.header(name.toLowerCase()) !== undefined);
  if (found === undefined) return;
  throw new OrchestratorError('INVALID_REQUEST', `this request takes no \`${found}\`; leave it out`);
}

/** @returns the refusal, or undefined when the caller may use the route */
export function authorizeCaller(caller: Caller | undefined, { scope }: Route): Reply | undefined {
  if (scope === 'public') return undefined;
  if (!caller) throw new OrchestratorError('INTERNAL', 'the caller of a route with a scope was not authenticated');
  if ('failure' in caller)
    return errorReply(caller.failure, caller.challenge ? { 'www-authenticate': caller.challenge } : {});
  if (scope !== 'any') demandScope(scope, caller.principal);
  return undefined;
}

/** @throws FORBIDDEN for a principal without the scope */
export function demandScope(scope: TokenScope, principal: Principal | undefined): void {
  if (!principal || hasScope(principal, scope)) return;
  throw new OrchestratorError('FORBIDDEN', `this needs a token with the scope \`${scope}\``, {
    details: { requiredScope: scope, providedScopes: [...principal.scopes] },
  });
}
