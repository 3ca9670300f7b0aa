/** Paths: each has one canonical form, is decoded once, and no other form bypasses the checks. */

import { connect } from 'node:net';
import { beforeEach, describe, expect, it } from 'vitest';
import { toNodeListener } from '../../src/adapters/hosts/node/to-node-listener.ts';
import { type Ask, HOSTS, serve } from './hosts.ts';
import { createService, readResponse, type Service } from './service.ts';

describe.each(HOSTS)('paths by $host', ({ open }) => {
  let service: Service;
  let ask: Ask;
  let headers: { authorization: string };
  beforeEach(async () => {
    service = createService();
    ask = await open(service.handler);
    headers = await service.bearer('admin');
  });

  it.each([
    '/API/v1/tokens',
    '/api/V1/tokens',
    '//api/v1/tokens',
    '/api//v1/tokens',
    '/api/v1//tokens',
    '/api/v1/tokens/',
    '/api/v1/tokens//',
    '/api/v1/%74okens',
    '/api/v1/tokens%2F',
    '/api%2Fv1%2Ftokens',
    '/api/v1/tokens;x',
    '/api/v1/tokens%00',
    '/api/v1/tokens%20',
    '/api/v1',
    '/api/v1/',
    '/api/v2/tokens',
    '/',
  ])('%s is 404, with a token and without', async (path) => {
    expect((await ask(path, { headers })).status).toBe(404);
    expect((await ask(path)).status).toBe(404);
  });

  it.each([
    '/webhooks/%2e%2e/api/v1/tokens',
    '/api/v1/x/../tokens',
    '/api/v1/./tokens',
    '/api/v1/x/%2E%2e/tokens',
    '\\api\\v1\\tokens',
  ])("%s is changed to another path by the client's URL parser, before the handler sees it", async (path) => {
    expect((await ask(path)).status).toBe(401);
    expect((await ask(path, { headers })).status).toBe(200);
  });

  it.each([
    '..%2fgreet',
    '%252e%252e%252fgreet',
    'greet%2f',
    '%E0%BF%B',
    '%C0%AE',
    '%00',
    'greet%00',
    '%',
    '%zz',
    '__proto__',
    'constructor',
    'Greet',
    'gr\u00e9et',
    '%E2%84%AAeep',
    'greet%0d%0aX-Evil:%201',
    'a'.repeat(10_000),
    "' OR 1=1 --",
    'gree\u0442',
  ])('an ensemble named %s is 404', async (name) => {
    const response = await readResponse(ask(`/api/v1/ensembles/${name}`, { headers }));
    expect(response).toMatchObject({ status: 404, body: { error: { code: 'NOT_FOUND' } } });
    expect(response.headers.get('x-evil')).toBeNull();
    expect(JSON.stringify(response.body).length).toBeLessThan(500);
  });

  it('an escaped letter in a name is decoded once', async () => {
    expect((await ask('/api/v1/ensembles/%67reet', { headers })).status).toBe(200);
    expect((await ask('/api/v1/ensembles/%2567reet', { headers })).status).toBe(404);
  });

  it('the query is not part of the path, and a `?` in it is data', async () => {
    expect((await ask('/api/v1/health?')).status).toBe(200);
    expect((await ask('/api/v1/health?/api/v1/tokens?')).status).toBe(200);
  });

  it('`handle` takes every path below /api/v1, and leaves other paths to the host with the body unread', async () => {
    const outcome = (path: string) =>
      service.handler.handle(new Request(`http://service.test${path}`, { method: 'POST', body: 'x' }));
    for (const path of ['/api/v1', '/api/v1/nothing', '/api/v1/tokens/', '/ensembles', '/ensembles/greet']) {
      expect([path, (await outcome(path)).matched]).toEqual([path, true]);
    }
    for (const path of [
      '/',
      '/api',
      '/api/v1x',
      '/api/v2/tokens',
      '/ensembles/',
      '/ensembles/a/b',
      '/API/v1/tokens',
      '//api/v1/tokens',
    ]) {
      expect([path, (await outcome(path)).matched]).toEqual([path, false]);
    }
    const left = new Request('http://service.test/mine', { method: 'POST', body: 'mine' });
    expect(await service.handler.handle(left)).toEqual({ matched: false });
    expect(await left.text()).toBe('mine');
  });
});

describe('targets on the wire', () => {
  it.each([
    ['GET http://service.test/api/v1/tokens HTTP/1.1', 401],
    ['GET HTTP://service.test/api/v1/%2e/tokens HTTP/1.1', 404],
    ['GET http://service.test//api/v1/tokens HTTP/1.1', 404],
    ['GET //api/v1/tokens HTTP/1.1', 404],
    ['GET //service.test/api/v1/tokens HTTP/1.1', 404],
    ['GET /x/../api/v1/tokens HTTP/1.1', 404],
    ['OPTIONS * HTTP/1.1', 404],
    ['TRACE /api/v1/tokens HTTP/1.1', 405],
  ])('%s is %i without a token', async (line, status) => {
    const service = createService();
    const { port } = new URL(await serve(toNodeListener(service.handler)));
    const response = await new Promise<string>((resolve, reject) => {
      const socket = connect(Number(port), '127.0.0.1', () =>
        socket.write(`${line}\r\nHost: service.test\r\nConnection: close\r\n\r\n`),
      );
      let text = '';
      socket.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      socket.on('close', () => resolve(text)).on('error', reject);
    });
    expect(Number(/^HTTP\/1\.1 (\d+)/.exec(response)?.[1])).toBe(status);
  });
});
