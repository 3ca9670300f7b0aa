/** `authenticate` of a handler: the host says who calls, and API tokens count for everyone that it does not know. */

import { describe, expect, it } from 'vitest';
import { OrchestratorError } from '../../src/engine/base/errors.ts';
import type { HostInfo } from '../../src/engine/host/host.port.ts';
import type { Authenticate } from '../../src/http-handlers/access/host-principal.ts';
import { type Ask, HOSTS } from './hosts.ts';
import { createService, post, readResponse, type Service } from './service.ts';

const LIST = '/api/v1/executions';
const ECHO = '/api/v1/execute/ensemble/echo';
const byCookie: Authenticate = (request) =>
  request.headers.get('cookie') === 'session=ada' ? { id: 'ada', scopes: ['read:executions'] } : undefined;

describe.each(HOSTS)('authenticate by $host', ({ open }) => {
  const serve = async (authenticate: Authenticate): Promise<{ service: Service; ask: Ask }> => {
    const service = createService({ authenticate });
    return { service, ask: await open(service.handler) };
  };
  const ada = { cookie: 'session=ada' };

  it('a returned principal is who calls, with its scopes only', async () => {
    const { ask } = await serve(byCookie);
    expect((await ask(LIST, { headers: ada })).status).toBe(200);
    expect(await readResponse(ask(ECHO, post({ input: {} }, ada)))).toMatchObject({
      status: 403,
      body: { error: { code: 'FORBIDDEN', providedScopes: ['read:executions'] } },
    });
  });

  it('`GET /caller` says who calls and what it may do, for a principal and for a token', async () => {
    const { service, ask } = await serve(byCookie);
    const caller = async (headers: Record<string, string>) =>
      (await readResponse(ask('/api/v1/caller', { headers }))).body;
    expect(await caller(ada)).toEqual({ id: 'ada', name: 'ada', scopes: ['read:executions'], plan: 'free' });
    expect(await caller(await service.bearer('admin'))).toEqual({
      id: expect.stringMatching(/^tok_/),
      ...{ name: 'test', scopes: ['admin'], plan: 'enterprise' },
    });
  });

  it('for undefined the API token of the request counts, and without one the response is 401', async () => {
    const { service, ask } = await serve(byCookie);
    const headers = await service.bearer('read:executions');
    expect((await ask(LIST, { headers })).status).toBe(200);
    const { status, headers: sent } = await ask(LIST);
    expect([status, sent.get('www-authenticate')]).toEqual([401, 'Bearer']);
  });

  it('it comes before the check of the token: a wrong token does not matter to a known caller', async () => {
    const { ask } = await serve(async (request, host) => byCookie(request, host));
    expect((await ask(LIST, { headers: { ...ada, authorization: 'Bearer nobody' } })).status).toBe(200);
  });

  it('gets method, URL, headers and the host, and no body; the route still reads the body', async () => {
    const seen: unknown[] = [];
    const { ask } = await serve(async (request: Request, host: HostInfo) => {
      seen.push([request.method, new URL(request.url).pathname, request.headers.get('x-team'), host.ip !== undefined]);
      seen.push(request.body, await request.text());
      return { id: 'any', scopes: ['execute:ensembles'] };
    });
    const response = await readResponse(ask(ECHO, post({ input: { n: 1 } }, { 'x-team': 'blue' })));
    expect(response.body).toMatchObject({ status: 'completed', output: { said: { n: 1 } } });
    expect(seen).toEqual([['POST', ECHO, 'blue', true], null, '']);
  });

  it('is not called for public routes, unknown paths and preflights', async () => {
    let calls = 0;
    const { ask } = await serve(() => {
      calls += 1;
      return undefined;
    });
    for (const path of ['/api/v1/health', '/api/v1/nothing']) await ask(path);
    await ask(LIST, { method: 'OPTIONS' });
    await ask(LIST, { method: 'DELETE' });
    expect(calls).toBe(0);
  });

  it('what it throws is a 500 without a reason; the log has the reason', async () => {
    const { ask, service } = await serve(() => {
      throw new Error('the session store at 10.0.0.7 is down');
    });
    const { status, body } = await readResponse(ask(LIST, { headers: ada }));
    expect([status, body.error.code]).toEqual([500, 'INTERNAL']);
    expect(JSON.stringify(body)).not.toContain('session store');
    expect(service.log).toMatchObject([
      {
        level: 'error',
        fields: { err: { message: expect.stringContaining('the session store at 10.0.0.7 is down') } },
      },
    ]);
  });

  it.each([
    ['UNAUTHORIZED', 401, 'Bearer'],
    ['TOKEN_EXPIRED', 401, 'Bearer'],
    ['FORBIDDEN', 403, null],
  ] as const)('an OrchestratorError with %s is answered as such, and not logged', async (code, expected, challenge) => {
    const { ask, service } = await serve(() => Promise.reject(new OrchestratorError(code, 'this account is locked')));
    const { status, body, headers } = await readResponse(ask(LIST, { headers: await service.bearer('admin') }));
    expect([status, body.error.message, headers.get('www-authenticate')]).toEqual([
      expected,
      'this account is locked',
      challenge,
    ]);
    expect(service.log).toEqual([]);
  });

  it('any other error is a 500, also one with a code of its own', async () => {
    const { ask } = await serve(() => Promise.reject(new OrchestratorError('NOT_FOUND', 'no user 7')));
    const { status, body } = await readResponse(ask(LIST));
    expect([status, JSON.stringify(body).includes('user 7')]).toEqual([500, false]);
  });

  it.each([
    [{ scopes: ['admin'] }, '`id` must be text'],
    [{ id: '', scopes: ['admin'] }, '`id` must be text'],
    [{ id: 'ada' }, '`scopes` must be a list'],
    [{ id: 'ada', scopes: ['read:execution'] }, 'did you mean read:executions?'],
    [{ id: 'ada', scopes: [7] }, '7 is not a scope'],
    [{ id: 'ada', scopes: [], plan: 'gold' }, '`plan` must be one of free, pro, enterprise'],
    [true, '`id` must be text'],
    ['ada', '`id` must be text'],
  ])('%j is not a principal: 500, and the log says what is wrong', async (given, message) => {
    const { ask, service } = await serve(() => given as never);
    expect((await ask(LIST)).status).toBe(500);
    expect(service.log).toMatchObject([{ fields: { err: { message: expect.stringContaining(message) } } }]);
  });

  it('is asked again while an event stream is open: the stream ends when the caller is not known any more', async () => {
    let isLoggedIn = true;
    const { ask, service } = await serve(() => (isLoggedIn ? { id: 'ada', scopes: ['read:executions'] } : undefined));
    const begun = service.begun();
    const run = await service.orchestrator.start('slow');
    await begun;
    const stream = (await ask(`${LIST}/${run.id}/events`)).body as ReadableStream<Uint8Array>;
    const reader = stream.getReader();
    await reader.read();
    isLoggedIn = false;
    await service.clock.advance(15_000);
    expect(await reader.read()).toEqual({ done: true, value: undefined });
  });

  it('open event streams are counted for each id', async () => {
    const service = createService({
      authenticate: (request) => ({ id: request.headers.get('x-user') ?? '', scopes: ['read:executions'] }),
      maxStreamsPerToken: 1,
    });
    const ask = await open(service.handler);
    const begun = service.begun();
    const run = await service.orchestrator.start('slow');
    await begun;
    const follow = async (user: string) => {
      const response = await ask(`${LIST}/${run.id}/events`, { headers: { 'x-user': user } });
      return response.status;
    };
    expect([await follow('ada'), await follow('ada'), await follow('bob')]).toEqual([200, 503, 200]);
  });
});

describe('the option', () => {
  it('must be a function', () => {
    expect(() => createService({ authenticate: 'session' as never })).toThrow('`authenticate` must be a function');
  });
});
