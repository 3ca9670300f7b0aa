/** Cancelling and retrying executions over HTTP, and the status of executions that are not running. */

import { beforeEach, describe, expect, it } from 'vitest';
import { embeddedEngine } from '../../src/adapters/embedded-engine/embedded-engine.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import type { OrchestratorOptions } from '../../src/orchestrator/options/options.ts';
import { type Ask, HOSTS } from './hosts.ts';
import { createService, type JsonResponse, post, readResponse, type Service } from './service.ts';

const NOBODY = 'exec_01M7WWEK7KT35PGB6V8KCP7X7Z';

const code = (agent: string, script: string, more = {}) => ({ agent, operation: 'code', config: { script }, ...more });
const ENSEMBLES = [
  { name: 'echo', flow: [code('say', 'echo')] },
  { name: 'slow', flow: [code('wait', 'wait')], outputs: { done: '${wait.output}' } },
  {
    name: 'order',
    flow: [code('first', 'count'), code('charge', 'charge')],
    outputs: { first: '${first.output}', charged: '${charge.output}' },
  },
  {
    name: 'patient',
    flow: [code('charge', 'charge', { retry: { maxAttempts: 2, backoff: 'fixed', delay: 60_000 } })],
    outputs: { charged: '${charge.output}' },
  },
];

interface Shop extends Service {
  /** How often the first step of `order` ran. */
  readonly counted: { times: number };
  /** Whether charging fails. */
  readonly card: { refused: boolean };
}

function createShop(more: OrchestratorOptions = {}): Shop {
  const counted = { times: 0 };
  const card = { refused: true };
  const scripts = {
    count: () => {
      counted.times += 1;
      return counted.times;
    },
    charge: () => {
      if (card.refused) throw new Error('the card was refused');
      return 'charged';
    },
  };
  return { ...createService({}, { ensembles: ENSEMBLES, scripts, ...more }), counted, card };
}

describe.each(HOSTS)('the control of executions by $host', ({ open }) => {
  let shop: Shop;
  let ask: Ask;
  let headers: { authorization: string };
  const use = async (next: Shop) => {
    shop = next;
    ask = await open(shop.handler);
    headers = await shop.bearer('execute:ensembles', 'read:executions');
  };
  beforeEach(() => use(createShop()));
  const start = async (name: string): Promise<string> =>
    (await readResponse(ask(`/api/v1/execute/ensemble/${name}`, post({ async: true }, headers)))).body.executionId;
  const get = (id: string): Promise<JsonResponse> => readResponse(ask(`/api/v1/executions/${id}`, { headers }));
  const send = (id: string, verb: 'cancel' | 'retry', body: unknown = ''): Promise<JsonResponse> =>
    readResponse(ask(`/api/v1/executions/${id}/${verb}`, post(body, headers)));

  it('cancels a running execution: returns its record at once, ends it at its step boundary, and returns 409 to the caller that waits for it', async () => {
    const begun = shop.begun();
    const waiting = readResponse(ask('/api/v1/execute/ensemble/slow', post({}, headers)));
    await begun;
    const [{ id }] = (await readResponse(ask('/api/v1/executions', { headers }))).body.executions;
    const response = await send(id, 'cancel');
    expect(response).toMatchObject({ status: 200, body: { id, ensemble: 'slow' } });
    expect(await waiting).toMatchObject({
      status: 409,
      body: { error: { code: 'EXECUTION_CANCELLED', executionId: id, status: 'cancelled' } },
    });
    const { body } = await get(id);
    expect(body).toMatchObject({ id, status: 'cancelled', finishedAt: shop.clock.now() });
    // A second request changes nothing, in both forms of the id.
    expect(await send(id.replace('_', '-'), 'cancel')).toMatchObject({ status: 200, body });
  });

  it('cancels an execution that waits for its next attempt: it ends without another step', async () => {
    const id = await start('patient');
    expect((await get(id)).body).toMatchObject({ status: 'waiting', startedAt: shop.clock.now() });
    await send(id, 'cancel');
    await shop.clock.advance(0);
    shop.card.refused = false;
    expect((await get(id)).body).toMatchObject({ status: 'cancelled', agents: [{ attempts: 1 }] });
    await shop.clock.advance(60_000);
    expect((await get(id)).body).toMatchObject({ status: 'cancelled', agents: [{ attempts: 1 }] });
  });

  it('cancels a queued execution: it never starts', async () => {
    await use(createShop({ engine: embeddedEngine({ concurrency: 1 }) }));
    await start('slow');
    const response = await readResponse(ask('/api/v1/execute/ensemble/order', post({ async: true }, headers)));
    expect(response).toMatchObject({ status: 202, body: { status: 'queued' } });
    const id: string = response.body.executionId;
    expect((await get(id)).body).not.toHaveProperty('startedAt');
    const cancelled = await send(id, 'cancel');
    expect(cancelled).toMatchObject({ status: 200, body: { status: 'cancelled' } });
    expect(cancelled.body).not.toHaveProperty('startedAt');
    shop.release();
    await shop.clock.advance(1_000);
    expect([shop.counted.times, (await get(id)).body]).toEqual([0, cancelled.body]);
  });

  it('retries a failed execution: a new execution that has the results of the steps that succeeded', async () => {
    const id = await start('order');
    const failed = await get(id);
    expect(failed.body).toMatchObject({ status: 'failed', error: { agent: 'charge' } });
    shop.card.refused = false;
    await shop.clock.advance(1_000);
    const response = await send(id, 'retry');
    expect(response).toMatchObject({
      status: 202,
      body: {
        id: expect.stringMatching(/^exec_[0-9A-Z]{26}$/),
        ensemble: 'order',
        retryOf: id,
        createdAt: shop.clock.now(),
      },
    });
    expect(response.body.id).not.toBe(id);
    const location = response.headers.get('location');
    expect(location).toBe(`/api/v1/executions/${response.body.id}`);
    await shop.clock.advance(0);
    expect((await readResponse(ask(location as string, { headers }))).body).toMatchObject({
      status: 'completed',
      output: { first: 1, charged: 'charged' },
      retryOf: id,
    });
    expect(shop.counted.times).toBe(1);
    expect(await get(id)).toMatchObject({ body: { ...failed.body, retriedBy: response.body.id } });
    const retries = await readResponse(ask(`/api/v1/executions?retryOf=${id}&status=completed`, { headers }));
    expect(retries.body.executions).toMatchObject([{ id: response.body.id, retryOf: id }]);
    const listed = await readResponse(ask('/api/v1/executions?ensemble=order', { headers }));
    expect(listed.body.executions).toMatchObject([{ id: response.body.id, retryOf: id }, { id }]);
  });

  it('a retry of one that completed or has not ended returns its record, and starts nothing', async () => {
    shop.card.refused = false;
    for (const [name, status] of [
      ['order', 'completed'],
      ['slow', 'running'],
    ] as const) {
      const id = await start(name);
      expect(await send(id, 'retry')).toMatchObject({ status: 202, body: { id, status } });
    }
    shop.release();
  });

  it('refuses with 409 to cancel an execution that has ended', async () => {
    const failed = await start('order');
    shop.card.refused = false;
    const completed = await start('order');
    for (const [id, verb] of [
      [failed, 'cancel'],
      [completed, 'cancel'],
    ] as const) {
      const response = await send(id, verb);
      expect([id, verb, response.status, response.body]).toEqual([
        id,
        verb,
        409,
        {
          error: {
            code: 'CONFLICT',
            message: expect.stringContaining(id),
            executionId: id,
            status: expect.any(String),
          },
        },
      ]);
    }
    shop.release();
  });

  it.each(['cancel', 'retry'] as const)(
    '%s returns the same for an unknown id and a malformed one, and nothing of either to a caller without the scope',
    async (verb) => {
      const id = await start('order');
      const bodies = await Promise.all([NOBODY, 'nonsense', `${id}x`, '..%2f..'].map((one) => send(one, verb)));
      for (const one of bodies) expect(one).toMatchObject({ status: 404, body: bodies[0]?.body });
      const reader = await shop.bearer('read:executions');
      for (const stranger of [{}, { authorization: 'Bearer sk-service-wrong' }, reader]) {
        const [real, none] = await Promise.all(
          [id, NOBODY].map((one) => readResponse(ask(`/api/v1/executions/${one}/${verb}`, post('', stranger)))),
        );
        expect([401, 403]).toContain(real?.status);
        expect([real?.status, real?.body]).toEqual([none?.status, none?.body]);
      }
    },
  );

  it('accept only a reason, and a refused request changes nothing', async () => {
    const id = await start('patient');
    expect(await send(id, 'cancel', { why: 'late' })).toMatchObject({
      status: 400,
      body: { error: { code: 'INVALID_REQUEST' } },
    });
    const form = { method: 'POST', headers: { ...headers, 'content-type': 'text/plain' }, body: '{}' };
    expect((await readResponse(ask(`/api/v1/executions/${id}/cancel`, form))).status).toBe(415);
    expect((await get(id)).body).toMatchObject({ status: 'waiting' });
    expect((await send(id, 'cancel', { reason: 'late' })).status).toBe(200);
    await shop.clock.advance(0);
    expect((await readResponse(ask(`/api/v1/executions/${id}/retry`, { method: 'POST', headers }))).status).toBe(202);
  });

  it('lists queued, waiting and running executions by their status', async () => {
    await use(createShop({ engine: embeddedEngine({ concurrency: 1 }) }));
    const waiting = await start('patient');
    const running = await start('slow');
    const queued = await start('echo');
    const listed: [string, string[]][] = [];
    for (const status of ['queued', 'waiting', 'running', 'failed']) {
      const { body } = await readResponse(ask(`/api/v1/executions?status=${status}`, { headers }));
      listed.push([status, body.executions.map((one: { id: string }) => one.id)]);
    }
    expect(listed).toEqual([
      ['queued', [queued]],
      ['waiting', [waiting]],
      ['running', [running]],
      ['failed', []],
    ]);
    shop.release();
  });

  it('a service that stops returns 202 with Location to the caller of an execution that continues in another process', async () => {
    await use(createShop({ storage: memoryStorage({ shared: true }) }));
    const begun = shop.begun();
    const waiting = readResponse(ask('/api/v1/execute/ensemble/slow', post({}, headers)));
    await begun;
    const closed = shop.orchestrator.close({ grace: 1_000 });
    await shop.clock.advance(1_000);
    const response = await waiting;
    await closed;
    expect(response).toMatchObject({ status: 202, body: { executionId: expect.stringMatching(/^exec_/) } });
    expect(response.headers.get('location')).toBe(`/api/v1/executions/${response.body.executionId}`);
  });
});
