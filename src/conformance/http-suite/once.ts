/** HTTP suite: one call sends one request, however the connection ends. The peer counts. */

import { failureOf, type It, type SuiteContext, same } from './context.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
/** How a connection ends without an answer, and what the call rejects with. */
const ENDS = { end: 'AGENT_FAILED', reset: 'AGENT_FAILED', never: 'TIMEOUT' } as const;

/** @param resent - the methods that the runtime may send twice */
export function onceCases({ create, peer, ask }: SuiteContext, resent: readonly string[], it: It): void {
  for (const method of METHODS) {
    it(`sends one ${method} for one call, on a new connection and on one that it has kept`, async () => {
      const body = method === 'GET' || method === 'HEAD' ? undefined : '{"amount":1}';
      for (const [way, code] of Object.entries(ENDS)) {
        for (const isKept of [false, true]) {
          const name = `${way}/${method}-${isKept}`;
          const http = create({ allow: ['127.0.0.0/8'] });
          const url = (path: string) => `${peer()}/${path}`;
          if (isKept) await http.send({ method: 'GET', url: url('kept'), timeoutMs: 5_000 });
          const before = await ask(`/count/${name}`);
          const call = http.send({ method, url: url(name), timeoutMs: 150, ...(body !== undefined && { body }) });
          same((await failureOf(call)).code, code, `the code for /${name}`);
          const sent = (await ask(`/count/${name}`)) - before;
          const may = resent.includes(method) ? 2 : 1;
          if (sent < 1 || sent > may) throw new Error(`${method} /${name} reached the peer ${sent} times`);
        }
      }
    });
  }
}
