/** The token of a server goes with each request, is renewed once, and is shown nowhere. */

import { describe, expect, it } from 'vitest';
import { callOf, connect, serve } from './access.ts';

describe('authorization', () => {
  it('is sent with each request, and renewed once when the server refuses it', async () => {
    const asked: boolean[] = [];
    const served = await serve({
      kind: 'sessions',
      intercept({ headers }, response) {
        return headers.authorization !== 'Bearer new-token' && Boolean(response.writeHead(401).end());
      },
    });
    let token = 'old-token';
    const server = connect(served.url, {
      async authorize(renew) {
        asked.push(renew);
        if (renew) token = 'new-token';
        return { authorization: `Bearer ${token}` };
      },
      sign: (body) => ({ 'x-service-signature': `signed ${body.length}` }),
    });
    expect((await server.callTool(callOf('echo'))).isError).toBe(false);
    expect(asked.filter((renew) => renew)).toHaveLength(1);
    for (const { headers, method } of served.seen) {
      expect(headers.authorization).toMatch(/^Bearer /);
      if (method === 'POST') expect(headers['x-service-signature']).toMatch(/^signed [1-9]/);
    }
  });

  it('that the server refuses again ends the call, and no message shows it', async () => {
    const served = await serve({
      kind: 'sessions',
      intercept: ({ headers }, response) =>
        Boolean(response.writeHead(401).end(`unknown token ${headers.authorization?.slice(7)}`)),
    });
    let count = 0;
    const server = connect(served.url, {
      authorize: async () => ({ authorization: `Bearer secret-token-${++count}` }),
    });
    const failed = await server.callTool(callOf('echo')).catch((error: unknown) => error);
    expect(failed).toMatchObject({ code: 'AGENT_FAILED', retryable: false, details: { status: 401 } });
    expect(JSON.stringify(failed) + String(failed)).not.toContain('secret-token');
    expect(served.seen).toHaveLength(2);
  });
});
