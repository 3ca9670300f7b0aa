/** What a browser asks for by itself: the start page leads to the dashboard, and no limit counts it. */

import { describe, expect, it } from 'vitest';
import { manualClock } from '../../src/entries/testing.ts';
import { createApiHandler, createHandler, createOrchestrator, type FullHandlerOptions } from '../../src/index.ts';

function serve(options: FullHandlerOptions = {}) {
  const orchestrator = createOrchestrator({ clock: manualClock(), logger: false });
  const handler = createHandler(orchestrator, options);
  return (path: string, accept = 'text/html,application/xhtml+xml', method = 'GET') =>
    handler.fetch(new Request(`http://desk.example${path}`, { method, headers: { accept } }), { ip: '203.0.113.7' });
}

describe('the start page', () => {
  it.each([
    ['', '/', 'dashboard/'],
    ['/service', '/service/', 'dashboard/'],
    ['/service', '/service', 'service/dashboard/'],
  ])('with the dashboard and `basePath` %j, GET %s leads a browser to it', async (basePath, path, location) => {
    const ask = serve({ dashboard: true, basePath });
    const response = await ask(path);
    expect([response.status, response.headers.get('location')]).toEqual([302, location]);
    const target = new URL(location, `http://desk.example${path}`).pathname;
    expect([target, (await ask(target)).status]).toEqual([`${basePath}/dashboard/`, 200]);
    const program = await ask(path, 'application/json');
    expect([program.status, JSON.stringify(await program.json())]).toEqual([
      404,
      expect.stringContaining('dashboard/'),
    ]);
    expect((await ask(path, 'text/html', 'POST')).status).not.toBe(302);
  });

  it('`handle` takes it below a `basePath`, for browsers only, and leaves it to the host at the root', async () => {
    const orchestrator = createOrchestrator({ clock: manualClock(), logger: false });
    const ask = (basePath: string, path: string, accept: string) =>
      createHandler(orchestrator, { dashboard: true, basePath }).handle(
        new Request(`http://desk.example${path}`, { headers: { accept } }),
      );
    expect(await ask('/service', '/service/', 'text/html')).toMatchObject({ matched: true, response: { status: 302 } });
    expect(await ask('/service', '/service', 'text/html')).toMatchObject({ matched: true, response: { status: 302 } });
    expect(await ask('/service', '/service/', 'application/json')).toEqual({ matched: false });
    expect(await ask('/service', '/', 'text/html')).toEqual({ matched: false });
    expect(await ask('', '/', 'text/html')).toEqual({ matched: false });
  });

  it('without the dashboard it is 404', async () => {
    expect((await serve()('/')).status).toBe(404);
    expect((await serve({ dashboard: true, basePath: '/service' })('/')).status).toBe(404);
  });
});

it('`/` and `/favicon.ico` cost none of the requests of their caller', async () => {
  const orchestrator = createOrchestrator({ clock: manualClock(), logger: false });
  const left = async (handler: ReturnType<typeof createHandler>, path: string) => {
    const response = await handler.fetch(new Request(`http://desk.example${path}`), { ip: '203.0.113.7' });
    return response.headers.get('x-ratelimit-remaining');
  };
  for (const handler of [createHandler(orchestrator, { dashboard: true }), createApiHandler(orchestrator)]) {
    const before = Number(await left(handler, '/api/v1/nothing'));
    for (const path of ['/', '/favicon.ico']) expect([path, await left(handler, path)]).toEqual([path, null]);
    expect(Number(await left(handler, '/api/v1/nothing'))).toBe(before - 1);
  }
});
