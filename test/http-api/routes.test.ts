/** The routes: the scope that each needs, its response, and the response without the scope. */

import { beforeEach, describe, expect, it } from 'vitest';
import { createTokenValue } from '../../src/engine/access/rules/token-value.ts';
import { SCOPES, type TokenScope } from '../../src/engine/access/token.ts';
import { API_ROUTES } from '../../src/http-handlers/api/routes.ts';
import { type Ask, HOSTS } from './hosts.ts';
import { createService, post, readResponse, type Service } from './service.ts';

const NOBODY = 'exec_01M7WWEK7KT35PGB6V8KCP7X7Z';
const NO_JOB = 'job_01M7WWEK7KT35PGB6V8KCP7X7Z';
const NO_DELIVERY = 'dlv_01M7WWEK7KT35PGB6V8KCP7X7Z';

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
type Row = readonly [method: Method, path: string, scope: TokenScope | 'any', status: number];

const rowsOf = (path: string, kind: 'ensembles' | 'agents', known: string): readonly Row[] => [
  ['GET', path, `read:${kind}`, 200],
  ['POST', path, `write:${kind}`, 400],
  ['GET', `${path}/${known}`, `read:${kind}`, 200],
  ['PUT', `${path}/nobody`, `write:${kind}`, 400],
  ['DELETE', `${path}/nobody`, `write:${kind}`, 404],
  ['POST', `${path}/nobody/activate`, `write:${kind}`, 404],
  ['POST', `${path}/nobody/deactivate`, `write:${kind}`, 404],
];

/** Every route of the API but the public ones: method, path, the required scope, and the status with that scope. */
const ROUTES: readonly Row[] = [
  ['GET', '/api/v1/usage', 'any', 200],
  ['GET', '/api/v1/caller', 'any', 200],
  ['GET', '/api/v1/tokens', 'admin', 200],
  ['POST', '/api/v1/tokens', 'admin', 201],
  ['DELETE', '/api/v1/tokens/tok_01M7WWEK7KT35PGB6V8KCP7X7Z', 'admin', 404],
  ['GET', '/api/v1/tokens/tok_01M7WWEK7KT35PGB6V8KCP7X7Z/usage', 'admin', 404],
  ['POST', '/api/v1/execute/ensemble/echo', 'execute:ensembles', 200],
  ['POST', '/api/v1/execute/agent/double', 'execute:agents', 200],
  ['GET', '/api/v1/executions', 'read:executions', 200],
  ['GET', '/api/v1/open', 'read:executions', 200],
  ['GET', '/api/v1/stats', 'read:executions', 200],
  ['GET', `/api/v1/executions/${NOBODY}`, 'read:executions', 404],
  ['GET', `/api/v1/executions/${NOBODY}/agents`, 'read:executions', 404],
  ['GET', `/api/v1/executions/${NOBODY}/agents/a`, 'read:executions', 404],
  ['GET', `/api/v1/executions/${NOBODY}/steps`, 'read:executions', 404],
  ['GET', `/api/v1/executions/${NOBODY}/steps/a`, 'read:executions', 404],
  ['GET', `/api/v1/executions/${NOBODY}/steps/a/input`, 'read:executions', 404],
  ['GET', `/api/v1/executions/${NOBODY}/running`, 'read:executions', 404],
  ['GET', `/api/v1/executions/${NOBODY}/history`, 'read:executions', 404],
  ['GET', `/api/v1/executions/${NOBODY}/definition`, 'read:ensembles', 404],
  ['GET', `/api/v1/executions/${NOBODY}/events`, 'read:executions', 404],
  ['POST', `/api/v1/executions/${NOBODY}/events/ticket`, 'read:executions', 404],
  ['POST', `/api/v1/executions/${NOBODY}/cancel`, 'execute:ensembles', 404],
  ['POST', `/api/v1/executions/${NOBODY}/pause`, 'execute:ensembles', 404],
  ['POST', `/api/v1/executions/${NOBODY}/resume`, 'execute:ensembles', 404],
  ['POST', `/api/v1/executions/${NOBODY}/retry`, 'execute:ensembles', 404],
  ['POST', `/api/v1/executions/${NOBODY}/complete`, 'execute:ensembles', 404],
  ['POST', `/api/v1/executions/${NOBODY}/signals/go`, 'execute:ensembles', 404],
  ['DELETE', `/api/v1/executions/${NOBODY}`, 'admin', 404],
  ['GET', '/api/v1/jobs', 'read:executions', 200],
  ['POST', '/api/v1/jobs', 'execute:ensembles', 202],
  ['POST', '/api/v1/moves', 'execute:ensembles', 200],
  ['POST', '/api/v1/pause', 'execute:ensembles', 404],
  ['POST', '/api/v1/resume', 'execute:ensembles', 404],
  ['GET', '/api/v1/pauses', 'read:executions', 200],
  ['GET', '/api/v1/audit', 'admin', 200],
  ['GET', `/api/v1/jobs/${NO_JOB}`, 'read:executions', 404],
  ['POST', `/api/v1/jobs/${NO_JOB}/stop`, 'execute:ensembles', 404],
  ['GET', '/api/v1/deliveries', 'read:executions', 200],
  ['GET', `/api/v1/deliveries/${NO_DELIVERY}`, 'read:executions', 404],
  ['POST', `/api/v1/deliveries/${NO_DELIVERY}/redeliver`, 'execute:ensembles', 404],
  ['GET', '/api/v1/replays', 'read:executions', 200],
  ['POST', '/api/v1/replays', 'execute:ensembles', 202],
  ['GET', '/api/v1/receivers', 'read:executions', 200],
  ['POST', `/api/v1/receivers/webhook:${'0'.repeat(32)}/resume`, 'execute:ensembles', 404],
  ['GET', '/api/v1/workflows', 'read:ensembles', 200],
  ...rowsOf('/api/v1/ensembles', 'ensembles', 'greet'),
  ...rowsOf('/ensembles', 'ensembles', 'greet'),
  ...rowsOf('/api/v1/agents', 'agents', 'double'),
  ...(['ensembles', 'agents'] as const).flatMap((kind): Row[] => [
    ['GET', `/api/v1/${kind}/nobody/versions`, `read:${kind}`, 404],
    ['GET', `/api/v1/${kind}/nobody/versions/v1`, `read:${kind}`, 404],
    ['POST', `/api/v1/${kind}/nobody/rollback`, `write:${kind}`, 404],
  ]),
  ['GET', '/api/v1/ensembles/nobody/traffic', 'read:ensembles', 404],
  ['PUT', '/api/v1/ensembles/nobody/traffic', 'write:ensembles', 404],
  ['GET', '/api/v1/components', 'read:components', 200],
  ['POST', '/api/v1/components', 'write:components', 400],
  ['GET', '/api/v1/components/nobody', 'read:components', 404],
  ['PUT', '/api/v1/components/nobody', 'write:components', 404],
  ['GET', '/api/v1/components/nobody/versions', 'read:components', 404],
  ['POST', '/api/v1/components/nobody/versions', 'write:components', 400],
  ['GET', '/api/v1/components/nobody/versions/latest', 'read:components', 404],
  ['GET', '/api/v1/components/nobody/deployments', 'read:components', 404],
  ['PUT', '/api/v1/components/nobody/deployments/production', 'write:components', 400],
  ['DELETE', '/api/v1/components/nobody/deployments/production', 'write:components', 404],
  ['POST', '/api/v1/components/nobody/deployments/production/rollback', 'write:components', 404],
  ['GET', '/api/v1/schedules', 'read:ensembles', 200],
  ['POST', '/api/v1/schedules/nobody.0/pause', 'write:ensembles', 404],
  ['POST', '/api/v1/schedules/nobody.0/resume', 'write:ensembles', 404],
  ['POST', '/api/v1/schedules/nobody.0/run', 'execute:ensembles', 404],
  ['GET', '/api/v1/state/greet', 'read:state', 404],
  ['PUT', '/api/v1/state/greet', 'write:state', 400],
  ['PATCH', '/api/v1/state/greet', 'write:state', 400],
  ['DELETE', '/api/v1/state/greet', 'write:state', 404],
];
const BODIES: Readonly<Record<string, unknown>> = {
  '/api/v1/tokens': { name: 'new', scopes: ['read:state'] },
  '/api/v1/execute/agent/double': { input: { n: 2 } },
  '/api/v1/jobs': { action: 'cancel', filter: { ensemble: 'echo' } },
  '/api/v1/moves': { ensemble: 'echo', to: 'latest' },
  [`/api/v1/executions/${NOBODY}/complete`]: { key: 'flow[0]', output: 1 },
  '/api/v1/pause': { ensemble: 'nobody' },
  '/api/v1/resume': { ensemble: 'nobody' },
  '/api/v1/ensembles/nobody/rollback': { to: 'v1' },
  '/api/v1/agents/nobody/rollback': { to: 'v1' },
};

describe.each(HOSTS)('routes by $host', ({ open }) => {
  let service: Service;
  let ask: Ask;
  beforeEach(async () => {
    service = createService();
    ask = await open(service.handler);
  });
  const send = (method: string, path: string, headers: Record<string, string> = {}) =>
    readResponse(ask(path, method === 'POST' ? post(BODIES[path] ?? {}, headers) : { method, headers }));

  /** A token with all scopes that expires at once, and one that is revoked. */
  const pastTokens = async () => {
    const { tokens } = service.orchestrator;
    const expired = await tokens.create({ name: 'expired', scopes: ['admin'], expiresIn: 1 });
    const revoked = await tokens.create({ name: 'revoked', scopes: ['admin'] });
    await tokens.revoke(revoked.id);
    await service.clock.advance(1_000);
    return { expired, revoked };
  };

  it('every route of the API is in the table', () => {
    const named = API_ROUTES.filter(({ scope }) => scope !== 'public');
    const isRoute = (row: Row, { method, path }: (typeof named)[0]) =>
      row[0] === method && new RegExp(`^${path.replace(/:[a-z]+/g, '[^/]+')}$`).test(row[1]);
    expect(named.filter((route) => ROUTES.filter((row) => isRoute(row, route)).length !== 1)).toEqual([]);
    expect(ROUTES).toHaveLength(named.length);
    const open = API_ROUTES.filter(({ scope }) => scope === 'public').map(({ path }) => path);
    expect(open).toEqual(['/api/v1/health', '/api/v1/openapi.json']);
  });

  it.each(ROUTES)(
    '%s %s needs the scope %s: no token, an unknown, an expired, a revoked and a lacking one are refused, the right one and admin are not',
    async (method, path, scope, status) => {
      const { expired, revoked } = await pastTokens();
      const without = await send(method, path);
      expect(without).toMatchObject({ status: 401, body: { error: { code: 'UNAUTHORIZED' } } });
      expect(without.headers.get('www-authenticate')).toBe('Bearer');
      for (const [token, error] of [
        [createTokenValue('service'), { code: 'UNAUTHORIZED' }],
        [revoked.token, { code: 'UNAUTHORIZED' }],
        [expired.token, { code: 'TOKEN_EXPIRED', expiredAt: expired.expiresAt }],
      ] as const) {
        const refused = await send(method, path, { authorization: `Bearer ${token}` });
        expect(refused).toMatchObject({ status: 401, body: { error } });
        expect(refused.headers.get('www-authenticate')).toContain('Bearer error="invalid_token"');
      }
      const others = SCOPES.filter((one) => one !== scope && one !== 'admin');
      const lacking = await send(method, path, await service.bearer(...others));
      if (scope === 'any') expect(lacking.status).toBe(status);
      else {
        const error = { code: 'FORBIDDEN', requiredScope: scope, providedScopes: others };
        expect(lacking).toMatchObject({ status: 403, body: { error } });
        expect(lacking.headers.get('www-authenticate')).toBe(`Bearer error="insufficient_scope", scope="${scope}"`);
        expect((await send(method, path, await service.bearer(scope))).status).toBe(status);
      }
      const allowed = await send(method, path, await service.bearer('admin'));
      expect(allowed.status).toBe(status);
      // Also a refusal says what is left.
      for (const { headers } of [without, lacking, allowed])
        expect(headers.get('x-ratelimit-remaining')).toMatch(/^\d+$/);
    },
  );

  it.each([
    ['/api/v1/tokens', 'POST, GET, HEAD, OPTIONS', ['PUT', 'PATCH', 'DELETE']],
    ['/api/v1/tokens/tok_01M7WWEK7KT35PGB6V8KCP7X7Z', 'DELETE, OPTIONS', ['GET', 'HEAD', 'POST', 'PUT']],
    ['/api/v1/execute/ensemble/echo', 'POST, OPTIONS', ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH']],
    ['/api/v1/executions', 'GET, HEAD, OPTIONS', ['POST', 'DELETE']],
    [`/api/v1/executions/${NOBODY}/cancel`, 'POST, OPTIONS', ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH']],
    [`/api/v1/executions/${NOBODY}/retry`, 'POST, OPTIONS', ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH']],
    ['/api/v1/health', 'GET, HEAD, OPTIONS', ['POST']],
    ['/ensembles', 'GET, HEAD, POST, OPTIONS', ['PUT', 'PATCH', 'DELETE']],
    ['/ensembles/greet', 'GET, HEAD, PUT, DELETE, OPTIONS', ['POST', 'PATCH']],
    ['/api/v1/state/greet', 'GET, HEAD, PUT, PATCH, DELETE, OPTIONS', ['POST']],
  ])('%s accepts %s; other methods are 405, whatever X-HTTP-Method-Override says', async (path, allow, methods) => {
    for (const method of methods) {
      const response = await ask(path, {
        method,
        headers: { 'x-http-method-override': 'GET', ...(await service.bearer('admin')) },
      });
      expect([method, response.status, response.headers.get('allow')]).toEqual([method, 405, allow]);
      if (method !== 'HEAD')
        expect((await readResponse(response)).body).toMatchObject({ error: { code: 'METHOD_NOT_ALLOWED' } });
    }
    const options = await ask(path, { method: 'OPTIONS' });
    expect([options.status, options.headers.get('allow'), await options.text()]).toEqual([204, allow, '']);
  });

  it('HEAD responds as GET does, without the body', async () => {
    const headers = await service.bearer('read:ensembles');
    const response = await ask('/api/v1/ensembles', { method: 'HEAD', headers });
    expect([response.status, response.headers.get('content-type'), await response.text()]).toEqual([
      200,
      'application/json; charset=utf-8',
      '',
    ]);
    expect((await ask('/api/v1/ensembles', { method: 'HEAD' })).status).toBe(401);
  });

  it('GET /health is public: 200 while the storage responds, 503 when it does not', async () => {
    expect(await readResponse(ask('/api/v1/health'))).toMatchObject({ status: 200, body: { status: 'ok' } });
    const broken = createService();
    Object.assign(broken.orchestrator, { ready: () => Promise.reject(new Error('no disk')) });
    const sick = await readResponse((await open(broken.handler))('/api/v1/health'));
    expect(sick).toMatchObject({ status: 503, body: { error: { code: 'OVERLOADED' } } });
    expect(sick.headers.get('retry-after')).toBe('1');
    expect(JSON.stringify(sick.body)).not.toContain('no disk');
  });

  it('GET /health is 503 when the storage does not respond within five seconds', async () => {
    let markCalled = () => {};
    const called = new Promise<void>((resolve) => {
      markCalled = resolve;
    });
    const ready = () => {
      markCalled();
      return new Promise<void>(() => {});
    };
    Object.assign(service.orchestrator, { ready });
    const response = readResponse(ask('/api/v1/health'));
    await called;
    await service.clock.advance(5_000);
    expect(await response).toMatchObject({ status: 503 });
  });

  it('lists ensembles in pages, in the order of their names, and returns one', async () => {
    const headers = await service.bearer('read:ensembles');
    const first = await readResponse(ask('/api/v1/ensembles?limit=3', { headers }));
    expect(first.body.ensembles.map(({ name }: { name: string }) => name)).toEqual(['echo', 'failing', 'greet']);
    const rest = await readResponse(
      ask(`/api/v1/ensembles?limit=3&cursor=${encodeURIComponent(first.body.nextCursor)}`, { headers }),
    );
    expect(rest.body.ensembles.map(({ name }: { name: string }) => name)).toEqual(['hasty', 'parent', 'slow']);
    expect(rest.body).not.toHaveProperty('nextCursor');

    const one = await readResponse(ask('/api/v1/ensembles/greet', { headers }));
    expect(one.body).toMatchObject({ name: 'greet', description: 'Says hello', active: true, source: 'code' });
    expect(one.body).toEqual(first.body.ensembles[2]);
    expect(await readResponse(ask('/api/v1/ensembles/gret', { headers }))).toMatchObject({
      status: 404,
      body: { error: { code: 'NOT_FOUND' } },
    });
  });

  it('the path /ensembles of the specification returns the same as /api/v1/ensembles', async () => {
    const headers = await service.bearer('read:ensembles');
    expect((await readResponse(ask('/ensembles', { headers }))).body).toEqual(
      (await readResponse(ask('/api/v1/ensembles', { headers }))).body,
    );
  });

  it('returns an execution and its agent runs in pages, and lists executions newest first', async () => {
    const headers = await service.bearer('read:executions');
    await service.clock.advance(1);
    const one = await service.orchestrator.execute('greet', { who: 'Ada' });
    await service.clock.advance(1);
    const two = await service.orchestrator.execute('failing');

    expect((await readResponse(ask(`/api/v1/executions/${one.id}`, { headers }))).body).toEqual(
      JSON.parse(JSON.stringify(one)),
    );
    expect((await readResponse(ask(`/api/v1/executions/${one.id.replace('_', '-')}`, { headers }))).body).toMatchObject(
      {
        id: one.id,
      },
    );
    const listed = await readResponse(ask('/api/v1/executions', { headers }));
    expect(listed.body.executions.map(({ id }: { id: string }) => id)).toEqual([two.id, one.id]);
    const failed = await readResponse(ask('/api/v1/executions?status=failed&ensemble=failing', { headers }));
    expect(failed.body.executions.map(({ id }: { id: string }) => id)).toEqual([two.id]);
    expect((await readResponse(ask('/api/v1/executions?status=failed&ensemble=greet', { headers }))).body).toEqual({
      executions: [],
    });

    const agents = await readResponse(ask(`/api/v1/executions/${one.id}/agents?limit=1`, { headers }));
    expect(agents.body).toMatchObject({ agents: [{ name: 'hello', status: 'completed', output: 'Hello Ada' }] });
  });

  it('creates a token, shows its value once, and lists and revokes it', async () => {
    const headers = await service.bearer('admin');
    await service.clock.advance(1);
    const made = await readResponse(
      ask('/api/v1/tokens', post({ name: 'ci', scopes: ['read:executions'], expiresIn: 60 }, headers)),
    );
    expect(made.status).toBe(201);
    expect(made.body).toEqual({
      token: expect.stringMatching(/^sk-service-[0-9A-Za-z]{42}$/),
      id: expect.stringMatching(/^tok_[0-9A-Z]{26}$/),
      name: 'ci',
      scopes: ['read:executions'],
      plan: 'free',
      createdAt: service.clock.now(),
      expiresAt: service.clock.now() + 60_000,
    });
    const authorization = `Bearer ${made.body.token}`;
    expect((await ask('/api/v1/executions', { headers: { authorization } })).status).toBe(200);

    const listed = await readResponse(ask('/api/v1/tokens', { headers }));
    expect(listed.body.tokens.map(({ name }: { name: string }) => name)).toEqual(['test', 'ci']);
    expect(JSON.stringify(listed.body)).not.toContain(made.body.token);

    const path = `/api/v1/tokens/${made.body.id}`;
    expect(await readResponse(ask(path, { method: 'DELETE', headers }))).toMatchObject({
      status: 200,
      body: { id: made.body.id, revoked: true },
    });
    expect((await ask('/api/v1/executions', { headers: { authorization } })).status).toBe(401);
    expect((await ask(path, { method: 'DELETE', headers })).status).toBe(404);
  });
});
