/** `/tokens`: creates, lists and revokes API tokens (the specification's Create, List and Revoke token). */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { HttpCall } from '../call.ts';
import { pageOfList } from '../page-of-list.ts';
import { known, readId } from '../read-id.ts';
import { readJson } from '../read-json.ts';
import type { Reply } from '../reply.ts';

type NewToken = Parameters<HttpCall['parts']['orchestrator']['tokens']['create']>[0];

export async function createToken(call: HttpCall): Promise<Reply> {
  const body = await readJson(call);
  // `tokens.create()` checks the body.
  return { status: 201, json: await call.parts.orchestrator.tokens.create(body as NewToken) };
}

export async function listTokens(call: HttpCall): Promise<Reply> {
  return pageOfList(call, 'tokens', await call.parts.orchestrator.tokens.list(), { idOf: ({ id }) => id });
}

/** What a token has used, for who manages tokens. */
export async function getTokenUsage(call: HttpCall): Promise<Reply> {
  const tokenId = readId(call, 'token');
  const { tokens, usage } = call.parts.orchestrator;
  const token = (await tokens.list()).find(({ id }) => id === tokenId);
  if (!token) throw new OrchestratorError('NOT_FOUND', `there is no token ${tokenId}`);
  const { name, scopes, plan } = token;
  return { status: 200, json: await usage.get({ tokenId, name, scopes, plan }) };
}

export async function revokeToken(call: HttpCall): Promise<Reply> {
  const id = readId(call, 'token');
  return { status: 200, json: await known(call.parts.orchestrator.tokens.revoke(id), 'token') };
}
