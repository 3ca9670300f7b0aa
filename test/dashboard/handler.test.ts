/** `createDashboard`: what it serves, to whom, and with which headers. */

import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { createDashboard, type DashboardOptions } from '../../src/entries/dashboard.ts';
import { createHandler, createOrchestrator, type HttpHandler } from '../../src/index.ts';

const orchestrator = createOrchestrator({
  logger: false,
  ensembles: [{ name: 'echo', flow: [], outputs: { said: '${input}' } }],
});
const open = (options: DashboardOptions = {}) => createDashboard(orchestrator, { logger: false, ...options });
const get = (handler: HttpHandler, path: string, headers: Record<string, string> = {}) =>
  handler.fetch(new Request(`http://localhost${path}`, { headers }));
const bearer = async (...scopes: Parameters<typeof orchestrator.tokens.create>[0]['scopes']) => {
  const { token } = await orchestrator.tokens.create({ name: 'ada', scopes, plan: 'enterprise' });
  return { authorization: `Bearer ${token}` };
};
const post = (handler: HttpHandler, path: string, headers: Record<string, string>) =>
  handler.fetch(new Request(`http://localhost${path}`, { method: 'POST', headers }));

const FILES = ['/', '/app.js', '/style.css', '/icon.svg'];

describe('the page of the dashboard', () => {
  it('has at most 45 KB in all, compressed', async () => {
    const texts = await Promise.all(FILES.map(async (file) => (await get(open(), `/dashboard${file}`)).text()));
    const bytes = texts.reduce((sum, text) => sum + gzipSync(text).length, 0);
    expect(bytes).toBeLessThan(45 * 1024);
  });

  it('allows nothing but its own files: no inline script, no style, no frame, no other origin', async () => {
    const response = await get(open(), '/dashboard/');
    const policy = response.headers.get('content-security-policy')?.split('; ');
    expect(policy).toEqual([
      ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self' data:"],
      ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"],
      "trusted-types 'none'",
    ]);
    expect(response.headers.get('cross-origin-opener-policy')).toBe('same-origin');
    const html = await response.text();
    expect(html).not.toMatch(/<script>|style=|https?:/);
    // Every address is relative, so the page works where a proxy removes a part of the path.
    expect([...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address]) => address)).toEqual([
      ...['icon.svg', 'style.css', 'app.js'],
    ]);
  });

  it('is found with a trailing slash; the path without it leads there, also behind a proxy that removes a part', async () => {
    const { status, headers } = await get(open({ basePath: '/tools/board' }), '/tools/board');
    expect([status, headers.get('location')]).toEqual([308, 'board/']);
    expect((await get(open({ basePath: '' }), '/')).status).toBe(200);
  });

  it('is sent once: a browser that has it gets 304', async () => {
    const etag = (await get(open(), '/dashboard/app.js')).headers.get('etag') as string;
    expect((await get(open(), '/dashboard/app.js', { 'if-none-match': etag })).status).toBe(304);
    expect((await get(open(), '/dashboard/app.js', { 'if-none-match': '"older"' })).status).toBe(200);
  });

  it('leaves all other paths to the host', async () => {
    const handler = open({ basePath: '/admin' });
    for (const path of ['/', '/api/v1/health', '/administration', '/adm'])
      expect(await handler.handle(new Request(`http://localhost${path}`))).toEqual({ matched: false });
    expect((await get(handler, '/admin/nothing')).status).toBe(404);
  });
});

describe('who may use it', () => {
  it('without a token, everything but the page and the health is 401', async () => {
    expect((await get(open(), '/dashboard/api/v1/health')).status).toBe(200);
    expect((await get(open(), '/dashboard/api/v1/caller')).status).toBe(401);
    expect((await get(open(), '/dashboard/api/v1/executions')).status).toBe(401);
  });

  it('a token has what its scopes allow', async () => {
    const headers = await bearer('read:executions');
    expect((await get(open(), '/dashboard/api/v1/executions', headers)).status).toBe(200);
    expect((await get(open(), '/dashboard/api/v1/tokens', headers)).status).toBe(403);
    expect((await post(open(), '/dashboard/api/v1/execute/ensemble/echo', headers)).status).toBe(403);
  });

  it('with `readOnly`, even `admin` has only the scopes that read', async () => {
    const handler = open({ readOnly: true });
    const headers = await bearer('admin');
    const { scopes } = await (await get(handler, '/dashboard/api/v1/caller', headers)).json();
    expect(scopes).toEqual([
      'read:ensembles',
      'read:agents',
      'read:executions',
      'read:components',
      'read:state',
      'read:metrics',
    ]);
    expect((await post(handler, '/dashboard/api/v1/execute/ensemble/echo', headers)).status).toBe(403);
    const { id } = await orchestrator.execute('echo', {});
    expect((await post(handler, `/dashboard/api/v1/executions/${id}/cancel`, headers)).status).toBe(403);
    expect((await get(handler, `/dashboard/api/v1/executions/${id}`, headers)).status).toBe(200);
  });

  it('`authenticate` lets in people of the host, and a page of another site can change nothing with their cookie', async () => {
    const handler = open({
      authenticate: (request) =>
        request.headers.get('cookie') === 'session=ada' ? { id: 'ada', scopes: ['admin'] } : undefined,
    });
    const path = '/dashboard/api/v1/execute/ensemble/echo';
    const cookie = { cookie: 'session=ada' };
    expect((await post(handler, path, { ...cookie, 'x-requested-with': 'dashboard' })).status).toBe(200);
    const foreign = await post(handler, path, { ...cookie, origin: 'http://evil.example' });
    expect([foreign.status, (await foreign.json()).error.code]).toEqual([403, 'FORBIDDEN']);
    expect((await get(handler, '/dashboard/api/v1/caller', cookie)).status).toBe(200);
    // A token is no cookie: a browser adds it to no request.
    expect((await post(handler, path, await bearer('execute:ensembles'))).status).toBe(200);
    expect((await post(handler, path, { 'x-requested-with': 'dashboard' })).status).toBe(401);
  });
});

describe('createHandler with a dashboard', () => {
  it('has it at /dashboard below its own path, with the login of the handler, besides the API', async () => {
    const authenticate = () => ({ id: 'ada', scopes: ['read:executions'] as const });
    const handler = createHandler(orchestrator, { basePath: '/service', dashboard: true, authenticate, logger: false });
    expect((await get(handler, '/service/dashboard/')).headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(await (await get(handler, '/service/dashboard/api/v1/caller')).json()).toMatchObject({ id: 'ada' });
    expect((await get(handler, '/service/api/v1/caller')).status).toBe(200);
    expect(await handler.handle(new Request('http://localhost/service/other'))).toEqual({ matched: false });
  });

  it('takes one that was made before, and has none if it is not asked for', async () => {
    const handler = createHandler(orchestrator, { dashboard: open({ basePath: '/admin' }), logger: false });
    expect((await get(handler, '/admin/')).status).toBe(200);
    expect((await get(handler, '/api/v1/health')).status).toBe(200);
    expect((await get(createHandler(orchestrator, { logger: false }), '/dashboard/')).status).toBe(404);
    expect(() => createHandler(orchestrator, { dashboard: { fetch } as never })).toThrow(
      'handler: `dashboard` must be true, false, or a handler of createDashboard()',
    );
  });
});

describe('the options of createDashboard', () => {
  it.each([
    [{ readonly: true }, 'createDashboard: `readonly` is not an option of this version; did you mean `readOnly`?'],
    [{ readOnly: 'yes' }, 'createDashboard: `readOnly` must be true or false'],
    [{ basePath: 'admin' }, 'createDashboard: `basePath` must be a path'],
    [{ authenticate: 'me' }, 'createDashboard: `authenticate` must be a function'],
  ])('%j is refused', (options, message) => {
    expect(() => open(options as never)).toThrow(message);
  });
});
