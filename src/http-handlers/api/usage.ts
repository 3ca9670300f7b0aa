/** `GET /usage`: what the presented token has used (the specification's Usage). `GET /caller`: who presented it. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { Principal } from '../../engine/model/token.ts';
import type { HttpCall } from '../call.ts';
import type { Reply } from '../reply.ts';

export async function getUsage(call: HttpCall): Promise<Reply> {
  return { status: 200, json: await call.parts.orchestrator.usage.get(callerOf(call)) };
}

/** Who the caller is, and what it may do. */
export function getCaller(call: HttpCall): Reply {
  const { tokenId: id, name, scopes, plan } = callerOf(call);
  const { readOnly } = call.parts;
  return { status: 200, json: { id, name, scopes, plan, ...(readOnly && { readOnly }) } };
}

function callerOf({ principal }: HttpCall): Principal {
  if (principal) return principal;
  throw new OrchestratorError('INTERNAL', 'the caller of a route with a token was not authenticated');
}
