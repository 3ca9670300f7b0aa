/** Limits of webhooks, and bursts (contract 5: public webhooks 600 a minute and address; none for authenticated ones). */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { signPayload } from '../../src/engine/signing/sign-payload.ts';
import { sqliteStorage } from '../../src/entries/sqlite.ts';
import { echo, openWebhooks } from './world.ts';

const folder = mkdtempSync(join(tmpdir(), 'webhook-flow-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const NOTHING = { flow: [], outputs: {} };

describe('the limit of public webhooks', () => {
  it('is 600 requests a minute and address, with the headers of a limit', async () => {
    const { handler, clock } = openWebhooks([echo({ public: true }, NOTHING)]);
    const ask = async (ip = '192.0.2.1') => {
      const response = await handler.fetch(new Request('http://localhost/webhooks/echo', { method: 'POST' }), { ip });
      return { status: response.status, headers: response.headers, body: await response.json() };
    };
    for (let i = 0; i < 600; i++) expect((await ask()).status).toBe(200);
    const refused = await ask();
    expect([refused.status, refused.headers.get('retry-after'), refused.headers.get('x-ratelimit-limit')]).toEqual([
      ...[429, '60', '600'],
    ]);
    expect(refused.body).toEqual({
      error: 'the limit of 600 requests of this address is reached; send the next one in 60 seconds',
    });
    expect((await ask('192.0.2.2')).headers.get('x-ratelimit-remaining')).toBe('599');
    await clock.advance(60_000);
    expect((await ask()).status).toBe(200);
  });

  it('is ten times as large, and says so, for all senders together whose address is not known', async () => {
    const limits = { webhooks: { requests: 2, window: 10 } };
    const { handler } = openWebhooks([echo({ public: true }, NOTHING)], { limits });
    const ask = async () => {
      const response = await handler.fetch(new Request('http://localhost/webhooks/echo', { method: 'POST' }));
      return [response.status, (await response.json()).error];
    };
    for (let i = 0; i < 20; i++) expect(await ask()).toEqual([200, undefined]);
    expect(await ask()).toEqual([429, expect.stringContaining('20 requests of all clients without a known address')]);
  });

  it('is set by `limits.webhooks`; requests of webhooks with `auth` count only if they are refused', async () => {
    const auth = { type: 'bearer', secret: 's' };
    const { post } = openWebhooks([echo({ auth }, NOTHING)], { limits: { webhooks: { requests: 2, window: 10 } } });
    const ask = async (secret: string) =>
      (await post('/webhooks/echo', {}, { authorization: `Bearer ${secret}` })).status;
    for (let i = 0; i < 5; i++) expect(await ask('s')).toBe(200);
    expect([await ask('a'), await ask('b'), await ask('c'), await ask('s')]).toEqual([401, 401, 429, 200]);
  });

  it.each([
    [{ requests: -1 }, 'requests'],
    [{ window: 0 }, 'window'],
    [{ concurrent: 1 }, '`webhooks` has `concurrent`; its keys are requests, window'],
  ])('%j is refused', (webhooks, named) => {
    expect(() => openWebhooks([], { limits: { webhooks: webhooks as never } })).toThrow(named);
  });
});

describe('a burst', () => {
  it('of 2,000 signed requests, 100 at a time, is absorbed on SQLite: none is lost, none runs twice', async () => {
    const storage = sqliteStorage({ path: join(folder, 'burst.db') });
    const auth = { type: 'signature', secret: 'hush' };
    const flow = { flow: [{ agent: 'count', operation: 'code', config: { script: 'count' } }], outputs: {} };
    const ran = new Map<string, number>();
    const { handler, clock, orchestrator } = openWebhooks([echo({ auth, async: true }, flow)], {
      storage,
      scripts: { count: ({ input }) => void ran.set(String(input.n), (ran.get(String(input.n)) ?? 0) + 1) },
    });
    const send = async (n: number) => {
      const body = JSON.stringify({ n });
      const headers = {
        'content-type': 'application/json',
        ...signPayload({ secret: 'hush', body, now: clock.now() }),
      };
      const request = () => new Request('http://localhost/webhooks/echo', { method: 'POST', headers, body });
      // Every tenth sender gets no answer in time and sends its request again.
      const answers = await Promise.all([
        handler.fetch(request()),
        ...(n % 10 === 0 ? [handler.fetch(request())] : []),
      ]);
      const ids = await Promise.all(answers.map(async (answer) => [answer.status, (await answer.json()).executionId]));
      expect(new Set(ids.map(String)).size).toBe(1);
      return ids[0] as [number, string];
    };
    const ids = new Set<string>();
    for (let n = 0; n < 2_000; n += 100) {
      const answers = await Promise.all(Array.from({ length: 100 }, (_, more) => send(n + more)));
      for (const [status, id] of answers) {
        expect(status).toBe(202);
        ids.add(id);
      }
    }
    expect(ids.size).toBe(2_000);
    while (ran.size < 2_000) await clock.advance(100);
    expect([...ran.values()].every((times) => times === 1)).toBe(true);
    await orchestrator.close();
  });
});
