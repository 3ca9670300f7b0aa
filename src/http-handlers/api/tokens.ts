/** `/tokens`: creates, lists and revokes API tokens (the specification's Create, List and Revoke token). */

import { newToken } from '../../engine/access/rules/tokens.ts';
import { OrchestratorError } from '../../engine/base/errors.ts';
import type { HttpCall } from '../call.ts';
import { pageOfList } from '../reply/page-of-list.ts';
import { page } from '../request/read-query.ts';
import { call } from './define-call.ts';

export const tokenCalls = [
  call('POST /tokens', {
    id: 'createToken',
    summary: 'Creates a token',
    scope: 'admin',
    bodyShown: newToken,
    // A function checks the plan, so its form says nothing about it.
    bodyShapes: { plan: 'Plan' },
    body: 'json',
    replies: { 201: 'NewToken' },
    run: ({ orchestrator, body }) => orchestrator.tokens.create((body ?? {}) as NewToken),
  }),
  call('GET /tokens', {
    id: 'listTokens',
    summary: 'Lists the tokens',
    scope: 'admin',
    query: page,
    replies: { 200: 'Tokens' },
    run: async (given) => pageOfList(given, 'tokens', await given.orchestrator.tokens.list(), { idOf: ({ id }) => id }),
  }),
  call('GET /tokens/:id/usage', {
    id: 'getTokenUsage',
    summary: 'What a token has used',
    scope: 'admin',
    of: 'token',
    findsItself: true,
    replies: { 200: 'Usage' },
    async run({ orchestrator: { tokens, usage }, id: tokenId }) {
      const token = (await tokens.list()).find(({ id }) => id === tokenId);
      if (!token) throw new OrchestratorError('NOT_FOUND', `there is no token ${tokenId}`);
      const { name, scopes, plan } = token;
      return usage.get({ tokenId, name, scopes, plan });
    },
  }),
  call('DELETE /tokens/:id', {
    id: 'revokeToken',
    summary: 'Revokes a token',
    scope: 'admin',
    of: 'token',
    replies: { 200: 'RevokedToken' },
    run: ({ orchestrator, id }) => orchestrator.tokens.revoke(id),
  }),
] as const;

type NewToken = Parameters<HttpCall['dependencies']['orchestrator']['tokens']['create']>[0];
