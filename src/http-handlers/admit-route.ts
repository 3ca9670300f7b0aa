/** Stage three of the request line: whether there is such a route, and whether this caller may take it. */

import { OrchestratorError } from '../engine/errors.ts';
import { hasScope, type Principal, type Scope } from '../engine/model/token.ts';
import type { PlainRequest } from '../engine/ports/host.ts';
import type { Caller } from './authenticate.ts';
import { readQuery } from './read-query.ts';
import { errorReply, type Reply } from './reply.ts';
import type { Match, Route } from './router.ts';

export interface FoundRoute {
  readonly route: Route;
  readonly params: Match['params'];
}

/** Path and method come first: an unknown path says nothing of credentials (D30). */
export function findRoute(
  match: Match | 'nothing' | undefined,
  method: string,
): FoundRoute | { readonly refusal: Reply } {
  if (match === undefined || match === 'nothing') {
    return {
      refusal: errorReply(
        new OrchestratorError('NOT_FOUND', 'there is nothing at this path; look it up in the list of routes'),
      ),
    };
  }
  const { allow, routes } = match.resource;
  const route = routes.get(method);
  if (route) return { route, params: match.params };
  if (method === 'OPTIONS') return { refusal: { status: 204, headers: { allow } } };
  const message = `this path takes ${allow}; send one of these methods`;
  return { refusal: errorReply(new OrchestratorError('METHOD_NOT_ALLOWED', message), { allow }) };
}

/**
 * What a route would not look at is refused: who sends it counts on it.
 *
 * @throws INVALID_REQUEST for a query that nothing reads, and for an `Idempotency-Key` that nothing keeps
 */
export function refuseUnread(request: PlainRequest, { scope, method, readsQuery, repeatable }: Route): void {
  // Links and probes come with what mail programs and proxies hang on to them.
  if (scope === 'public') return;
  if (!readsQuery) readQuery(request.query, []);
  if (method !== 'POST' || repeatable || request.header('idempotency-key') === undefined) return;
  throw new OrchestratorError(
    'INVALID_REQUEST',
    'no `Idempotency-Key` is kept here: sent twice, this works twice; leave the header out',
  );
}

/** @returns the refusal, or undefined when the caller may */
export function refuseCaller(caller: Caller | undefined, { scope }: Route): Reply | undefined {
  if (scope === 'public') return undefined;
  if (!caller) throw new OrchestratorError('INTERNAL', 'nobody asked who the caller of a guarded route is');
  if ('failure' in caller) return errorReply(caller.failure, { 'www-authenticate': caller.challenge });
  return refuseWithout(scope, caller.principal);
}

/** @returns the refusal of a principal that does not hold the scope */
export function refuseWithout(scope: Scope, principal: Principal): Reply | undefined {
  if (hasScope(principal, scope)) return undefined;
  return errorReply(
    new OrchestratorError('FORBIDDEN', `this needs a token with the scope \`${scope}\``, {
      details: { requiredScope: scope, providedScopes: [...principal.scopes] },
    }),
    { 'www-authenticate': `Bearer error="insufficient_scope", scope="${scope}"` },
  );
}
