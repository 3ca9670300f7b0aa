/** Flows that call their own service over HTTP end after a few executions. */

import { expect, it } from 'vitest';
import { createHandler, createOrchestrator, fetchHttp, isOrchestratorError } from '../../src/index.ts';

const SERVICE = 'https://service.example/api/v1/execute/ensemble';

/** A service whose `api` agents reach its own handler. */
async function service() {
  const calls: string[] = [];
  const config = (name: string) => ({
    url: `${SERVICE}/${name}`,
    method: 'POST',
    auth: { type: 'bearer', token: '${env.TOKEN}' },
    body: {},
  });
  let token = '';
  const own: typeof fetch = (url, init) => {
    const request = new Request(url as string, init);
    request.headers.set('authorization', `Bearer ${token}`);
    calls.push(`${new URL(request.url).pathname.split('/').at(-1)} ${request.headers.get('x-ensemble-hops')}`);
    return handler.fetch(request);
  };
  const orchestrator = createOrchestrator({
    env: { TOKEN: 'unused' },
    http: fetchHttp({ fetch: own }),
    ensembles: [
      { name: 'again', flow: [{ agent: 'call', operation: 'api', config: config('again') }] },
      { name: 'parent', flow: [{ ensemble: 'child' }] },
      { name: 'child', flow: [{ agent: 'call', operation: 'api', config: config('parent') }] },
    ],
  });
  const handler = createHandler(orchestrator);
  ({ token } = await orchestrator.tokens.create({ name: 'loop', scopes: ['execute:ensembles', 'execute:agents'] }));
  return { orchestrator, calls };
}

it.each(['again', 'parent'] as const)(
  'a flow that calls itself over HTTP ends after six executions: %s',
  async (name) => {
    const { orchestrator, calls } = await service();
    expect((await orchestrator.execute(name)).status).toBe('failed');
    expect(calls).toEqual([1, 2, 3, 4, 5, 6].map((hops) => `${name} ${hops}`));
    const { executions } = await orchestrator.executions.list({ ensemble: name });
    expect(executions.map(({ trigger }) => trigger.hops)).toEqual([5, 4, 3, 2, 1, undefined]);
    await orchestrator.close();
  },
);

it('the refused call gets 409 and the reason; an own route passes the number on; a header that is no number is ignored', async () => {
  const { orchestrator } = await service();
  const { token } = await orchestrator.tokens.create({ name: 'own', scopes: ['execute:ensembles'] });
  const handler = createHandler(orchestrator);
  const post = (hops: string) =>
    handler.fetch(
      new Request(`${SERVICE}/parent`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'x-ensemble-hops': hops },
      }),
    );
  const refused = await post('6');
  expect([refused.status, await refused.json()]).toMatchObject([
    409,
    { error: { code: 'CONFLICT', message: expect.stringMatching(/^6 executions called each other over HTTP/) } },
  ]);
  expect((await post('many')).status).toBe(500);
  const thrown = await orchestrator.start('again', {}, { hops: 6 }).catch((error: unknown) => error);
  expect(isOrchestratorError(thrown, 'CONFLICT')).toBe(true);
  await expect(orchestrator.start('again', {}, { hops: -1 })).rejects.toThrow('`hops` must be a whole number from 0');
  await orchestrator.close();
});
