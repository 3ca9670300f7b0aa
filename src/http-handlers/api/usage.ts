/** `GET /usage`: what the presented token has used (the specification's Usage). `GET /caller`: who presented it. */

import type { Principal } from '../../engine/access/token.ts';
import { OrchestratorError } from '../../engine/base/errors.ts';
import { call } from './define-call.ts';

export const callerCalls = [
  call('GET /usage', {
    id: 'getUsage',
    summary: 'What the caller has used',
    scope: 'any',
    replies: { 200: 'Usage' },
    run: ({ orchestrator, principal }) => orchestrator.usage.get(callerOf(principal)),
  }),
  call('GET /caller', {
    id: 'getCaller',
    summary: 'Who the caller is, and what it may do',
    scope: 'any',
    replies: { 200: 'Caller' },
    run({ principal, http }) {
      const { tokenId: id, name, scopes, plan } = callerOf(principal);
      const { readOnly } = http.dependencies;
      return { id, name, scopes, plan, ...(readOnly && { readOnly }) };
    },
  }),
] as const;

function callerOf(principal: Principal | undefined): Principal {
  if (principal) return principal;
  throw new OrchestratorError('INTERNAL', 'the caller of a route with a token was not authenticated');
}
