/** Running an ensemble or an agent over HTTP: synchronously, asynchronously, and the response for each end. */

import { request as httpRequest } from 'node:http';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { toNodeListener } from '../../src/adapters/hosts/node/to-node-listener.ts';
import { type Ask, HOSTS, serve } from './hosts.ts';
import { createService, post, readResponse, type Service } from './service.ts';

const ENSEMBLE = '/api/v1/execute/ensemble';

afterEach(() => {
  vi.restoreAllMocks();
});

describe.each(HOSTS)('execute by $host', ({ open }) => {
  let service: Service;
  let ask: Ask;
  let headers: { authorization: string };
  beforeEach(async () => {
    service = createService();
    ask = await open(service.handler);
    headers = await service.bearer('execute:ensembles', 'execute:agents');
  });

  it('returns 200 with the output', async () => {
    const response = await readResponse(ask(`${ENSEMBLE}/greet`, post({ input: { who: 'Ada' } }, headers)));
    expect(response).toMatchObject({ status: 200 });
    expect(response.body).toEqual({
      executionId: expect.stringMatching(/^exec_[0-9A-Z]{26}$/),
      status: 'completed',
      output: { text: 'Hello Ada' },
      metrics: { totalDuration: 0, agents: 1, queued: 0, waited: 0 },
      duration: 0,
    });
    expect(await service.orchestrator.executions.get(response.body.executionId)).toMatchObject({
      ensemble: 'greet',
      trigger: { type: 'http' },
      input: { who: 'Ada' },
    });
  });

  it('with `dryRun=true` runs no operation, and returns the plan to a caller that may read executions', async () => {
    const body = post({ input: { who: 'Ada' } }, headers);
    const unseen = await readResponse(ask(`${ENSEMBLE}/greet?dryRun=true`, body));
    expect(unseen).toMatchObject({ status: 200, body: { status: 'completed', dryRun: true, output: { text: null } } });
    expect(unseen.body).not.toHaveProperty('plan');
    const reader = await service.bearer('execute:ensembles', 'execute:agents', 'read:executions');
    const seen = await readResponse(ask(`${ENSEMBLE}/greet?dryRun=true`, post({ input: { who: 'Ada' } }, reader)));
    expect(seen.body.plan).toMatchObject([{ key: 'flow[0]', operation: 'code', output: null, unknown: ['output'] }]);
    const like = `like=${(await service.orchestrator.execute('greet', { who: 'Eve' })).id}`;
    const again = await readResponse(ask(`${ENSEMBLE}/greet?dryRun=true&${like}`, post({}, reader)));
    expect(again.body).toMatchObject({ output: { text: 'Hello Eve' } });
    const refused = await readResponse(ask(`${ENSEMBLE}/greet?dryRun=true&${like}`, body));
    expect(refused).toMatchObject({ status: 403, body: { error: { requiredScope: 'read:executions' } } });
    const failed = await readResponse(
      ask(`${ENSEMBLE}/greet?dryRun=true&runScripts=true`, post({ input: { who: 7 } }, reader)),
    );
    expect(failed).toMatchObject({ status: 400, body: { error: { code: 'INVALID_INPUT' } } });
    const ran = await readResponse(ask(`${ENSEMBLE}/greet?dryRun=true&runScripts=true`, body));
    expect(ran.body).toMatchObject({ output: { text: 'Hello Ada' }, dryRun: true });
    const agent = await readResponse(
      ask('/api/v1/execute/agent/double?dryRun=true', post({ input: { n: 1 } }, reader)),
    );
    expect(agent.body).toMatchObject({ dryRun: true, plan: [{ name: 'double', input: { n: 1 } }] });
  });

  it.each([
    ['?dryrun=true', /`dryRun`/],
    ['?dryRun=yes', /must be true or false/],
    ['?like=exec_01ARZ3NDEKTSV4RRFFQ69G5FAV', /add `dryRun=true`/],
  ])('refuses the query %s, and runs nothing', async (query, message) => {
    const response = await readResponse(ask(`${ENSEMBLE}/greet${query}`, post({ input: { who: 'Ada' } }, headers)));
    expect(response).toMatchObject({ status: 400, body: { error: { code: 'INVALID_REQUEST' } } });
    expect(response.body.error.message).toMatch(message);
    expect((await service.orchestrator.executions.list()).executions).toEqual([]);
  });

  it('refuses an id and an `Idempotency-Key` for a dry run: the real start needs them', async () => {
    const withKey = { ...headers, 'idempotency-key': 'k1' };
    for (const init of [post({ input: { who: 'A' } }, withKey), post({ input: { who: 'A' }, id: 'mine' }, headers)]) {
      const response = await readResponse(ask(`${ENSEMBLE}/greet?dryRun=true`, init));
      expect(response).toMatchObject({ status: 400, body: { error: { code: 'INVALID_REQUEST' } } });
    }
  });

  it('runs one agent', async () => {
    const response = await readResponse(ask('/api/v1/execute/agent/double', post({ input: { n: 21 } }, headers)));
    expect(response).toMatchObject({ status: 200, body: { status: 'completed', output: 42 } });
    expect(await readResponse(ask('/api/v1/execute/agent/greet', post({}, headers)))).toMatchObject({ status: 404 });
  });

  it.each([
    ['an empty object', post({})],
    ['an empty body of JSON', post('')],
    ['no body at all', { method: 'POST' }],
  ])('reads %s as an empty input', async (_what, init: RequestInit) => {
    const response = await readResponse(
      ask(`${ENSEMBLE}/echo`, { ...init, headers: { ...(init.headers as object), ...headers } }),
    );
    expect(response).toMatchObject({ status: 200, body: { output: { said: {} } } });
  });

  it('refuses an input that does not fit, and stores nothing', async () => {
    const response = await readResponse(ask(`${ENSEMBLE}/greet`, post({ input: { who: 7 } }, headers)));
    expect(response).toMatchObject({
      status: 400,
      body: { error: { code: 'INVALID_INPUT', issues: [{ path: 'who' }] } },
    });
    expect(await service.orchestrator.executions.list()).toEqual({ executions: [] });
  });

  it('returns 404 for an unknown ensemble', async () => {
    expect(await readResponse(ask(`${ENSEMBLE}/nobody`, post({}, headers)))).toMatchObject({
      status: 404,
      body: { error: { code: 'NOT_FOUND' } },
    });
  });

  it('suggests the nearest name only to a caller that may list the names', async () => {
    for (const [path, scope] of [
      ['ensemble/failin', 'read:ensembles'],
      ['agent/doubel', 'read:agents'],
    ] as const) {
      const blind = await readResponse(ask(`/api/v1/execute/${path}`, post({ input: {} }, headers)));
      expect([blind.status, blind.body.error.message]).toEqual([404, expect.not.stringMatching(/failing|double/)]);
      const reader = await service.bearer('execute:ensembles', 'execute:agents', scope);
      const seeing = await readResponse(ask(`/api/v1/execute/${path}`, post({ input: {} }, reader)));
      expect([seeing.status, seeing.body.error.message]).toEqual([404, expect.stringMatching(/failing|double/)]);
    }
  });

  it('returns 500 EXECUTION_FAILED with the execution, the agent and its message', async () => {
    const response = await readResponse(ask(`${ENSEMBLE}/failing`, post({}, headers)));
    expect(response.status).toBe(500);
    expect(response.body.error).toMatchObject({
      code: 'EXECUTION_FAILED',
      message: 'the card was refused',
      executionId: expect.stringMatching(/^exec_/),
      status: 'failed',
      reason: 'AGENT_FAILED',
      agent: 'charge',
    });
  });

  it('returns 504 EXECUTION_TIMEOUT when the execution times out', async () => {
    const begun = service.begun();
    const response = readResponse(ask(`${ENSEMBLE}/hasty`, post({}, headers)));
    await begun;
    await service.clock.advance(5_000);
    expect(await response).toMatchObject({
      status: 504,
      body: { error: { code: 'EXECUTION_TIMEOUT', status: 'timed_out', executionId: expect.stringMatching(/^exec_/) } },
    });
  });

  it('returns 409 EXECUTION_CANCELLED when the execution is cancelled', async () => {
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
    const response = readResponse(ask(`${ENSEMBLE}/slow`, post({}, headers)));
    await begun;
    await service.clock.advance(0);
    runs[0]?.cancel();
    expect(await response).toMatchObject({
      status: 409,
      body: { error: { code: 'EXECUTION_CANCELLED', status: 'cancelled' } },
    });
  });

  it.each([
    ['`async: true`', post({ async: true }), {}, null],
    ['`Prefer: respond-async`', post({}), { prefer: 'respond-async' }, 'respond-async'],
    [
      '`Prefer` with other preferences',
      post({ async: false }),
      { prefer: 'handling=lenient, Respond-Async; wait=10' },
      'respond-async',
    ],
  ])('returns 202 with Location for %s, and the execution continues', async (_what, init, extra, applied) => {
    const begun = service.begun();
    const response = await readResponse(
      ask(`${ENSEMBLE}/slow`, { ...init, headers: { ...(init.headers as object), ...headers, ...extra } }),
    );
    const { executionId } = response.body;
    expect(response).toMatchObject({
      status: 202,
      body: { executionId: expect.stringMatching(/^exec_/), status: 'running' },
    });
    expect(response.headers.get('location')).toBe(`/api/v1/executions/${executionId}`);
    expect(response.headers.get('preference-applied')).toBe(applied);
    await begun;
    expect(await service.orchestrator.executions.get(executionId)).toMatchObject({ status: 'running' });
    service.release();
    await service.clock.advance(0);
    expect(await service.orchestrator.executions.get(executionId)).toMatchObject({
      status: 'completed',
      output: { done: true },
    });
  });

  it('returns 202 exactly syncTimeoutMs after the start of an execution that takes longer', async () => {
    const begun = service.begun();
    let responded = false;
    const response = readResponse(ask(`${ENSEMBLE}/slow`, post({}, headers))).finally(() => {
      responded = true;
    });
    await begun;
    await service.clock.advance(29_999);
    expect(responded).toBe(false);
    await service.clock.advance(1);
    expect(await response).toMatchObject({ status: 202, body: { status: 'running' } });
    service.release();
  });

  it('basePath precedes every path, also in Location', async () => {
    const mounted = createService({ basePath: '/service' });
    const call = await open(mounted.handler);
    const authorized = await mounted.bearer('admin');
    const response = await readResponse(
      call('/service/api/v1/execute/ensemble/echo', post({ async: true }, authorized)),
    );
    expect(response.headers.get('location')).toBe(`/service/api/v1/executions/${response.body.executionId}`);
    for (const path of ['/api/v1/health', '/servicex/api/v1/health', '/service', '/service/service/api/v1/health']) {
      expect([path, (await call(path)).status]).toEqual([path, 404]);
    }
    expect((await call('/service/ensembles', { headers: authorized })).status).toBe(200);
  });
});

describe('the wait of a handler without the option `clock`', () => {
  const SYNC_MS = 4_321;
  const timersOf = (spy: { mock: { calls: unknown[][] } }, ms: number) => spy.mock.calls.filter(([, at]) => at === ms);

  it('sets no timer for an execution that ends in the turn of the event loop in which it began', async () => {
    const service = createService({ clock: undefined, syncTimeoutMs: SYNC_MS });
    const headers = await service.bearer('admin');
    const setTimer = vi.spyOn(globalThis, 'setTimeout');
    const response = await service.handler.fetch(
      new Request(`http://service.test${ENSEMBLE}/echo`, post({ input: { a: 1 } }, headers)),
    );
    expect(response.status).toBe(200);
    await new Promise((resolve) => setImmediate(resolve));
    expect(timersOf(setTimer, SYNC_MS)).toEqual([]);
  });

  it('sets a timer for an execution that takes longer, and clears it when the execution has ended', async () => {
    const service = createService({ clock: undefined, syncTimeoutMs: SYNC_MS });
    const headers = await service.bearer('admin');
    const setTimer = vi.spyOn(globalThis, 'setTimeout');
    const clearTimer = vi.spyOn(globalThis, 'clearTimeout');
    const begun = service.begun();
    const response = service.handler.fetch(new Request(`http://service.test${ENSEMBLE}/slow`, post({}, headers)));
    await begun;
    await vi.waitFor(() => expect(timersOf(setTimer, SYNC_MS)).toHaveLength(1));
    service.release();
    expect((await response).status).toBe(200);
    const made = setTimer.mock.calls.findIndex(([, ms]) => ms === SYNC_MS);
    expect(clearTimer).toHaveBeenCalledWith(setTimer.mock.results[made]?.value);
  });

  it('returns 202 when the execution takes longer than syncTimeoutMs', async () => {
    const service = createService({ clock: undefined, syncTimeoutMs: 5 });
    const headers = await service.bearer('admin');
    const response = service.handler.fetch(new Request(`http://service.test${ENSEMBLE}/slow`, post({}, headers)));
    expect((await response).status).toBe(202);
    service.release();
  });
});

describe('a client that disconnects', () => {
  it('cancels nothing: the execution continues to its end', async () => {
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

  it('leaves the execution to the host: `waitUntil` receives a promise that settles at its end', async () => {
    const service = createService();
    const headers = await service.bearer('admin');
    const kept: Promise<unknown>[] = [];
    const waitUntil = (promise: Promise<unknown>) => void kept.push(promise);
    const request = new Request(`http://service.test${ENSEMBLE}/slow`, post({ async: true }, headers));
    const { body } = await readResponse(service.handler.fetch(request, { waitUntil }));
    expect(kept).toHaveLength(1);
    service.release();
    await kept[0];
    expect(await service.orchestrator.executions.get(body.executionId)).toMatchObject({ status: 'completed' });
  });
});
