/** A caller is kept for a run that goes on soon, and told at once of one that waits for long (contract 5). */

import { beforeEach, describe, expect, it } from 'vitest';
import { embeddedEngine } from '../../src/adapters/engine/embedded-engine.ts';
import { type Ask, DOORS } from './doors.ts';
import { createService, post, type Service, type Told, told } from './service.ts';

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

describe.each(DOORS)('runs that wait by $door', ({ open }) => {
  let service: Service;
  let ask: Ask;
  let headers: { authorization: string };
  let failures: number;
  /** Resolves when charging failed once more. */
  let failed: () => Promise<void>;
  const use = async (engine = embeddedEngine()) => {
    let tell: (() => void)[] = [];
    failed = () => new Promise((resolve) => tell.push(resolve));
    const charge = () => {
      if (failures === 0) return 'charged';
      failures -= 1;
      for (const resolve of tell) resolve();
      tell = [];
      throw new Error('busy');
    };
    service = createService({}, { ensembles: ENSEMBLES, scripts: { charge }, engine });
    ask = await open(service.handler);
    headers = await service.bearer('admin');
  };
  const execute = (name: string): Promise<Told> => told(ask(`/api/v1/execute/ensemble/${name}`, post({}, headers)));
  beforeEach(() => use());

  it('answers 202 at once when a run enters a wait of more than 10 s, and the run goes on', async () => {
    failures = 1;
    const answer = await execute('long');
    const { executionId } = answer.body;
    expect(answer).toMatchObject({ status: 202, body: { executionId: expect.any(String), status: 'waiting' } });
    expect(answer.headers.get('location')).toBe(`/api/v1/executions/${executionId}`);
    await service.clock.advance(10_001);
    expect(await service.orchestrator.executions.get(executionId)).toMatchObject({
      status: 'completed',
      output: { charged: 'charged' },
    });
  });

  it('keeps the caller through a wait of 10 s', async () => {
    failures = 1;
    const onceFailed = failed();
    const answer = execute('short');
    await onceFailed;
    await service.clock.advance(10_000);
    expect(await answer).toMatchObject({ status: 200, body: { output: { charged: 'charged' }, duration: 10_000 } });
  });

  it('keeps the caller through short waits, until one is long', async () => {
    failures = 3;
    const answered: Told[] = [];
    const onceFailed = failed();
    const answer = execute('growing').then((one) => answered.push(one));
    await onceFailed;
    await service.clock.advance(4_000);
    await service.clock.advance(7_999);
    expect(answered).toEqual([]);
    const lastFailed = failed();
    await service.clock.advance(1);
    await lastFailed;
    await answer;
    expect(answered).toMatchObject([{ status: 202, body: { status: 'waiting' } }]);
  });

  it('tells the caller of a run that was queued first, too', async () => {
    await use(embeddedEngine({ concurrency: 1 }));
    failures = 1;
    const begun = service.begun();
    const slow = execute('slow');
    await begun;
    const waits = failed();
    const answer = execute('long');
    while ((await service.orchestrator.executions.list({ status: 'queued' })).executions.length === 0)
      await new Promise(setImmediate);
    service.release();
    await waits;
    expect(await answer).toMatchObject({ status: 202, body: { status: 'waiting' } });
    expect((await slow).status).toBe(200);
  });
});
