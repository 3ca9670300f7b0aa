/** Credentials: what is taken for a token, when it counts, and what a refusal says. */

import { request as httpRequest } from 'node:http';
import { beforeEach, describe, expect, it } from 'vitest';
import { toNodeListener } from '../../src/adapters/node/to-node-listener.ts';
import { memoryStorage } from '../../src/adapters/storage/memory-storage.ts';
import { type Ask, DOORS, serve } from './doors.ts';
import { createService, post, type Service, told } from './service.ts';

const LIST = '/api/v1/executions';

describe.each(DOORS)('authentication by $door', ({ open }) => {
  let service: Service;
  let ask: Ask;
  let authorization: string;
  let lookups: number;
  beforeEach(async () => {
    const storage = memoryStorage();
    const { findByDigest } = storage.tokens;
    lookups = 0;
    Object.assign(storage.tokens, {
      findByDigest: (digest: string) => {
        lookups += 1;
        return findByDigest.call(storage.tokens, digest);
      },
    });
    service = createService({}, { storage });
    ask = await open(service.handler);
    ({ authorization } = await service.bearer('admin'));
  });
  const token = () => authorization.slice('Bearer '.length);

  it.each([
    ['Bearer TOKEN', 200],
    ['bearer TOKEN', 200],
    ['BEARER   TOKEN', 200],
    ['TOKEN', 401],
    ['Basic TOKEN', 401],
    ['Token TOKEN', 401],
    ['Bearex TOKEN', 401],
    ['BearerxTOKEN', 401],
    ['Bearer', 401],
    ['Bearer TOKEN TOKEN', 401],
    ['Bearer TOKEN, Bearer TOKEN', 401],
    ['Bearer "TOKEN"', 401],
  ])('A83, A94: `Authorization: %s` is %i', async (form, status) => {
    const answer = await ask(LIST, { headers: { authorization: form.replaceAll('TOKEN', token()) } });
    expect(answer.status).toBe(status);
  });

  it('A93: a token of a wrong form is 401 without a look in the store', async () => {
    const good = token();
    const last = good.endsWith('0') ? '1' : '0';
    const forms = [
      good.slice(0, -1) + last,
      good.slice(0, -1),
      `${good}0`,
      good.replace('sk-service-', 'sk-other-'),
      good.toUpperCase(),
      'x',
      'a'.repeat(10_000),
      `${good.slice(0, -1)}\u00e9`,
    ];
    for (const form of forms) {
      const answer = await told(ask(LIST, { headers: { authorization: `Bearer ${form}` } }));
      expect([form.slice(0, 60), answer.status, answer.body.error.code]).toEqual([
        form.slice(0, 60),
        401,
        'UNAUTHORIZED',
      ]);
      expect(answer.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"');
      expect(JSON.stringify(answer.body)).not.toContain(form.slice(0, 20));
    }
    expect(lookups).toBe(0);
    expect((await ask(LIST, { headers: { authorization } })).status).toBe(200);
    expect(lookups).toBe(1);
  });

  it('A94: a token in the query, a cookie, the body or another header is none', async () => {
    expect((await ask(`${LIST}?access_token=${token()}`)).status).toBe(401);
    expect((await ask(LIST, { headers: { cookie: `token=${token()}` } })).status).toBe(401);
    expect(
      (
        await ask(LIST, {
          headers: { 'x-service-api-key': token(), 'x-api-key': token(), 'proxy-authorization': authorization },
        })
      ).status,
    ).toBe(401);
    expect((await ask('/api/v1/tokens', post({ access_token: token(), name: 'x', scopes: ['admin'] }))).status).toBe(
      401,
    );
  });

  it('A89: a token counts until the millisecond before expiresAt; then TOKEN_EXPIRED names the instant', async () => {
    const made = await service.orchestrator.tokens.create({
      name: 'brief',
      scopes: ['read:executions'],
      expiresIn: 60,
    });
    const headers = { authorization: `Bearer ${made.token}` };
    await service.clock.advance(59_999);
    expect((await ask(LIST, { headers })).status).toBe(200);
    await service.clock.advance(1);
    const answer = await told(ask(LIST, { headers }));
    expect(answer).toMatchObject({
      status: 401,
      body: { error: { code: 'TOKEN_EXPIRED', expiredAt: made.expiresAt } },
    });
    expect(answer.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"');
  });

  it('A90, A92: an unknown token is a plain 401; unknown and malformed ids get one and the same 404', async () => {
    const stranger = await createService().bearer('admin');
    const unknown = await told(ask(LIST, { headers: stranger }));
    expect(unknown).toMatchObject({ status: 401, body: { error: { code: 'UNAUTHORIZED' } } });
    expect(unknown.body.error).not.toHaveProperty('expiredAt');

    const ids = [
      'tok_01M7WWEK7KT35PGB6V8KCP7X7Z',
      'tok_x',
      'exec_01M7WWEK7KT35PGB6V8KCP7X7Z',
      '%27%20OR%201=1',
      '%00',
      `t${'o'.repeat(2_000)}k`,
    ];
    const answers = await Promise.all(
      ids.map((id) => told(ask(`/api/v1/tokens/${id}`, { method: 'DELETE', headers: { authorization } }))),
    );
    expect(new Set(answers.map(({ status, body }) => `${status} ${JSON.stringify(body)}`))).toEqual(
      new Set(['404 {"error":{"code":"NOT_FOUND","message":"there is no such token"}}']),
    );
  });

  it('A99: 401 and 403 do not tell whether an ensemble is there', async () => {
    const weak = await service.bearer('read:state');
    for (const headers of [{}, weak] as Record<string, string>[]) {
      const [there, missing] = await Promise.all(
        ['greet', 'nobody'].map((name) => told(ask(`/api/v1/execute/ensemble/${name}`, post({}, headers)))),
      );
      expect([there?.status, there?.body]).toEqual([missing?.status, missing?.body]);
      expect(there?.status).toBe('authorization' in headers ? 403 : 401);
    }
  });

  it('D30: an unknown path is 404 before any hint at credentials', async () => {
    const answer = await told(ask('/api/v1/nothing'));
    expect(answer).toMatchObject({ status: 404, body: { error: { code: 'NOT_FOUND' } } });
    expect(answer.headers.get('www-authenticate')).toBeNull();
  });

  it('A97: a token that is used again within a minute is not written again', async () => {
    const writes: number[] = [];
    const storage = memoryStorage();
    const { touch } = storage.tokens;
    Object.assign(storage.tokens, {
      touch: (id: string, at: number) => {
        writes.push(at);
        return touch.call(storage.tokens, id, at);
      },
    });
    const busy = createService({}, { storage });
    const knock = await open(busy.handler);
    const headers = await busy.bearer('read:executions');
    for (let i = 0; i < 20; i++) await (await knock(LIST, { headers })).text();
    await busy.clock.advance(60_000);
    await (await knock(LIST, { headers })).text();
    expect(writes).toHaveLength(2);
  });
});

describe('two Authorization headers on the wire', () => {
  it('A94: are 401, whichever of them is good (Node itself would drop the second)', async () => {
    const service = createService();
    const { authorization } = await service.bearer('admin');
    const origin = await serve(toNodeListener(service.handler));
    const status = (headers: readonly string[]) =>
      new Promise<number | undefined>((resolve, reject) => {
        const sent = httpRequest(`${origin}${LIST}`, { headers }, (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        });
        sent.on('error', reject).end();
      });
    expect(await status(['Host', 'x', 'Authorization', authorization])).toBe(200);
    expect(await status(['Host', 'x', 'Authorization', authorization, 'Authorization', authorization])).toBe(401);
    expect(await status(['Host', 'x', 'Authorization', authorization, 'authorization', 'Basic eA=='])).toBe(401);
    expect(await status(['Host', 'x', 'Authorization', 'Basic eA==', 'Authorization', authorization])).toBe(401);
  });
});
