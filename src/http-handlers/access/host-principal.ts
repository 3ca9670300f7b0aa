/** A caller that the host identifies by itself: the function that does it, and the check of what it returns. */

import type { Plan } from '../../engine/access/plan.ts';
import { planProblem } from '../../engine/access/rules/plans.ts';
import { type Principal, SCOPES, type TokenScope } from '../../engine/access/token.ts';
import { suggestName } from '../../engine/base/suggest-name.ts';
import type { HostInfo } from '../../engine/host/host.port.ts';

/** A caller that the host has identified by itself, for example by a session. */
export interface HostPrincipal {
  /** Names the caller, such as the id of a user: 1 to 200 characters. Open event streams are counted by it. */
  readonly id: string;
  /** What the caller may do. */
  readonly scopes: readonly TokenScope[];
  /** Default: `limits.plan` of the orchestrator. */
  readonly plan?: Plan;
}

/**
 * Identifies the caller of a request.
 *
 * @param request - method, URL and headers. It has no body
 * @param host - what the server knows about the request, such as the address of the peer
 * @returns undefined for a caller that this function does not know: then the API token of the request counts
 */
export type Authenticate = (
  request: Request,
  host: HostInfo,
) => HostPrincipal | undefined | Promise<HostPrincipal | undefined>;

const MAX_ID = 200;

/** @throws TypeError for anything but a principal */
export function readPrincipal(given: HostPrincipal, defaultPlan: Plan): Principal {
  const { id, scopes, plan = defaultPlan } = given;
  const wrong = (what: string) => new TypeError(`it must return { id, scopes, plan? } or undefined: ${what}`);
  if (typeof id !== 'string' || id === '' || id.length > MAX_ID)
    throw wrong(`\`id\` must be text of 1 to ${MAX_ID} characters`);
  if (!Array.isArray(scopes)) throw wrong('`scopes` must be a list of scopes');
  for (const scope of scopes) {
    if (SCOPES.includes(scope)) continue;
    const near = typeof scope === 'string' ? suggestName(scope, SCOPES) : undefined;
    const help = near ? `did you mean ${near}?` : `the scopes are ${SCOPES.join(', ')}`;
    throw wrong(`${JSON.stringify(scope)} is not a scope; ${help}`);
  }
  const problem = planProblem(plan);
  if (problem !== undefined) throw wrong(`\`plan\` ${problem}`);
  return { tokenId: id, name: id, scopes: [...scopes], plan };
}
