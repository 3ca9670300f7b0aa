/** The handler routes exactly the target that the host saw, unchanged, and every request gets a response. */

import { once } from 'node:events';
import { connect } from 'node:net';
import express from 'express';
import { beforeEach, describe, expect, it } from 'vitest';
import { readTarget } from '../../src/adapters/hosts/node/read-target.ts';
import { toNodeListener } from '../../src/adapters/hosts/node/to-node-listener.ts';
import type { HttpHandler } from '../../src/engine/host/host.port.ts';
import { serve } from './hosts.ts';
import { createService, type Service } from './service.ts';

const wrap = ({ fetch, handle }: HttpHandler): HttpHandler => ({
  fetch: (...given) => fetch(...given),
  handle: (...given) => handle(...given),
});
/** A host that protects the paths of tokens before the handler runs, as apps do. */
function guarded(handler: HttpHandler) {
  const app = express();
  app.use('/api/v1/tokens', (_request, response) => void response.status(418).end('guarded'));
  app.use(toNodeListener(handler));
  app.use((_request, response) => void response.status(404).end("the host's own"));
  return app;
}

const MOUNTS: readonly (readonly [mount: string, of: (handler: HttpHandler) => Parameters<typeof serve>[0]])[] = [
  ['a handler', (handler) => toNodeListener(handler)],
  ['a wrapped handler', (handler) => toNodeListener(wrap(handler))],
  ['a handler under Express', guarded],
  ['a wrapped handler under Express', (handler) => guarded(wrap(handler))],
];

interface Answer {
  readonly status: number;
  readonly text: string;
}

describe.each(MOUNTS)('%s', (mount, of) => {
  const isGuarded = mount.includes('Express');
  let service: Service;
  let ask: (line: string, host?: string | undefined) => Promise<Answer>;
  beforeEach(async () => {
    service = createService();
    const { authorization } = await service.bearer('admin');
    const { port } = new URL(await serve(of(service.handler)));
    ask = async (line, host = 'service.test') => {
      const socket = connect(Number(port), '127.0.0.1');
      let text = '';
      socket.setEncoding('latin1').on('data', (chunk) => {
        text += chunk;
      });
      const head = `${line} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: ${authorization}\r\nConnection: close\r\n\r\n`;
      socket.write(head, 'latin1');
      await once(socket, 'close');
      return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]), text };
    };
  });

  it.each([
    '/x/../api/v1/tokens',
    '/api/./v1/tokens',
    '/api/v1/./tokens',
    '/api/v1/x/../tokens',
    '/api/%2e/v1/tokens',
    '/api/v1/%2E%2e/v1/tokens',
    '/x/.%2e/api/v1/tokens',
    '/api/v1/tokens/.',
    '/api/v1/tokens/x/..',
    '/api\\v1\\tokens',
    '/\\x/..\\api/v1/tokens',
    '/api/v1/tok\tens',
    '/api/v1/tokens#x',
    '/api/v1/tokens?#x',
    'http://service.test/x/../api/v1/tokens',
    'http://service.test\\api/v1/tokens',
  ])('a target that a URL parser would change has no route: GET %j is 404', async (target) => {
    const { status, text } = await ask(`GET ${target}`);
    // The host protects what it reads as the path of tokens. Node's own parser may refuse a target too.
    expect([400, 404, ...(isGuarded ? [418] : [])]).toContain(status);
    expect(text).not.toContain('tok_');
    expect(text).not.toMatch(/\/src\/|node_modules/);
  });

  it.each([
    ['x/api/v1/tokens#', '/about'],
    ['x/api/v1/tokens?', '/about'],
    ['', '/x/api/v1/tokens'],
    ['x:80/api/v1/tokens?a=', '/'],
    ['x\\api\\v1\\tokens#', '/about'],
  ])('a host `%s` is not part of the path: GET %s is 404', async (host, target) => {
    const { status, text } = await ask(`GET ${target}`, host);
    expect(status).toBe(404);
    expect(text).not.toContain('tok_');
  });

  it.each([
    '[',
    ']',
    'a:b@c',
    '',
    ' ',
    '%',
    '127.0.0.1:99999',
    '999.999.999.999',
    'x y',
    'a,b',
    'ÿ',
    '[::1]:80',
    'a_b',
  ])('a host `%s` gets the same response as any other', async (host) => {
    expect((await ask('GET /api/v1/health', host)).status).toBe(200);
    expect((await ask('GET /api/v1/executions', host)).status).toBe(200);
  });

  it.each([
    ['OPTIONS *', 404],
    ['GET http://user:secret@service.test/api/v1/executions', 404],
    ['GET http://a;b/api/v1/executions', 404],
    ['GET http://[/api/v1/executions', 404],
    ['GET HTTP://service.test/api/v1/executions?limit=1', 200],
    ['GET http://service.test', 404],
    ['GET ftp://service.test/api/v1/executions', 404],
    ['GET /api/v1/ensembles/%67reet', 200],
    ['GET /api/v1/executions?status=completed&cursor="', 400],
  ])('the status of %s is %i', async (line, status) => {
    const response = await ask(line);
    // Node's own parser refuses some targets before the handler sees them.
    expect([status, 400]).toContain(response.status);
    expect(response.text).not.toMatch(/\/src\/|node_modules|Invalid URL/);
  });

  it('TRACE is refused, also before a wrapped handler', async () => {
    const { status, text } = await ask('TRACE /api/v1/executions');
    expect(status).toBe(mount.includes('wrapped') ? 400 : 405);
    for (const header of ['x-request-id: ', 'x-content-type-options: nosniff', 'cache-control: no-store'])
      expect(text.toLowerCase()).toContain(header);
    expect(text).toContain('"error":{"code":');
  });

  it('a plain path reaches its route, and a protected path the host', async () => {
    expect((await ask('GET /api/v1/tokens')).status).toBe(isGuarded ? 418 : 200);
    expect((await ask('GET /api/v1/tokens?x=1')).status).toBe(isGuarded ? 418 : 400);
  });
});

describe('the path and the query of a target', () => {
  it.each([
    '/',
    '/a/b',
    '/a?b=c',
    '/a?',
    '/a?b?c',
    '//a',
    '/a//b',
    '/a;x=1',
    '/a:b@c',
    '/api/v1/executions?cursor=WyJh%20IiwiXQ==&limit=2',
    '/a.b',
    '/a..b/.c/d.',
    '/...',
    '/%41%2f%00',
    '/a?b=../c',
    "/a'b",
    'http://host/a.b/c?d=./e',
  ])('%s is read as a URL parser reads it', (target) => {
    const { pathname, search } = new URL(target, 'http://host');
    const expected = target.startsWith('//') ? { path: target, query: '' } : { path: pathname, query: search.slice(1) };
    expect(readTarget(target)).toMatchObject(expected);
  });

  it.each([
    ...['/a/../b', '/a/./b', '/..', '/.', '/a/.', '/%2e%2e/b', '/a/.%2E', '/a\\b', '/a\tb', '/a\nb', '/a?b\tc', '/a#b'],
    ...['/a?b#c', '/a b', '/\u00e9', '/a"b', '/a<b', '/a{b}', '', '*', 'a/b', 'host:80', 'http://host', 'http:/host/a'],
    ...['http:\\\\host\\a', 'http://host?a', 'http://host#a', 'ftp://host/a', 'javascript:alert(1)', 'http://a\\b/c'],
    ...['http://a;b/c', 'http://u:p@h/c', 'http://[/c', 'http:///c'],
  ])('%j is refused', (target) => {
    expect(readTarget(target)).toBeUndefined();
  });
});
