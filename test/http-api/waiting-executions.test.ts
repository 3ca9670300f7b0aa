/** A caller waits for an execution that resumes soon, and gets 202 at once for one that waits longer. */

import { beforeEach, describe, expect, it } from 'vitest';
import { embeddedEngine } from '../../src/adapters/embedded-engine/embedded-engine.ts';
import { type Ask, HOSTS } from './hosts.ts';
import { createService, type JsonResponse, post, readResponse, type Service } from './service.ts';

const flow = (delay: number, backoff = 'fixed') => [
  {
    agent: 'charge',
    operation: 'code',
    config: { script: 'charge' },
    retry: { maxAttempts: 5, backoff, delay },
  },
];
const ENSEMBLES = [
  { name: 'long', flow: flow(10_001), outputs: { charged: '${charge.output}' } },
  { name: 'short', flow: flow(10_000), outputs: { charged: '${charge.output}' } },
  { name: 'growing', flow: flow(4_000, 'linear'), outputs: { charged: '${charge.output}' } },
  { name: 'slow', flow: [{ agent: 'wait', operation: 'code', config: { script: 'wait' } }] },
];

describe.each(HOSTS)('executions that wait by $host', ({ open }) => {
  let service: Service;
  let ask: Ask;
  let headers: { authorization: string };
  let failures: number;
  /** Resolves when charging fails the next time. */
  let failed: () => Promise<void>;
  const use = async (engine = embeddedEngine()) => {
    let resolvers: (() => void)[] = [];
    failed = () => new Promise((resolve) => resolvers.push(resolve));
    const charge = () => {
      if (failures === 0) return 'charged';
      failures -= 1;
      for (const resolve of resolvers) resolve();
      resolvers = [];
      throw new Error('busy');
    };
    service = createService({}, { ensembles: ENSEMBLES, scripts: { charge }, engine });
    ask = await open(service.handler);
    headers = await service.bearer('admin');
  };
  const execute = (name: string): Promise<JsonResponse> =>
    readResponse(ask(`/api/v1/execute/ensemble/${name}`, post({}, headers)));
  beforeEach(() => use());

  it('returns 202 at once when an execution begins a wait of more than 10 s, and the execution continues', async () => {
    failures = 1;
    const response = await execute('long');
    const { executionId } = response.body;
    expect(response).toMatchObject({ status: 202, body: { executionId: expect.any(String), status: 'waiting' } });
    expect(response.headers.get('location')).toBe(`/api/v1/executions/${executionId}`);
    await service.clock.advance(10_001);
    expect(await service.orchestrator.executions.get(executionId)).toMatchObject({
      status: 'completed',
      output: { charged: 'charged' },
    });
  });

  it('the caller waits through a wait of 10 s', async () => {
    failures = 1;
    const onceFailed = failed();
    const response = execute('short');
    await onceFailed;
    await service.clock.advance(10_000);
    expect(await response).toMatchObject({ status: 200, body: { output: { charged: 'charged' }, duration: 10_000 } });
  });

  it('the caller waits through short waits, until one is long', async () => {
    failures = 3;
    const received: JsonResponse[] = [];
    const onceFailed = failed();
    const response = execute('growing').then((one) => received.push(one));
    await onceFailed;
    await service.clock.advance(4_000);
    await service.clock.advance(7_999);
    expect(received).toEqual([]);
    const lastFailed = failed();
    await service.clock.advance(1);
    await lastFailed;
    await response;
    expect(received).toMatchObject([{ status: 202, body: { status: 'waiting' } }]);
  });

  it('returns 202 for an execution that was queued first, too', async () => {
    await use(embeddedEngine({ concurrency: 1 }));
    failures = 1;
    const begun = service.begun();
    const slow = execute('slow');
    await begun;
    const waits = failed();
    const response = execute('long');
    while ((await service.orchestrator.executions.list({ status: 'queued' })).executions.length === 0)
      await new Promise(setImmediate);
    service.release();
    await waits;
    expect(await response).toMatchObject({ status: 202, body: { status: 'waiting' } });
    expect((await slow).status).toBe(200);
  });
});
