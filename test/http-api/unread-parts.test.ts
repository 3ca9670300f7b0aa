/** A route refuses the parts of a request that it would ignore, because the caller relies on them. */

import { beforeEach, describe, expect, it } from 'vitest';
import { type Ask, HOSTS } from './hosts.ts';
import { createService, post, readResponse, type Service } from './service.ts';

const ECHO = '/api/v1/execute/ensemble/echo';

describe.each(HOSTS)('unread parts by $host', ({ open }) => {
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

  it('a query on a route that reads none is 400, so that `?async=true` does not start a synchronous request', async () => {
    expect(await readResponse(ask(`${ECHO}?async=true`, post({}, headers)))).toMatchObject(
      isRefused(/"async" is not known/),
    );
    const { id } = await service.orchestrator.execute('echo');
    for (const path of [`executions/${id}`, 'ensembles/echo', 'tokens'])
      expect(await readResponse(ask(`/api/v1/${path}?x=1`, { headers }))).toMatchObject(isRefused(/"x" is not known/));
    expect((await service.orchestrator.executions.list()).executions).toHaveLength(1);
  });

  it('a probe may have a query, and a query reveals nothing to a caller without a token', async () => {
    expect((await ask('/api/v1/health?from=balancer')).status).toBe(200);
    expect((await ask('/api/v1/tokens?x=1')).status).toBe(401);
  });

  it('a request whose repetition has no further effect may have an Idempotency-Key', async () => {
    service = createService({}, { ensembles: [{ name: 'ask', flow: [{ wait: 'go' }, { wait: 'go' }] }] });
    ask = await open(service.handler);
    headers = await service.bearer('admin');
    const { id } = await service.orchestrator.start('ask');
    const keyed = { ...headers, 'idempotency-key': 'stop-7' };
    for (const path of ['signals/go', 'cancel'])
      expect((await ask(`/api/v1/executions/${id}/${path}`, post({}, keyed))).status).toBe(200);
  });
});
