/** The log of deliveries: lists, attempts, sending again, receivers that are resumed, and what listeners are told. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { manualClock } from '../../src/adapters/clock/manual-clock.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { nodeHttp } from '../../src/entries/node.ts';
import { createHandler, type OrchestratorEvent, type OrchestratorOptions } from '../../src/index.ts';
import { changeStorage } from '../../src/testing-kit/processes/change-storage.ts';
import { notifying, setUp, URL } from './setup.ts';

const COMPLETED = 'events: [execution.completed]';
const MINUTE = 60_000;

async function withFailed(count = 3, options: OrchestratorOptions = {}) {
  let status = 500;
  const world = setUp(() => ({ status }), { ensembles: [notifying(`${COMPLETED}, retries: 0`)], ...options });
  for (let i = 0; i < count; i++) {
    await world.orchestrator.execute('pay', { order: i });
    await world.clock.advance(1000);
  }
  const answerWith = (next: number) => {
    status = next;
  };
  return { ...world, ...world.orchestrator, answerWith };
}

describe('deliveries.list', () => {
  it('has each delivery with its attempts, newest first', async () => {
    const { orchestrator, clock } = setUp([{ status: 503 }, { error: 'connection' }, { status: 204 }], {
      ensembles: [notifying(COMPLETED)],
    });
    const { id } = await orchestrator.execute('pay', {});
    const begin = clock.now();
    await clock.advance(1000);
    const pending = await orchestrator.deliveries.list();
    expect(pending.deliveries).toEqual([
      {
        ...{ id: expect.stringMatching(/^dlv_/), executionId: id, ensemble: 'pay', event: 'execution.completed' },
        ...{ type: 'webhook', receiver: expect.stringMatching(/^webhook:[0-9a-f]{32}$/), status: 'pending' },
        to: 'shop.example',
        ...{ createdAt: begin, nextAttemptAt: begin + 6000 },
        attempts: [
          { attempt: 1, at: begin, duration: 0, status: 503 },
          { attempt: 2, at: begin + 1000, duration: 0, error: expect.stringContaining('shop.example') },
        ],
      },
    ]);
    await clock.advance(MINUTE);
    const [ended] = (await orchestrator.deliveries.list({ status: 'succeeded' })).deliveries;
    expect(ended).toMatchObject({ status: 'succeeded', attempts: [{}, {}, { attempt: 3, status: 204 }] });
    expect(ended).not.toHaveProperty('nextAttemptAt');
    expect(JSON.stringify(pending)).not.toContain('/hooks"');
  });

  it('has no `to` in a process whose variables lead to another address, or to none', async () => {
    const storage = memoryStorage();
    const ensembles = [notifying(COMPLETED).replace(URL, '${env.HOOK}')];
    const at = (env: Record<string, string>) =>
      setUp(() => ({ status: 500 }), { storage, ensembles, env }).orchestrator;
    await at({ HOOK: URL }).execute('pay', {});
    const found: unknown[] = [];
    for (const orchestrator of [at({ HOOK: URL }), at({ HOOK: 'https://other.example/hooks' })])
      found.push((await orchestrator.deliveries.list()).deliveries[0]?.to);
    expect(found).toEqual(['shop.example', undefined]);
  });

  it('is filtered, and read page by page; a cursor belongs to its filter', async () => {
    const { deliveries, clock } = await withFailed(5);
    const all = (await deliveries.list()).deliveries;
    expect(all.map(({ createdAt }) => createdAt)).toEqual(
      [...all.map(({ createdAt }) => createdAt)].sort((a, b) => b - a),
    );
    const first = await deliveries.list({ status: 'failed', limit: 2 });
    const second = await deliveries.list({ status: 'failed', limit: 2, cursor: String(first.nextCursor) });
    expect([...first.deliveries, ...second.deliveries]).toEqual(all.slice(0, 4));
    await expect(deliveries.list({ limit: 2, cursor: String(first.nextCursor) })).rejects.toMatchObject({
      code: 'INVALID_CURSOR',
    });
    const count = async (filter: object) => (await deliveries.list(filter)).deliveries.length;
    expect(await count({ execution: all[1]?.executionId })).toBe(1);
    expect([await count({ ensemble: 'pay' }), await count({ ensemble: 'other' })]).toEqual([5, 0]);
    expect([await count({ url: URL }), await count({ url: `${URL}2` })]).toEqual([5, 0]);
    expect(await count({ since: clock.now() - 2000 })).toBe(2);
    expect(await count({ until: new Date(clock.now() - 2000) })).toBe(3);
  });

  it('refuses what is no filter', async () => {
    const { orchestrator } = setUp();
    const list = (filter: object) => orchestrator.deliveries.list(filter);
    await expect(list({ status: 'done' })).rejects.toThrow(
      '`status` must be `pending`, `succeeded`, `failed` or `paused`',
    );
    await expect(list({ url: 'shop' })).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    await expect(list({ since: 'today' })).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    await expect(list({ statuz: 'failed' })).rejects.toThrow('did you mean `status`');
  });

  it('shows the beginning of an answer of a public address only, with secrets masked', async () => {
    const answer = { status: 400, text: `no: sesame-sesame ${'ä'.repeat(400)}` };
    const excerptOf = async (isPublic: boolean) => {
      const world = setUp(answer, {
        env: { KEY: 'sesame-sesame' },
        ensembles: [notifying(`${COMPLETED}, secret: "\${env.KEY}"`)],
      });
      const { send } = world.http;
      Object.assign(world.http, { send: async (request: never) => ({ ...(await send(request)), isPublic }) });
      await world.orchestrator.execute('pay', {});
      await world.settle();
      return (await world.orchestrator.deliveries.list()).deliveries[0]?.attempts[0]?.excerpt;
    };
    const excerpt = await excerptOf(true);
    expect(excerpt).toMatch(/^no: \*\*\* ä+$/);
    expect(new TextEncoder().encode(excerpt).length).toBeLessThanOrEqual(256);
    expect(await excerptOf(false)).toBeUndefined();
  });

  it('nodeHttp knows that a loopback address is not public', async () => {
    const server = createServer((_request, response) => response.end('inside')).listen(0);
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const answer = await nodeHttp({ allow: ['127.0.0.1'] }).send({ method: 'GET', url });
    expect(answer.isPublic).toBe(false);
    server.close();
  });
});

describe('deliveries.redeliver', () => {
  it('sends a failed delivery again, with the same id and body and the next number', async () => {
    const { deliveries, http, clock, answerWith } = await withFailed(1);
    answerWith(200);
    const [failed] = (await deliveries.list()).deliveries;
    const again = await deliveries.redeliver(String(failed?.id));
    expect(again).toMatchObject({ id: failed?.id, status: 'pending' });
    await clock.advance(0);
    expect((await deliveries.get(String(failed?.id))).status).toBe('succeeded');
    const [first, second] = http.calls;
    expect(second?.body).toBe(first?.body);
    expect(second?.headers?.['X-Service-Delivery']).toBe(first?.headers?.['X-Service-Delivery']);
    expect(second?.headers?.['X-Service-Delivery-Attempt']).toBe('2');
  });

  it('has all its retries again', async () => {
    const { orchestrator, clock, http } = setUp(
      { status: 500 },
      { ensembles: [notifying(`${COMPLETED}, retries: 2`)] },
    );
    await orchestrator.execute('pay', {});
    await clock.advance(MINUTE);
    expect(http.calls).toHaveLength(3);
    const [failed] = (await orchestrator.deliveries.list()).deliveries;
    await orchestrator.deliveries.redeliver(String(failed?.id));
    await clock.advance(MINUTE);
    expect(http.calls).toHaveLength(6);
  });

  it('refuses a pending delivery and an unknown one', async () => {
    const { orchestrator, settle } = setUp({ status: 500 }, { ensembles: [notifying(COMPLETED)] });
    await orchestrator.execute('pay', {});
    await settle();
    const [pending] = (await orchestrator.deliveries.list()).deliveries;
    await expect(orchestrator.deliveries.redeliver(String(pending?.id))).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('is pending: it is sent by itself'),
    });
    await expect(orchestrator.deliveries.redeliver('dlv_1')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(orchestrator.deliveries.get('dlv_1')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });
});

describe('deliveries.replay', () => {
  it('sends again what matches the filter, as a job that reports its progress', async () => {
    const { deliveries, http, clock, answerWith } = await withFailed(6);
    answerWith(200);
    const since = clock.now() - 4000;
    const job = await deliveries.replay({ since, url: URL });
    expect(job).toMatchObject({ id: expect.stringMatching(/^job_/), status: 'running', redelivered: 0 });
    await clock.advance(0);
    expect(await deliveries.replays()).toMatchObject([{ id: job.id, status: 'completed', redelivered: 4 }]);
    expect(http.calls).toHaveLength(10);
    const statuses = (await deliveries.list()).deliveries.map(({ status }) => status);
    expect(statuses).toEqual([...Array(4).fill('succeeded'), ...Array(2).fill('failed')]);
  });

  it('sends more than one step takes, and is done after more jobs than one page lists', async () => {
    const { deliveries, orchestrator, http, clock, answerWith } = await withFailed(1);
    for (let i = 0; i < 600; i++) await orchestrator.execute('pay', { order: i });
    await clock.advance(1000);
    expect(http.calls).toHaveLength(601);
    // These jobs find nothing.
    for (let i = 0; i < 501; i++) await deliveries.replay({ url: 'https://other.example/' });
    await clock.advance(0);
    answerWith(200);
    const { id } = await deliveries.replay({ url: URL });
    await clock.advance(0);
    const jobs = await deliveries.replays();
    expect(jobs.find((job) => job.id === id)).toMatchObject({ status: 'completed', redelivered: 601 });
    expect((await deliveries.list({ status: 'failed' })).deliveries).toEqual([]);
  });

  it('a process that dies in a step has counted it, and what was sent again is not sent once more', async () => {
    const clock = manualClock();
    const inner = memoryStorage({ shared: true });
    let [isDying, calls] = [false, 0];
    const dying = changeStorage(inner, {
      deliveries: {
        async requeue(ids, now) {
          if (!isDying) return inner.deliveries.requeue(ids, now);
          // One of them is due again and sent, and the others are left.
          if (calls++ === 0) await inner.deliveries.requeue(ids.slice(0, 1), now);
          return new Promise<number>(() => {});
        },
      },
    });
    const failed = await withFailed(6, { storage: dying, clock });
    failed.answerWith(200);
    isDying = true;
    const { id } = await failed.deliveries.replay({ url: URL });
    await clock.advance(0);
    const ensembles = [notifying(`${COMPLETED}, retries: 0`)];
    const second = setUp(() => ({ status: 200 }), { storage: inner, clock, http: failed.http, ensembles });
    await second.orchestrator.ready();
    await clock.advance(60_000);
    expect(await second.orchestrator.deliveries.replays()).toMatchObject([{ id, status: 'completed', redelivered: 6 }]);
    expect(failed.http.calls).toHaveLength(12);
  });

  it('refuses pending deliveries and unknown keys', async () => {
    const { orchestrator } = setUp();
    await expect(orchestrator.deliveries.replay({ status: 'pending' })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    });
    await expect(orchestrator.deliveries.replay({ from: 1 } as never)).rejects.toThrow(TypeError);
  });
});

describe('a paused receiver', () => {
  it('is listed, and resumed by a call: what has waited is sent', async () => {
    let status = 410;
    const { orchestrator, clock, http } = setUp(() => ({ status }), { ensembles: [notifying(COMPLETED)] });
    const { deliveries } = orchestrator;
    for (let i = 0; i < 4; i++) {
      await orchestrator.execute('pay', {});
      await clock.advance(10_000);
    }
    const [receiver] = await deliveries.receivers();
    expect(receiver).toMatchObject({ type: 'webhook', address: URL, reason: 'gone', pausedAt: expect.any(Number) });
    const waiting = (await deliveries.list({ status: 'paused' })).deliveries;
    expect(waiting).toHaveLength(3);
    // It would be paused again.
    await expect(deliveries.redeliver(String(waiting[0]?.id))).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('is paused (gone); resume it'),
    });
    status = 200;
    await expect(deliveries.resume('https://other.example/')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(await deliveries.resume(URL)).toEqual({ deliveries: 3 });
    await clock.advance(0);
    expect(http.calls).toHaveLength(4);
    expect(await deliveries.receivers()).toEqual([]);
  });
});

describe('listeners', () => {
  it('are told of deliveries that succeed, fail and wait, and of receivers that are paused', async () => {
    let status = 500;
    const { orchestrator, clock } = setUp(() => ({ status }), { ensembles: [notifying(`${COMPLETED}, retries: 0`)] });
    const heard: OrchestratorEvent[] = [];
    for (const kind of ['delivery.succeeded', 'delivery.failed', 'delivery.paused', 'endpoint.paused'] as const)
      orchestrator.on(kind, (event) => heard.push(event));
    for (const next of [500, 200, 410, 200]) {
      status = next;
      await orchestrator.execute('pay', {});
      await clock.advance(10_000);
    }
    const about = { ensemble: 'pay', notified: 'execution.completed', delivery: expect.stringMatching(/^dlv_/) };
    expect(heard.map(({ event, data }) => ({ event, data }))).toMatchObject([
      { event: 'delivery.failed', data: { ...about, attempts: 1, status: 500 } },
      { event: 'delivery.succeeded', data: { ...about, attempts: 1 } },
      { event: 'delivery.failed', data: { ...about, status: 410 } },
      { event: 'endpoint.paused', data: { ...about, reason: 'gone' } },
      { event: 'delivery.paused', data: about },
    ]);
  });

  it('of one execution, and readers of its events, hear nothing of its deliveries', async () => {
    const { orchestrator, clock } = setUp({}, { ensembles: [notifying()] });
    const handle = await orchestrator.start('pay', {});
    const kinds: string[] = [];
    for await (const { event } of handle.events()) kinds.push(event);
    await clock.advance(1000);
    expect(kinds.filter((kind) => kind.startsWith('delivery'))).toEqual([]);
  });
});

describe('a host without timers', () => {
  it('sends what is due by deliverDue(), and is told when something is due next', async () => {
    const { orchestrator, clock, http } = setUp({ status: 500 }, { ensembles: [notifying(COMPLETED)] });
    await orchestrator.execute('pay', {});
    expect(await orchestrator.deliveries.deliverDue()).toEqual({ nextDueAt: clock.now() + 1000 });
    expect(http.calls).toHaveLength(1);
  });
});

describe('a host that continues only what it waits for', () => {
  it('waits for the notifications of an execution that a request has started', async () => {
    const answer = async () => {
      await new Promise((resolve) => setTimeout(resolve, 50));
      return { status: 200 };
    };
    const { orchestrator, http } = setUp(answer, { ensembles: [notifying(COMPLETED)] });
    const { token } = await orchestrator.tokens.create({ name: 't', scopes: ['execute:ensembles'] });
    const { fetch } = createHandler(orchestrator);
    const waited: Promise<unknown>[] = [];
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const request = new Request('https://x/api/v1/execute/ensemble/pay', {
      method: 'POST',
      headers,
      body: '{"async":true}',
    });
    const response = await fetch(request, { waitUntil: (promise) => waited.push(promise) });
    expect(response.status).toBe(202);
    await Promise.all(waited);
    expect(http.calls).toHaveLength(1);
    expect((await orchestrator.deliveries.list()).deliveries[0]?.status).toBe('succeeded');
  });
});

describe('over HTTP', () => {
  it('lists, shows, redelivers and replays', async () => {
    const { orchestrator, clock, http, answerWith } = await withFailed(2);
    const { token } = await orchestrator.tokens.create({ name: 't', scopes: ['read:executions', 'execute:ensembles'] });
    const { token: reader } = await orchestrator.tokens.create({ name: 'r', scopes: ['read:executions'] });
    const handler = createHandler(orchestrator);
    const call = async (method: string, path: string, body?: object, bearer = token) => {
      const headers = { authorization: `Bearer ${bearer}`, ...(body && { 'content-type': 'application/json' }) };
      const request = new Request(`https://x/api/v1${path}`, {
        method,
        headers,
        ...(body && { body: JSON.stringify(body) }),
      });
      const response = await handler.fetch(request);
      return { status: response.status, json: (await response.json()) as never as Record<string, never> };
    };
    const list = await call('GET', '/deliveries?status=failed&limit=1');
    expect(list).toMatchObject({
      status: 200,
      json: { deliveries: [{ status: 'failed' }], nextCursor: expect.any(String) },
    });
    const [{ id }] = list.json.deliveries as unknown as [{ id: string }];
    expect((await call('GET', `/deliveries/${id}`)).json.body).toBe(http.calls[1]?.body);
    expect((await call('POST', `/deliveries/${id}/redeliver`, undefined, reader)).status).toBe(403);
    expect(await call('POST', `/deliveries/${id}/redeliver`)).toMatchObject({
      status: 202,
      json: { id, status: 'pending' },
    });
    await clock.advance(1000);
    answerWith(200);
    expect(await call('POST', '/replays', { since: '2026-01-01T00:00:00Z' })).toMatchObject({
      status: 202,
      json: { status: 'running' },
    });
    await clock.advance(1000);
    expect((await call('GET', '/replays')).json.replays).toMatchObject([{ status: 'completed', redelivered: 2 }]);
    expect((await call('GET', '/deliveries?status=succeeded')).json.deliveries).toHaveLength(2);
    expect((await call('GET', '/deliveries?statuz=failed')).status).toBe(400);
    expect((await call('GET', '/deliveries/dlv_1')).status).toBe(404);
    expect((await call('POST', '/replays', { since: 'yesterday' })).status).toBe(400);
    expect((await call('GET', '/receivers')).json.receivers).toHaveLength(0);
    expect((await call('POST', `/receivers/webhook:${'0'.repeat(32)}/resume`)).status).toBe(404);
  });
});
