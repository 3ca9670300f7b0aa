/** The routes: who may take them, what they answer, and what the others get. */

import { beforeEach, describe, expect, it } from 'vitest';
import { SCOPES, type Scope } from '../../src/engine/model/token.ts';
import { type Ask, DOORS } from './doors.ts';
import { createService, post, type Service, told } from './service.ts';

const NOBODY = 'exec_01M7WWEK7KT35PGB6V8KCP7X7Z';

/** Method, path, the scope that it needs, and the status with that scope. */
const ROUTES: readonly (readonly [method: 'GET' | 'POST' | 'DELETE', path: string, scope: Scope, status: number])[] = [
  ['GET', '/api/v1/tokens', 'admin', 200],
  ['POST', '/api/v1/tokens', 'admin', 201],
  ['DELETE', '/api/v1/tokens/tok_01M7WWEK7KT35PGB6V8KCP7X7Z', 'admin', 404],
  ['POST', '/api/v1/execute/ensemble/echo', 'execute:ensembles', 200],
  ['POST', '/api/v1/execute/agent/double', 'execute:agents', 200],
  ['GET', '/api/v1/executions', 'read:executions', 200],
  ['GET', `/api/v1/executions/${NOBODY}`, 'read:executions', 404],
  ['GET', `/api/v1/executions/${NOBODY}/agents`, 'read:executions', 404],
  ['GET', `/api/v1/executions/${NOBODY}/events`, 'read:executions', 404],
  ['POST', `/api/v1/executions/${NOBODY}/cancel`, 'execute:ensembles', 404],
  ['POST', `/api/v1/executions/${NOBODY}/retry`, 'execute:ensembles', 404],
  ['GET', '/api/v1/ensembles', 'read:ensembles', 200],
  ['GET', '/api/v1/ensembles/greet', 'read:ensembles', 200],
  ['GET', '/ensembles', 'read:ensembles', 200],
  ['GET', '/ensembles/greet', 'read:ensembles', 200],
];
const BODIES: Readonly<Record<string, unknown>> = {
  '/api/v1/tokens': { name: 'new', scopes: ['read:state'] },
  '/api/v1/execute/agent/double': { input: { n: 2 } },
};

describe.each(DOORS)('routes by $door', ({ open }) => {
  let service: Service;
  let ask: Ask;
  beforeEach(async () => {
    service = createService();
    ask = await open(service.handler);
  });
  const send = (method: string, path: string, headers: Record<string, string> = {}) =>
    ask(path, method === 'POST' ? post(BODIES[path] ?? {}, headers) : { method, headers });

  it.each(ROUTES)('A113, A86: %s %s takes %s or admin, and no other scope', async (method, path, scope, status) => {
    const without = await told(send(method, path));
    expect(without).toMatchObject({ status: 401, body: { error: { code: 'UNAUTHORIZED' } } });
    expect(without.headers.get('www-authenticate')).toBe('Bearer');

    const others = SCOPES.filter((one) => one !== scope && one !== 'admin');
    const refused = await told(send(method, path, await service.bearer(...others)));
    expect(refused).toMatchObject({
      status: 403,
      body: { error: { code: 'FORBIDDEN', requiredScope: scope, providedScopes: others } },
    });
    expect(refused.headers.get('www-authenticate')).toBe(`Bearer error="insufficient_scope", scope="${scope}"`);

    expect((await told(send(method, path, await service.bearer(scope)))).status).toBe(status);
    expect((await told(send(method, path, await service.bearer('admin')))).status).toBe(status);
  });

  it.each([
    ['/api/v1/tokens', 'POST, GET, HEAD, OPTIONS', ['PUT', 'PATCH', 'DELETE']],
    ['/api/v1/tokens/tok_01M7WWEK7KT35PGB6V8KCP7X7Z', 'DELETE, OPTIONS', ['GET', 'HEAD', 'POST', 'PUT']],
    ['/api/v1/execute/ensemble/echo', 'POST, OPTIONS', ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH']],
    ['/api/v1/executions', 'GET, HEAD, OPTIONS', ['POST', 'DELETE']],
    [`/api/v1/executions/${NOBODY}/cancel`, 'POST, OPTIONS', ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH']],
    [`/api/v1/executions/${NOBODY}/retry`, 'POST, OPTIONS', ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH']],
    ['/api/v1/health', 'GET, HEAD, OPTIONS', ['POST']],
    ['/ensembles', 'GET, HEAD, OPTIONS', ['PUT']],
  ])(
    'A84, D30: %s takes %s; other methods are 405, whatever X-HTTP-Method-Override says',
    async (path, allow, methods) => {
      for (const method of methods) {
        const answer = await ask(path, {
          method,
          headers: { 'x-http-method-override': 'GET', ...(await service.bearer('admin')) },
        });
        expect([method, answer.status, answer.headers.get('allow')]).toEqual([method, 405, allow]);
        if (method !== 'HEAD')
          expect((await told(answer)).body).toMatchObject({ error: { code: 'METHOD_NOT_ALLOWED' } });
      }
      const options = await ask(path, { method: 'OPTIONS' });
      expect([options.status, options.headers.get('allow'), await options.text()]).toEqual([204, allow, '']);
    },
  );

  it('HEAD answers as GET does, without the body', async () => {
    const headers = await service.bearer('read:ensembles');
    const answer = await ask('/api/v1/ensembles', { method: 'HEAD', headers });
    expect([answer.status, answer.headers.get('content-type'), await answer.text()]).toEqual([
      200,
      'application/json; charset=utf-8',
      '',
    ]);
    expect((await ask('/api/v1/ensembles', { method: 'HEAD' })).status).toBe(401);
  });

  it('GET /health is public: 200 while the storage answers, 503 when it does not', async () => {
    expect(await told(ask('/api/v1/health'))).toMatchObject({ status: 200, body: { status: 'ok' } });
    const broken = createService();
    Object.assign(broken.orchestrator, { ready: () => Promise.reject(new Error('no disk')) });
    const sick = await told((await open(broken.handler))('/api/v1/health'));
    expect(sick).toMatchObject({ status: 503, body: { error: { code: 'OVERLOADED' } } });
    expect(sick.headers.get('retry-after')).toBe('1');
    expect(JSON.stringify(sick.body)).not.toContain('no disk');
  });

  it('GET /health is 503 after five seconds of silence', async () => {
    let asked = () => {};
    const wasAsked = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const ready = () => {
      asked();
      return new Promise<void>(() => {});
    };
    Object.assign(service.orchestrator, { ready });
    const answer = told(ask('/api/v1/health'));
    await wasAsked;
    await service.clock.advance(5_000);
    expect(await answer).toMatchObject({ status: 503 });
  });

  it('lists ensembles by pages, in the order of their names, and gives one', async () => {
    const headers = await service.bearer('read:ensembles');
    const first = await told(ask('/api/v1/ensembles?limit=3', { headers }));
    expect(first.body.ensembles.map(({ name }: { name: string }) => name)).toEqual(['echo', 'failing', 'greet']);
    const rest = await told(
      ask(`/api/v1/ensembles?limit=3&cursor=${encodeURIComponent(first.body.nextCursor)}`, { headers }),
    );
    expect(rest.body.ensembles.map(({ name }: { name: string }) => name)).toEqual(['hasty', 'parent', 'slow']);
    expect(rest.body).not.toHaveProperty('nextCursor');

    const one = await told(ask('/api/v1/ensembles/greet', { headers }));
    expect(one.body).toMatchObject({ name: 'greet', description: 'Says hello', active: true, source: 'code' });
    expect(one.body).toEqual(first.body.ensembles[2]);
    expect(await told(ask('/api/v1/ensembles/gret', { headers }))).toMatchObject({
      status: 404,
      body: { error: { code: 'NOT_FOUND' } },
    });
  });

  it("the seed's bare /ensembles answers as /api/v1/ensembles does", async () => {
    const headers = await service.bearer('read:ensembles');
    expect((await told(ask('/ensembles', { headers }))).body).toEqual(
      (await told(ask('/api/v1/ensembles', { headers }))).body,
    );
  });

  it('gives an execution, its agent runs by pages, and lists executions newest first', async () => {
    const headers = await service.bearer('read:executions');
    await service.clock.advance(1);
    const one = await service.orchestrator.execute('greet', { who: 'Ada' });
    await service.clock.advance(1);
    const two = await service.orchestrator.execute('failing');

    expect((await told(ask(`/api/v1/executions/${one.id}`, { headers }))).body).toEqual(
      JSON.parse(JSON.stringify(one)),
    );
    expect((await told(ask(`/api/v1/executions/${one.id.replace('_', '-')}`, { headers }))).body).toMatchObject({
      id: one.id,
    });
    const listed = await told(ask('/api/v1/executions', { headers }));
    expect(listed.body.executions.map(({ id }: { id: string }) => id)).toEqual([two.id, one.id]);
    const failed = await told(ask('/api/v1/executions?status=failed&ensemble=failing', { headers }));
    expect(failed.body.executions.map(({ id }: { id: string }) => id)).toEqual([two.id]);
    expect((await told(ask('/api/v1/executions?status=failed&ensemble=greet', { headers }))).body).toEqual({
      executions: [],
    });

    const agents = await told(ask(`/api/v1/executions/${one.id}/agents?limit=1`, { headers }));
    expect(agents.body).toMatchObject({ agents: [{ name: 'hello', status: 'completed', output: 'Hello Ada' }] });
  });

  it('makes a token, shows its value once, and lists and revokes it (I12)', async () => {
    const headers = await service.bearer('admin');
    await service.clock.advance(1);
    const made = await told(
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

    const listed = await told(ask('/api/v1/tokens', { headers }));
    expect(listed.body.tokens.map(({ name }: { name: string }) => name)).toEqual(['test', 'ci']);
    expect(JSON.stringify(listed.body)).not.toContain(made.body.token);

    const path = `/api/v1/tokens/${made.body.id}`;
    expect(await told(ask(path, { method: 'DELETE', headers }))).toMatchObject({
      status: 200,
      body: { id: made.body.id, revoked: true },
    });
    expect((await ask('/api/v1/executions', { headers: { authorization } })).status).toBe(401);
    expect((await ask(path, { method: 'DELETE', headers })).status).toBe(404);
  });
});
