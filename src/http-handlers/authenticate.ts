/** Stage two of the request line: who calls, or why nobody knows, as a value (RFC 6750; the seed's API tokens, rules 1 and 4). */

import { isOrchestratorError, OrchestratorError } from '../engine/errors.ts';
import { hasScope, type Principal, type Scope } from '../engine/model/token.ts';
import type { PlainRequest } from '../engine/ports/host.ts';
import type { Orchestrator } from '../orchestrator.ts';

export type Caller =
  | { readonly principal: Principal }
  | {
      readonly failure: OrchestratorError;
      /** What `WWW-Authenticate` says. */
      readonly challenge: string;
    };

const SCHEME = 'bearer ';

/** @throws what the storage throws */
export async function authenticate(request: PlainRequest, { tokens }: Orchestrator): Promise<Caller> {
  const header = request.header('authorization');
  if (header === undefined) {
    return refused('Bearer', 'this needs an API token: send the header `Authorization: Bearer <token>`');
  }
  if (header.slice(0, SCHEME.length).toLowerCase() !== SCHEME) {
    return refused('Bearer', 'API tokens are sent as `Authorization: Bearer <token>`; other schemes are not taken');
  }
  try {
    return { principal: await tokens.verify(header.slice(SCHEME.length).trim()) };
  } catch (thrown) {
    if (!isOrchestratorError(thrown, 'UNAUTHORIZED') && !isOrchestratorError(thrown, 'TOKEN_EXPIRED')) throw thrown;
    return { failure: thrown, challenge: 'Bearer error="invalid_token"' };
  }
}

export function principalOf(caller: Caller | undefined): Principal | undefined {
  return caller && 'principal' in caller ? caller.principal : undefined;
}

/**
 * Whether who sent a request may still do what needs the scope: a token may have been revoked, or have expired, since it came.
 *
 * @throws what the storage throws
 */
export async function isStillAllowed(
  request: PlainRequest,
  orchestrator: Orchestrator,
  scope: Scope,
): Promise<boolean> {
  const principal = principalOf(await authenticate(request, orchestrator));
  return principal !== undefined && hasScope(principal, scope);
}

function refused(challenge: string, message: string): Caller {
  return { failure: new OrchestratorError('UNAUTHORIZED', message), challenge };
}
