/** `GET /usage`: what the presented token has used (the specification's Usage). */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { HttpCall } from '../call.ts';
import type { Reply } from '../reply.ts';

export async function getUsage({ parts, principal }: HttpCall): Promise<Reply> {
  if (!principal) throw new OrchestratorError('INTERNAL', 'the caller of a route with a token was not authenticated');
  return { status: 200, json: await parts.orchestrator.usage.get(principal) };
}
