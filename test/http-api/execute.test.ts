/** Running an ensemble or an agent over HTTP: at once, later, and how each end is told. */

import { request as httpRequest } from 'node:http';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { toNodeListener } from '../../src/adapters/node/to-node-listener.ts';
import { type Ask, DOORS, serve } from './doors.ts';
import { createService, post, type Service, told } from './service.ts';

const ENSEMBLE = '/api/v1/execute/ensemble';

afterEach(() => {
  vi.restoreAllMocks();
});

describe.each(DOORS)('execute by $door', ({ open }) => {
  let service: Service;
  let ask: Ask;
  let headers: { authorization: string };
  beforeEach(async () => {
    service = createService();
    ask = await open(service.handler);
    headers = await service.bearer('execute:ensembles', 'execute:agents');
  });

  it('answers 200 with what the run gave', async () => {
    const answer = await told(ask(`${ENSEMBLE}/greet`, post({ input: { who: 'Ada' } }, headers)));
    expect(answer).toMatchObject({ status: 200 });
    expect(answer.body).toEqual({
      executionId: expect.stringMatching(/^exec_[0-9A-Z]{26}$/),
      status: 'completed',
      output: { text: 'Hello Ada' },
      metrics: { totalDuration: 0, agents: 1 },
      duration: 0,
    });
    expect(await service.orchestrator.executions.get(answer.body.executionId)).toMatchObject({
      ensemble: 'greet',
      trigger: { type: 'http' },
      input: { who: 'Ada' },
    });
  });

  it('runs one agent', async () => {
    const answer = await told(ask('/api/v1/execute/agent/double', post({ input: { n: 21 } }, headers)));
    expect(answer).toMatchObject({ status: 200, body: { status: 'completed', output: 42 } });
    expect(await told(ask('/api/v1/execute/agent/greet', post({}, headers)))).toMatchObject({ status: 404 });
  });

  it.each([
    ['an empty object', post({})],
    ['an empty body of JSON', post('')],
    ['no body at all', { method: 'POST' }],
  ])('takes %s for an empty input', async (_what, init: RequestInit) => {
    const answer = await told(
      ask(`${ENSEMBLE}/echo`, { ...init, headers: { ...(init.headers as object), ...headers } }),
    );
    expect(answer).toMatchObject({ status: 200, body: { output: { said: {} } } });
  });

  it('refuses an input that does not fit, and stores nothing', async () => {
    const answer = await told(ask(`${ENSEMBLE}/greet`, post({ input: { who: 7 } }, headers)));
    expect(answer).toMatchObject({
      status: 400,
      body: { error: { code: 'INVALID_INPUT', issues: [{ path: 'who' }] } },
    });
    expect(await service.orchestrator.executions.list()).toEqual({ executions: [] });
  });

  it('answers 404 for an ensemble that is not there', async () => {
    expect(await told(ask(`${ENSEMBLE}/nobody`, post({}, headers)))).toMatchObject({
      status: 404,
      body: { error: { code: 'NOT_FOUND' } },
    });
  });

  it('tells the nearest name to those alone who may list the names', async () => {
    for (const [path, scope] of [
      ['ensemble/failin', 'read:ensembles'],
      ['agent/doubel', 'read:agents'],
    ] as const) {
      const blind = await told(ask(`/api/v1/execute/${path}`, post({ input: {} }, headers)));
      expect([blind.status, blind.body.error.message]).toEqual([404, expect.not.stringMatching(/failing|double/)]);
      const reader = await service.bearer('execute:ensembles', 'execute:agents', scope);
      const seeing = await told(ask(`/api/v1/execute/${path}`, post({ input: {} }, reader)));
      expect([seeing.status, seeing.body.error.message]).toEqual([404, expect.stringMatching(/failing|double/)]);
    }
  });

  it('answers 500 EXECUTION_FAILED with the execution, the agent and its message', async () => {
    const answer = await told(ask(`${ENSEMBLE}/failing`, post({}, headers)));
    expect(answer.status).toBe(500);
    expect(answer.body.error).toMatchObject({
      code: 'EXECUTION_FAILED',
      message: 'the card was refused',
      executionId: expect.stringMatching(/^exec_/),
      status: 'failed',
      reason: 'AGENT_FAILED',
      agent: 'charge',
    });
  });

  it('answers 504 EXECUTION_TIMEOUT when the run times out', async () => {
    const begun = service.begun();
    const answer = told(ask(`${ENSEMBLE}/hasty`, post({}, headers)));
    await begun;
    await service.clock.advance(5_000);
    expect(await answer).toMatchObject({
      status: 504,
      body: { error: { code: 'EXECUTION_TIMEOUT', status: 'timed_out', executionId: expect.stringMatching(/^exec_/) } },
    });
  });

  it('answers 409 EXECUTION_CANCELLED when the run is cancelled', async () => {
    const start = service.orchestrator.start;
    const runs: { cancel(): void }[] = [];
    Object.assign(service.orchestrator, {
      start: async (...args: Parameters<typeof start>) => {
        const run = await start(...args);
        runs.push(run);
        return run;
      },
    });
    const begun = service.begun();
    const answer = told(ask(`${ENSEMBLE}/slow`, post({}, headers)));
    await begun;
    await service.clock.advance(0);
    runs[0]?.cancel();
    expect(await answer).toMatchObject({
      status: 409,
      body: { error: { code: 'EXECUTION_CANCELLED', status: 'cancelled' } },
    });
  });

  it.each([
    ['`async: true`', post({ async: true }), {}, null],
    ['`Prefer: respond-async`', post({}), { prefer: 'respond-async' }, 'respond-async'],
    [
      '`Prefer` with more in it',
      post({ async: false }),
      { prefer: 'handling=lenient, Respond-Async; wait=10' },
      'respond-async',
    ],
  ])('answers 202 with Location for %s, and the run goes on', async (_what, init, extra, applied) => {
    const begun = service.begun();
    const answer = await told(
      ask(`${ENSEMBLE}/slow`, { ...init, headers: { ...(init.headers as object), ...headers, ...extra } }),
    );
    const { executionId } = answer.body;
    expect(answer).toMatchObject({
      status: 202,
      body: { executionId: expect.stringMatching(/^exec_/), status: 'running' },
    });
    expect(answer.headers.get('location')).toBe(`/api/v1/executions/${executionId}`);
    expect(answer.headers.get('preference-applied')).toBe(applied);
    await begun;
    expect(await service.orchestrator.executions.get(executionId)).toMatchObject({ status: 'running' });
    service.release();
    await service.clock.advance(0);
    expect(await service.orchestrator.executions.get(executionId)).toMatchObject({
      status: 'completed',
      output: { done: true },
    });
  });

  it('answers 202 when the run outlasts syncTimeoutMs, to the millisecond', async () => {
    const begun = service.begun();
    let answered = false;
    const answer = told(ask(`${ENSEMBLE}/slow`, post({}, headers))).finally(() => {
      answered = true;
    });
    await begun;
    await service.clock.advance(29_999);
    expect(answered).toBe(false);
    await service.clock.advance(1);
    expect(await answer).toMatchObject({ status: 202, body: { status: 'running' } });
    service.release();
  });

  it('puts basePath in front of every path, and in Location', async () => {
    const mounted = createService({ basePath: '/service' });
    const knock = await open(mounted.handler);
    const authorized = await mounted.bearer('admin');
    const answer = await told(knock('/service/api/v1/execute/ensemble/echo', post({ async: true }, authorized)));
    expect(answer.headers.get('location')).toBe(`/service/api/v1/executions/${answer.body.executionId}`);
    for (const path of ['/api/v1/health', '/servicex/api/v1/health', '/service', '/service/service/api/v1/health']) {
      expect([path, (await knock(path)).status]).toEqual([path, 404]);
    }
    expect((await knock('/service/ensembles', { headers: authorized })).status).toBe(200);
  });
});

describe('the wait of a handler without a clock of its own', () => {
  const SYNC_MS = 4_321;
  const timersOf = (spy: { mock: { calls: unknown[][] } }, ms: number) => spy.mock.calls.filter(([, at]) => at === ms);

  it('makes no timer for a run that ends in the turn in which it began', async () => {
    const service = createService({ clock: undefined, syncTimeoutMs: SYNC_MS });
    const headers = await service.bearer('admin');
    const setTimer = vi.spyOn(globalThis, 'setTimeout');
    const answer = await service.handler.fetch(
      new Request(`http://service.test${ENSEMBLE}/echo`, post({ input: { a: 1 } }, headers)),
    );
    expect(answer.status).toBe(200);
    await new Promise((resolve) => setImmediate(resolve));
    expect(timersOf(setTimer, SYNC_MS)).toEqual([]);
  });

  it('makes one for a run that goes on, and takes it back when the run has ended', async () => {
    const service = createService({ clock: undefined, syncTimeoutMs: SYNC_MS });
    const headers = await service.bearer('admin');
    const setTimer = vi.spyOn(globalThis, 'setTimeout');
    const clearTimer = vi.spyOn(globalThis, 'clearTimeout');
    const begun = service.begun();
    const answer = service.handler.fetch(new Request(`http://service.test${ENSEMBLE}/slow`, post({}, headers)));
    await begun;
    await vi.waitFor(() => expect(timersOf(setTimer, SYNC_MS)).toHaveLength(1));
    service.release();
    expect((await answer).status).toBe(200);
    const made = setTimer.mock.calls.findIndex(([, ms]) => ms === SYNC_MS);
    expect(clearTimer).toHaveBeenCalledWith(setTimer.mock.results[made]?.value);
  });

  it('answers 202 when the run outlasts syncTimeoutMs', async () => {
    const service = createService({ clock: undefined, syncTimeoutMs: 5 });
    const headers = await service.bearer('admin');
    const answer = service.handler.fetch(new Request(`http://service.test${ENSEMBLE}/slow`, post({}, headers)));
    expect((await answer).status).toBe(202);
    service.release();
  });
});

describe('a client that goes away', () => {
  it('cancels nothing: the run goes on to its end', async () => {
    const service = createService();
    const origin = await serve(toNodeListener(service.handler));
    const headers = await service.bearer('admin');
    const begun = service.begun();
    const client = httpRequest(`${origin}${ENSEMBLE}/slow`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
    });
    client.on('error', () => {});
    client.end('{}');
    await begun;
    const closed = new Promise((resolve) => client.once('close', resolve));
    client.destroy();
    await closed;
    service.release();
    await service.clock.advance(0);
    const { executions } = await service.orchestrator.executions.list();
    expect(executions).toMatchObject([{ status: 'completed', output: { done: true } }]);
  });

  it('leaves the run to the host: `waitUntil` gets it, and it settles with the run', async () => {
    const service = createService();
    const headers = await service.bearer('admin');
    const kept: Promise<unknown>[] = [];
    const waitUntil = (promise: Promise<unknown>) => void kept.push(promise);
    const request = new Request(`http://service.test${ENSEMBLE}/slow`, post({ async: true }, headers));
    const { body } = await told(service.handler.fetch(request, { waitUntil }));
    expect(kept).toHaveLength(1);
    service.release();
    await kept[0];
    expect(await service.orchestrator.executions.get(body.executionId)).toMatchObject({ status: 'completed' });
  });
});
