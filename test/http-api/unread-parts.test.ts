/** What a route would not look at, and a caller would count on, is refused instead of left out. */

import { beforeEach, describe, expect, it } from 'vitest';
import { type Ask, DOORS } from './doors.ts';
import { createService, post, type Service, told } from './service.ts';

const ECHO = '/api/v1/execute/ensemble/echo';

describe.each(DOORS)('unread parts by $door', ({ open }) => {
  let service: Service;
  let ask: Ask;
  let headers: { authorization: string };
  beforeEach(async () => {
    service = createService();
    ask = await open(service.handler);
    headers = await service.bearer('admin');
  });
  const isRefused = (message: RegExp) => ({
    status: 400,
    body: { error: { code: 'INVALID_REQUEST', message: expect.stringMatching(message) } },
  });

  it('contract 5: a query on a route that has none is 400, so that `?async=true` does not run in step', async () => {
    expect(await told(ask(`${ECHO}?async=true`, post({}, headers)))).toMatchObject(isRefused(/"async" is not known/));
    const { id } = await service.orchestrator.execute('echo');
    for (const path of [`executions/${id}`, 'ensembles/echo', 'tokens'])
      expect(await told(ask(`/api/v1/${path}?x=1`, { headers }))).toMatchObject(isRefused(/"x" is not known/));
    expect((await service.orchestrator.executions.list()).executions).toHaveLength(1);
  });

  it('probes may bring a query of their own, and nobody learns of a route by it', async () => {
    expect((await ask('/api/v1/health?from=balancer')).status).toBe(200);
    expect((await ask('/api/v1/tokens?x=1')).status).toBe(401);
  });

  it('contract 5: an Idempotency-Key that nobody would keep is 400, and nothing runs', async () => {
    const keyed = { ...headers, 'idempotency-key': 'order-7' };
    for (const [path, body] of [
      [ECHO, {}],
      ['/api/v1/execute/agent/double', { input: { n: 1 } }],
      ['/api/v1/tokens', { name: 'x', scopes: ['admin'] }],
    ] as const)
      expect(await told(ask(path, post(body, keyed)))).toMatchObject(isRefused(/Idempotency-Key/));
    const { executions } = service.orchestrator;
    expect((await executions.list()).executions).toEqual([]);
    expect(await service.orchestrator.tokens.list()).toHaveLength(1);
    const { id } = await service.orchestrator.execute('failing');
    expect(await told(ask(`/api/v1/executions/${id}/retry`, post({}, keyed)))).toMatchObject(
      isRefused(/Idempotency-Key/),
    );
  });

  it('a request that does no more the second time may have one', async () => {
    const begun = service.begun();
    const { id } = await service.orchestrator.start('slow');
    await begun;
    const keyed = { ...headers, 'idempotency-key': 'stop-7' };
    for (const path of ['signals/go', 'cancel'])
      expect((await ask(`/api/v1/executions/${id}/${path}`, post({}, keyed))).status).toBe(200);
  });
});
