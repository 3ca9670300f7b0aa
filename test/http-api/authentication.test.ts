/** Credentials: which values are tokens, how long a token is valid, and what a refusal says. */

import { request as httpRequest } from 'node:http';
import { beforeEach, describe, expect, it } from 'vitest';
import { toNodeListener } from '../../src/adapters/hosts/node/to-node-listener.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { type Ask, HOSTS, serve } from './hosts.ts';
import { createService, post, readResponse, type Service } from './service.ts';

const LIST = '/api/v1/executions';

describe.each(HOSTS)('authentication by $host', ({ open }) => {
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
  ])('`Authorization: %s` is %i', async (form, status) => {
    const response = await ask(LIST, { headers: { authorization: form.replaceAll('TOKEN', token()) } });
    expect(response.status).toBe(status);
  });

  it('a malformed token is 401, and the storage is not read', async () => {
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
      const response = await readResponse(ask(LIST, { headers: { authorization: `Bearer ${form}` } }));
      expect([form.slice(0, 60), response.status, response.body.error.code]).toEqual([
        form.slice(0, 60),
        401,
        'UNAUTHORIZED',
      ]);
      expect(response.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"');
      expect(JSON.stringify(response.body)).not.toContain(form.slice(0, 20));
    }
    expect(lookups).toBe(0);
    expect((await ask(LIST, { headers: { authorization } })).status).toBe(200);
    expect(lookups).toBe(1);
  });

  it('a token in the query, a cookie, the body or another header does not count', async () => {
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

  it('a token is valid until the millisecond before expiresAt; after that TOKEN_EXPIRED names the instant', async () => {
    const made = await service.orchestrator.tokens.create({
      name: 'brief',
      scopes: ['read:executions'],
      expiresIn: 60,
    });
    const headers = { authorization: `Bearer ${made.token}` };
    await service.clock.advance(59_999);
    expect((await ask(LIST, { headers })).status).toBe(200);
    await service.clock.advance(1);
    const response = await readResponse(ask(LIST, { headers }));
    expect(response).toMatchObject({
      status: 401,
      body: { error: { code: 'TOKEN_EXPIRED', expiredAt: made.expiresAt } },
    });
    expect(response.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"');
  });

  it('an unknown token is 401 UNAUTHORIZED; unknown and malformed ids get the same 404', async () => {
    const stranger = await createService().bearer('admin');
    const unknown = await readResponse(ask(LIST, { headers: stranger }));
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
    const responses = await Promise.all(
      ids.map((id) => readResponse(ask(`/api/v1/tokens/${id}`, { method: 'DELETE', headers: { authorization } }))),
    );
    expect(new Set(responses.map(({ status, body }) => `${status} ${JSON.stringify(body)}`))).toEqual(
      new Set(['404 {"error":{"code":"NOT_FOUND","message":"there is no such token"}}']),
    );
  });

  it('401 and 403 do not reveal whether an ensemble exists', async () => {
    const weak = await service.bearer('read:state');
    for (const headers of [{}, weak] as Record<string, string>[]) {
      const [there, missing] = await Promise.all(
        ['greet', 'nobody'].map((name) => readResponse(ask(`/api/v1/execute/ensemble/${name}`, post({}, headers)))),
      );
      expect([there?.status, there?.body]).toEqual([missing?.status, missing?.body]);
      expect(there?.status).toBe('authorization' in headers ? 403 : 401);
    }
  });

  it('an unknown path is 404, without a challenge for credentials', async () => {
    const response = await readResponse(ask('/api/v1/nothing'));
    expect(response).toMatchObject({ status: 404, body: { error: { code: 'NOT_FOUND' } } });
    expect(response.headers.get('www-authenticate')).toBeNull();
  });

  it('the last use of a token is written at most once a minute', async () => {
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
    const call = await open(busy.handler);
    const headers = await busy.bearer('read:executions');
    for (let i = 0; i < 20; i++) await (await call(LIST, { headers })).text();
    await busy.clock.advance(60_000);
    await (await call(LIST, { headers })).text();
    expect(writes).toHaveLength(2);
  });
});

describe('two Authorization headers on the wire', () => {
  it('are 401, whichever of them is valid (Node itself would drop the second)', async () => {
    const service = createService();
    const { authorization } = await service.bearer('admin');
    const origin = await serve(toNodeListener(service.handler));
    const status = (headers: readonly string[]) =>
      new Promise<number | undefined>((resolve, reject) => {
        const sent = httpRequest(`${origin}${LIST}`, { headers }, (response) => {
          response.resume();
          resolve(response.statusCode);
        });
        sent.on('error', reject).end();
      });
    expect(await status(['Host', 'x', 'Authorization', authorization])).toBe(200);
    expect(await status(['Host', 'x', 'Authorization', authorization, 'Authorization', authorization])).toBe(401);
    expect(await status(['Host', 'x', 'Authorization', authorization, 'authorization', 'Basic eA=='])).toBe(401);
    expect(await status(['Host', 'x', 'Authorization', 'Basic eA==', 'Authorization', authorization])).toBe(401);
  });
});
