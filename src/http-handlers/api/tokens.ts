/** `/tokens`: making, listing and revoking API tokens (the seed's Create, List and Revoke token). */

import { isOrchestratorError } from '../../engine/errors.ts';
import type { Call } from '../call.ts';
import { noSuch, readId } from '../read-id.ts';
import { readJson } from '../read-json.ts';
import type { Reply } from '../reply.ts';

type NewToken = Parameters<Call['parts']['orchestrator']['tokens']['create']>[0];

export async function createToken(call: Call): Promise<Reply> {
  const body = await readJson(call);
  // What it holds is checked where tokens are made: the same for every door.
  return { status: 201, json: await call.parts.orchestrator.tokens.create(body as NewToken) };
}

export async function listTokens({ parts }: Call): Promise<Reply> {
  return { status: 200, json: { tokens: await parts.orchestrator.tokens.list() } };
}

export async function revokeToken(call: Call): Promise<Reply> {
  const id = readId(call, 'token');
  try {
    return { status: 200, json: await call.parts.orchestrator.tokens.revoke(id) };
  } catch (thrown) {
    throw isOrchestratorError(thrown, 'NOT_FOUND') ? noSuch('token') : thrown;
  }
}
