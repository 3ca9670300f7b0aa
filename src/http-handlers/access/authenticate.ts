/** The second stage of the pipeline: identifies the caller, or says why it can't, as a value (RFC 6750; the specification's API tokens, rules 1 and 4). */

import { hasScope, type Principal, SCOPES } from '../../engine/access/token.ts';
import { isOrchestratorError, messageOf, OrchestratorError } from '../../engine/base/errors.ts';
import type { HostInfo, PlainRequest } from '../../engine/host/host.port.ts';
import type { HandlerDependencies, HttpCall } from '../call.ts';
import { readThing } from '../request/read-id.ts';
import { type Authenticate, readPrincipal } from './host-principal.ts';

export type Caller =
  | { readonly principal: Principal }
  | {
      readonly failure: OrchestratorError;
      /** The value of `WWW-Authenticate`. */
      readonly challenge?: string;
    };

/** A request, before its caller is known. */
export interface Arrival {
  readonly request: PlainRequest;
  readonly host: HostInfo;
  readonly dependencies: HandlerDependencies;
}

type Found = Pick<HttpCall, 'route' | 'params'>;

const SCHEME = 'bearer ';

/**
 * @param found - the route of the request, if it has one
 * @param isOpen - the response is an event stream that is open already
 * @throws what the storage throws; INTERNAL when `authenticate` of the host fails
 */
export async function authenticate(arrival: Arrival, found: Found | undefined, isOpen = false): Promise<Caller> {
  const caller = await identify(arrival, found, isOpen);
  return arrival.dependencies.readOnly && 'principal' in caller ? { principal: readingOnly(caller.principal) } : caller;
}

function readingOnly(principal: Principal): Principal {
  const reads = SCOPES.filter((scope) => scope.startsWith('read:') && hasScope(principal, scope));
  return { ...principal, scopes: reads };
}

async function identify(arrival: Arrival, found: Found | undefined, isOpen: boolean): Promise<Caller> {
  const { request, dependencies } = arrival;
  const ticket = found?.route.takesTicket ? new URLSearchParams(request.query).get('ticket') : null;
  if (found && ticket !== null) {
    return identifiedCaller(() => {
      readThing(found.params, 'execution');
      return dependencies.orchestrator.executions.verifyTicket(found.params.id ?? '', ticket, { isOpen });
    });
  }
  const known = found && dependencies.authenticate ? await askHost(dependencies.authenticate, arrival) : undefined;
  return known ?? (found?.route.takesApiKey ? byApiKey(arrival) : undefined) ?? byToken(arrival);
}

/** A request with two credentials is refused: one of them would be ignored. */
function byApiKey({ request, dependencies }: Arrival): Promise<Caller> | Caller | undefined {
  const key = request.header(dependencies.apiKeyHeader);
  if (key === undefined) return undefined;
  if (request.header('authorization') === undefined)
    return identifiedCaller(() => verify(key.trim(), request, dependencies));
  return refusedCaller(
    'Bearer',
    'send the API token once: as `Authorization: Bearer <token>`, or in the header for API keys',
  );
}

async function byToken({ request, dependencies }: Arrival): Promise<Caller> {
  const header = request.header('authorization');
  if (header === undefined) {
    return refusedCaller('Bearer', 'this needs an API token: send the header `Authorization: Bearer <token>`');
  }
  if (header.slice(0, SCHEME.length).toLowerCase() !== SCHEME) {
    return refusedCaller(
      'Bearer',
      'API tokens are sent as `Authorization: Bearer <token>`; other schemes are not accepted',
    );
  }
  return identifiedCaller(() => verify(header.slice(SCHEME.length).trim(), request, dependencies));
}

/** How often a token is looked up while the storage is away, for which each look-up waits 2 s. */
const LOOK_UPS = 5;

/** A request that changes something waits longer for a storage that is away than one that reads. */
async function verify(
  value: string,
  { method }: PlainRequest,
  { orchestrator }: HandlerDependencies,
): Promise<Principal> {
  for (let left = method === 'GET' || method === 'HEAD' ? 1 : LOOK_UPS; ; left -= 1) {
    try {
      return await orchestrator.tokens.verify(value);
    } catch (error) {
      if (left === 1 || !isOrchestratorError(error, 'OVERLOADED')) throw error;
    }
  }
}

async function identifiedCaller(verify: () => Promise<Principal>): Promise<Caller> {
  try {
    return { principal: await verify() };
  } catch (thrown) {
    if (!isUnknownCaller(thrown)) throw thrown;
    return { failure: thrown, challenge: 'Bearer error="invalid_token"' };
  }
}

function isUnknownCaller(thrown: unknown): thrown is OrchestratorError {
  return isOrchestratorError(thrown, 'UNAUTHORIZED') || isOrchestratorError(thrown, 'TOKEN_EXPIRED');
}

async function askHost(ask: Authenticate, { request, host, dependencies }: Arrival): Promise<Caller | undefined> {
  try {
    const given = await ask(request.withoutBody(), host);
    return given === undefined || given === null
      ? undefined
      : { principal: readPrincipal(given, dependencies.orchestrator.limits.defaultPlan) };
  } catch (thrown) {
    if (isUnknownCaller(thrown)) return { failure: thrown, challenge: 'Bearer' };
    if (isOrchestratorError(thrown, 'FORBIDDEN')) return { failure: thrown };
    throw new OrchestratorError('INTERNAL', `\`authenticate\` of the handler failed: ${messageOf(thrown)}`, {
      cause: thrown,
    });
  }
}

export function principalOf(caller: Caller | undefined): Principal | undefined {
  return caller && 'principal' in caller ? caller.principal : undefined;
}

/**
 * Whether the reader of an open event stream still has the scope of its route. Since the request arrived, its token may have expired
 * or may have been revoked.
 *
 * @throws what `authenticate` throws
 */
export async function isStillAllowed(arrival: Arrival, found: Found): Promise<boolean> {
  const principal = principalOf(await authenticate(arrival, found, true));
  const { scope } = found.route;
  return principal !== undefined && (scope === 'public' || scope === 'any' || hasScope(principal, scope));
}

function refusedCaller(challenge: string, message: string): Caller {
  return { failure: new OrchestratorError('UNAUTHORIZED', message), challenge };
}
