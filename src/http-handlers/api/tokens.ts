/** `/tokens`: creates, lists and revokes API tokens (the specification's Create, List and Revoke token). */

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

export async function revokeToken(call: HttpCall): Promise<Reply> {
  const id = readId(call, 'token');
  return { status: 200, json: await known(call.parts.orchestrator.tokens.revoke(id), 'token') };
}
