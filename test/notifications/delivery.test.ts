/** How a webhook is delivered: its headers, its signature, which answers are repeated and when, and who waits for whom. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { nodeHttp } from '../../src/entries/node.ts';
import type { StubReply } from '../../src/entries/testing.ts';
import { fetchHttp, memoryStorage, systemClock, verifySignature } from '../../src/index.ts';
import { headerOf, notifying, setUp, URL } from './setup.ts';

const COMPLETED = 'events: [execution.completed]';
const SECRET = 'a-secret-of-ours';
const DAY = 86_400_000;

/** Runs the ensemble once, and gives the receiver ten minutes. @returns the seconds at which it was called */
async function timesOf(answer: StubReply | readonly StubReply[], fields = COMPLETED) {
  const { http, orchestrator, clock, lines } = setUp(answer, { ensembles: [notifying(fields)] });
  const begin = clock.now();
  const times: number[] = [];
  const { send } = http;
  Object.assign(http, {
    send: (request: never) => {
      times.push((clock.now() - begin) / 1000);
      return send(request);
    },
  });
  await orchestrator.execute('pay', {});
  await clock.advance(600_000);
  await orchestrator.close({ grace: 0 });
  return { times, calls: http.calls, lines };
}

describe('a webhook', () => {
  it('whose receiver can not be stored after its answer is not sent twice', async () => {
    const storage = memoryStorage();
    const write: typeof storage.documents.write = (kind, ...rest) => {
      if (kind === 'receiver') throw new Error('the disk is full');
      return storage.documents.write(kind, ...rest);
    };
    const { orchestrator, clock, http, lines } = setUp(
      { status: 404 },
      { storage: { ...storage, documents: { ...storage.documents, write } }, ensembles: [notifying(COMPLETED)] },
    );
    await orchestrator.execute('pay', {});
    await clock.advance(600_000);
    expect(http.calls).toHaveLength(1);
    expect((await orchestrator.deliveries.list()).deliveries).toMatchObject([{ status: 'failed' }]);
    expect(lines.map(({ message }) => message)).toContain(
      'the state of a receiver could not be stored; the result of the delivery counts',
    );
  });

  it('has the headers of the specification, and no signature without a secret', async () => {
    const { calls } = await timesOf({ status: 200 });
    const [call] = calls;
    expect(call).toMatchObject({ method: 'POST', url: URL, timeoutMs: 5000 });
    expect(call?.headers).toEqual({
      'content-type': 'application/json',
      'user-agent': 'ensemble-orchestrator',
      'X-Service-Event': 'execution.completed',
      'X-Service-Delivery': expect.stringMatching(/^dlv_[0-9A-Z]{26}$/),
      'X-Service-Delivery-Attempt': '1',
      'X-Service-Timestamp': expect.stringMatching(/^\d{10}$/),
    });
  });

  it('is signed anew for each attempt, over the same bytes, with one id of the delivery', async () => {
    const { orchestrator, clock, http } = setUp(
      { status: 503 },
      { env: { SECRET }, ensembles: [notifying(`${COMPLETED}, secret: "\${env.SECRET}", timeout: 3s`)] },
    );
    await orchestrator.execute('pay', {});
    await clock.advance(60_000);
    expect(http.calls).toHaveLength(4);
    const signatures = http.calls.map((call) => headerOf(call, 'x-service-signature'));
    expect(new Set(signatures).size).toBe(4);
    expect(new Set(http.calls.map(({ body }) => body)).size).toBe(1);
    expect(new Set(http.calls.map((call) => headerOf(call, 'x-service-delivery'))).size).toBe(1);
    expect(http.calls.map((call) => headerOf(call, 'x-service-delivery-attempt'))).toEqual(['1', '2', '3', '4']);
    for (const { headers = {}, body, timeoutMs } of http.calls) {
      const now = Number(headers['X-Service-Timestamp']) * 1000;
      expect(timeoutMs).toBe(3000);
      expect(await verifySignature({ secret: SECRET, headers, body: String(body), now })).toBe(true);
      expect(await verifySignature({ secret: SECRET, headers, body: `${body} `, now })).toBe(false);
      expect(await verifySignature({ secret: SECRET, headers, body: String(body), now: now + 301_000 })).toBe(false);
    }
  });

  it('is not checked with a secret that is not set: the error says so', async () => {
    const secret = undefined as unknown as string;
    const checked = verifySignature({ secret, headers: {}, body: '' });
    await expect(checked).rejects.toThrow('verifySignature: `secret` must be a text that is not empty');
  });

  it('is signed by both secrets during a rotation', async () => {
    const { orchestrator, settle, http } = setUp(
      {},
      {
        env: { NEW: 'new-secret', OLD: 'old-secret' },
        ensembles: [notifying(`${COMPLETED}, secret: ["\${env.NEW}", "\${env.OLD}"]`)],
      },
    );
    await orchestrator.execute('pay', {});
    await settle();
    const { headers = {}, body } = http.calls[0] as (typeof http.calls)[0];
    const now = Number(headers['X-Service-Timestamp']) * 1000;
    const isSigned = (secret: string) => verifySignature({ secret, headers, body: String(body), now });
    expect([await isSigned('new-secret'), await isSigned('old-secret'), await isSigned('other')]).toEqual([
      true,
      true,
      false,
    ]);
  });

  it('with `standard: true` also has the headers of Standard Webhooks, which its package verifies', async () => {
    const secret = `whsec_${btoa('a secret of 24 bytes....')}`;
    const { orchestrator, clock, http } = setUp(
      {},
      { env: { SECRET: secret }, ensembles: [notifying(`${COMPLETED}, secret: "\${env.SECRET}", standard: true`)] },
    );
    clock.setNow(Date.now());
    await orchestrator.execute('pay', {});
    await clock.advance(0);
    const { headers = {}, body } = http.calls[0] as (typeof http.calls)[0];
    expect(headers['webhook-id']).toBe(headers['X-Service-Delivery']);
    expect(new Webhook(secret).verify(String(body), headers)).toMatchObject({ event: 'execution.completed' });
    expect(() => new Webhook(secret).verify(`${body} `, headers)).toThrow();
  });

  it('has the brand in the names of its headers', async () => {
    const { orchestrator, settle, http } = setUp(
      {},
      { brand: 'acme', env: { SECRET }, ensembles: [notifying(`${COMPLETED}, secret: "\${env.SECRET}"`)] },
    );
    await orchestrator.execute('pay', {});
    await settle();
    const names = Object.keys(http.calls[0]?.headers ?? {}).filter((name) => name.startsWith('X-'));
    expect(names.sort()).toEqual(
      ['Delivery', 'Delivery-Attempt', 'Event', 'Signature', 'Timestamp'].map((name) => `X-Acme-${name}`),
    );
  });
});

describe('an answer', () => {
  it.each([200, 204, 299, 301, 302, 304, 400, 401, 404, 409, 422, 429])('%s is not repeated', async (status) => {
    expect((await timesOf({ status })).times).toEqual([0]);
  });

  it.each<[string, StubReply]>([
    ['500', { status: 500 }],
    ['503', { status: 503 }],
    ['599', { status: 599 }],
    ['408', { status: 408 }],
    ['no connection', { error: 'connection' }],
    ['no answer in time', { error: 'timeout' }],
  ])('%s is repeated three times, after 1, 5 and 30 seconds', async (_what, reply) => {
    const { times, lines } = await timesOf(reply);
    expect(times).toEqual([0, 1, 6, 36]);
    expect(lines.filter(({ level }) => level === 'warn')).toMatchObject([
      { message: 'a delivery failed, and is not sent again', about: { attempts: 4, ensemble: 'pay' } },
    ]);
  });

  it('that fails is repeated five times at most, after 1, 5, 30, 120 and 300 seconds', async () => {
    expect((await timesOf({ status: 500 }, `${COMPLETED}, retries: 5`)).times).toEqual([0, 1, 6, 36, 156, 456]);
    expect((await timesOf({ status: 500 }, `${COMPLETED}, retries: 0`)).times).toEqual([0]);
    expect((await timesOf([{ status: 500 }, { status: 200 }])).times).toEqual([0, 1]);
  });

  it('with `Retry-After` is repeated later, where it is repeated', async () => {
    const headers = { 'retry-after': '20' };
    expect((await timesOf([{ status: 503, headers }, { status: 200 }])).times).toEqual([0, 20]);
    expect((await timesOf({ status: 429, headers })).times).toEqual([0]);
  });

  it('with `webhook-delivery: abort-message` ends the retries', async () => {
    expect((await timesOf({ status: 500, headers: { 'webhook-delivery': 'abort-message' } })).times).toEqual([0]);
  });

  it.each([
    [200, 'succeeded'],
    [404, 'failed'],
    [302, 'failed'],
  ])('whose answer has a body that can not be read is judged by its status alone: %i', async (status, expected) => {
    const peer = createServer((_request, response) => {
      count += 1;
      const end = ['gzip', 'zstd', 'cut', 'endless'][count % 4];
      if (end === 'gzip' || end === 'zstd') response.writeHead(status, { 'content-encoding': end }).end('?');
      else
        response
          .writeHead(status, { 'content-length': '1000' })
          // Not `destroy`: a reset connection may lose what was sent before it, the status too.
          .write('x', () => end === 'cut' && response.socket?.end());
    });
    let count = 0;
    await new Promise<void>((resolve) => peer.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(peer.address() as AddressInfo).port}/`;
    for (const client of [fetchHttp, nodeHttp]) {
      const definition = notifying('events: [execution.completed], timeout: 1000').replace(URL, url);
      const http = client({ allow: ['127.0.0.1'] });
      const { orchestrator } = setUp(undefined, { http, clock: systemClock(), ensembles: [definition] });
      const ended: string[] = [];
      orchestrator.on('delivery.succeeded', () => ended.push('succeeded'));
      orchestrator.on('delivery.failed', () => ended.push('failed'));
      const before = count;
      for (let nr = 1; nr <= 4; nr++) {
        await orchestrator.execute('pay');
        await expect.poll(() => ended.length, { timeout: 5000 }).toBe(nr);
      }
      expect([count - before, ...ended]).toEqual([4, expected, expected, expected, expected]);
      await orchestrator.close();
    }
    peer.closeAllConnections();
    await new Promise((resolve) => peer.close(resolve));
  });

  it('that is larger than is read counts by its status', async () => {
    const part = new Uint8Array(100_000);
    const endless = () => new ReadableStream({ pull: (controller) => controller.enqueue(part) });
    const reply = (status: number) => new Response(endless(), { status });
    for (const [status, count] of [
      [200, 1],
      [500, 4],
    ] as const) {
      let calls = 0;
      const http = fetchHttp({
        fetch: async () => {
          calls += 1;
          return reply(status);
        },
      });
      const { orchestrator, clock } = setUp({}, { http, ensembles: [notifying(COMPLETED)] });
      await orchestrator.execute('pay', {});
      for (let i = 0; i < 50; i++) await clock.advance(1000);
      expect(calls).toBe(count);
    }
  });
});

describe('a private address', () => {
  it('is refused at the attempt, and the attempt is not repeated', async () => {
    const urls = ['http://127.0.0.1:9000/', 'http://169.254.169.254/latest', 'http://localhost:8080/', 'http://[::1]/'];
    for (const url of urls) {
      const { orchestrator, clock, lines } = setUp(
        {},
        { http: fetchHttp(), ensembles: [notifying(COMPLETED).replace(URL, `"${url}"`)] },
      );
      await orchestrator.execute('pay', {});
      await clock.advance(1000);
      const failed = lines.filter(({ message }) => message === 'a delivery failed, and is not sent again');
      expect(failed).toMatchObject([{ about: { attempts: 1 } }]);
    }
  });
});

describe('receivers', () => {
  const two = (first: string, second: string) => `
name: pay
notifications:
  - { type: webhook, url: ${first}, events: [execution.completed] }
  - { type: webhook, url: ${second}, events: [execution.completed] }
flow:
  - { agent: work, operation: code, config: { script: work } }
`;

  it('a receiver that hangs delays no other, and has at most ten connections', async () => {
    const { http, orchestrator, clock } = setUp(
      {},
      { ensembles: [two('https://slow.example/', 'https://quick.example/')] },
    );
    let open = 0;
    let most = 0;
    http.on('https://slow.example/', async () => {
      open += 1;
      most = Math.max(most, open);
      await clock.sleep(5000);
      open -= 1;
      return { error: 'timeout' };
    });
    http.on('https://quick.example/', { status: 200 });
    for (let i = 0; i < 200; i++) await orchestrator.execute('pay', {});
    await clock.advance(0);
    expect(http.calls.filter(({ url }) => url === 'https://quick.example/')).toHaveLength(200);
    await clock.advance(20_000);
    expect(most).toBe(10);
  });

  it('two receivers of one host have ten connections together', async () => {
    const { http, orchestrator, clock } = setUp(
      {},
      { ensembles: [two('https://slow.example/a', 'https://slow.example/b')] },
    );
    let open = 0;
    let most = 0;
    const answer = async (): Promise<StubReply> => {
      open += 1;
      most = Math.max(most, open);
      await clock.sleep(100);
      open -= 1;
      return { status: 200 };
    };
    for (const path of ['a', 'b']) http.on(`https://slow.example/${path}`, answer);
    for (let i = 0; i < 50; i++) await orchestrator.execute('pay', {});
    await clock.advance(20_000);
    expect([most, http.calls.length]).toEqual([10, 100]);
  });

  it('one that answers 410 is paused at once: nothing more is sent to it', async () => {
    const { orchestrator, clock, http, lines } = setUp({ status: 410 }, { ensembles: [notifying(COMPLETED)] });
    await orchestrator.execute('pay', {});
    await clock.advance(1000);
    for (let i = 0; i < 5; i++) await orchestrator.execute('pay', {});
    await clock.advance(10 * DAY);
    expect(http.calls).toHaveLength(1);
    expect(lines.map(({ message }) => message)).toContain(
      'a receiver is paused: it answered 410; its deliveries wait until it is resumed',
    );
  });

  it('one whose first attempts fail for three days is paused; a probe that succeeds sends what has waited', async () => {
    let status = 500;
    const { orchestrator, clock, http, lines } = setUp(() => ({ status }), {
      ensembles: [notifying(`${COMPLETED}, retries: 0`)],
    });
    const isPaused = () => lines.some(({ message }) => message.includes('failed for three days'));
    for (let hour = 0; hour < 72; hour += 6) {
      await orchestrator.execute('pay', {});
      await clock.advance(6 * 3_600_000);
    }
    expect([http.calls.length, isPaused()]).toEqual([12, false]);
    await orchestrator.execute('pay', {});
    await clock.advance(1000);
    expect([http.calls.length, isPaused()]).toEqual([13, true]);
    for (let i = 0; i < 3; i++) await orchestrator.execute('pay', {});
    await clock.advance(1000);
    expect(http.calls).toHaveLength(13);
    // A probe that fails changes nothing.
    await orchestrator.execute('pay', {});
    await clock.advance(3_700_000);
    status = 200;
    const before = http.calls.length;
    expect(before).toBeGreaterThan(13);
    await clock.advance(2 * 3_700_000);
    expect(http.calls.length - before).toBeGreaterThanOrEqual(3);
    await orchestrator.execute('pay', {});
    await clock.advance(0);
    expect(http.calls.length - before).toBeGreaterThanOrEqual(4);
  });

  it('one that works again within three days is not paused', async () => {
    let status = 500;
    const { orchestrator, clock, lines } = setUp(() => ({ status }), {
      ensembles: [notifying(`${COMPLETED}, retries: 0`)],
    });
    for (let hour = 0; hour < 120; hour += 6) {
      status = hour === 48 ? 200 : 500;
      await orchestrator.execute('pay', {});
      await clock.advance(6 * 3_600_000);
    }
    expect(lines.filter(({ message }) => message.includes('paused'))).toEqual([]);
  });
});
