/** A handler in Node's servers: `next`, body parsers, wrapped handlers, and peers that are slow or gone. */

import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import express from 'express';
import { describe, expect, it, vi } from 'vitest';
import { IncomingRequest } from '../../src/adapters/hosts/node/from-incoming.ts';
import { toNodeListener } from '../../src/adapters/hosts/node/to-node-listener.ts';
import type { HostInfo, HttpHandler } from '../../src/engine/host/host.port.ts';
import { serve } from './hosts.ts';
import { createService, post, readResponse } from './service.ts';

const ECHO = '/api/v1/execute/ensemble/echo';

/** A handler with only the public methods, as when an app wraps one. */
function wrap(handler: HttpHandler, seen: (host: HostInfo | undefined) => void = () => {}): HttpHandler {
  return {
    fetch(request, host) {
      seen(host);
      return handler.fetch(request, host);
    },
    handle(request, host) {
      seen(host);
      return handler.handle(request, host);
    },
  };
}

describe.each([
  ['a handler', (handler: HttpHandler) => handler],
  ['a wrapped handler', (handler: HttpHandler) => wrap(handler)],
])('%s in a Node server', (_what, as) => {
  it('passes other paths to `next` with the body unread; without `next` they are 404', async () => {
    const { handler } = createService();
    const listener = toNodeListener(as(handler));
    const mine = async (request: IncomingMessage, response: ServerResponse) => {
      let text = '';
      for await (const chunk of request) text += chunk;
      response.end(`mine: ${request.url} ${text}`);
    };
    const origin = await serve((request, response) => listener(request, response, () => void mine(request, response)));
    const response = await fetch(`${origin}/about?x=1`, { method: 'POST', body: 'hello' });
    expect(await response.text()).toBe('mine: /about?x=1 hello');
    expect((await fetch(`${origin}/api/v1/nothing`)).status).toBe(404);
    expect(await readResponse(fetch(`${origin}/api/v1/health`))).toMatchObject({ status: 200, body: { status: 'ok' } });
    const alone = await serve(listener);
    expect(await readResponse(fetch(`${alone}/about`))).toMatchObject({
      status: 404,
      body: { error: { code: 'NOT_FOUND' } },
    });
  });

  it('runs, refuses and streams', async () => {
    const service = createService({ maxBodyBytes: 100 });
    const origin = await serve(toNodeListener(as(service.handler)));
    const headers = await service.bearer('admin');
    const ran = await readResponse(fetch(`${origin}${ECHO}`, post({ input: { a: 1 } }, headers)));
    expect(ran).toMatchObject({ status: 200, body: { output: { said: { a: 1 } } } });
    expect(
      await readResponse(fetch(`${origin}${ECHO}`, post({ input: { a: 'x'.repeat(3_000_000) } }, headers))),
    ).toMatchObject({ status: 413 });
    const events = await fetch(`${origin}/api/v1/executions/${ran.body.executionId}/events`, { headers });
    expect(await events.text()).toContain('event: execution.completed');
  });

  it.each(['Ada', 'Zoë', 'ÿ', 'żółw', '🐢', '\ud800'])('sends %j as UTF-8, with its length in bytes', async (who) => {
    const service = createService();
    const origin = await serve(toNodeListener(as(service.handler)));
    const response = await fetch(`${origin}${ECHO}`, post({ input: { who } }, await service.bearer('admin')));
    const bytes = new Uint8Array(await response.arrayBuffer());
    expect(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)).output).toEqual({ said: { who } });
    const length = response.headers.get('content-length');
    if (length !== null) expect(Number(length)).toBe(bytes.length);
  });

  it('serves several requests on one connection, also after a refusal', async () => {
    const service = createService({ maxBodyBytes: 100 });
    const origin = await serve(toNodeListener(as(service.handler)));
    const { authorization } = await service.bearer('admin');
    const body = (text: string) => `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
    const head = `POST ${ECHO} HTTP/1.1\r\nHost: x\r\n`;
    const large = ' '.repeat(5_000);
    const requests = [
      `${head}${body('{}')}`,
      `${head}Authorization: ${authorization}\r\n${body(large)}`,
      `${head}Authorization: ${authorization}\r\n${body('{}')}`,
    ];
    const response = await new Promise<string>((resolve, reject) => {
      let text = '';
      const socket = connect(Number(new URL(origin).port), '127.0.0.1', () => socket.write(requests.join('')));
      socket.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
        if (text.match(/HTTP\/1\.1 /g)?.length === 3 && text.includes('completed')) socket.destroy();
      });
      socket.on('close', () => resolve(text)).on('error', reject);
    });
    expect([...response.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(['401', '413', '200']);
  });
});

describe('toNodeListener', () => {
  it("passes on the socket's address, whatever forwarding headers say", async () => {
    const hosts: (HostInfo | undefined)[] = [];
    const origin = await serve(toNodeListener(wrap(createService().handler, (host) => hosts.push(host))));
    await fetch(`${origin}/api/v1/health`, {
      headers: { 'x-forwarded-for': '203.0.113.9', forwarded: 'for=203.0.113.9', 'cf-connecting-ip': '203.0.113.9' },
    });
    expect(hosts).toEqual([{ ip: '127.0.0.1' }]);
  });

  it.each([
    ['copies', (handler: HttpHandler, own: Pick<HttpHandler, 'fetch'>): HttpHandler => ({ ...handler, ...own })],
    ['inherits', (handler: HttpHandler, own: Pick<HttpHandler, 'fetch'>) => Object.assign(Object.create(handler), own)],
  ])('an object that %s from a handler and wraps its `fetch` is not bypassed', async (_how, extend) => {
    const { handler } = createService();
    const fetched: string[] = [];
    const logging = extend(handler, {
      fetch(request, host) {
        fetched.push(new URL(request.url).pathname);
        return handler.fetch(request, host);
      },
    });
    const origin = await serve(toNodeListener(logging));
    expect((await fetch(`${origin}/api/v1/health`)).status).toBe(200);
    expect(fetched).toEqual(['/api/v1/health']);
  });

  it.each([
    ['as an object', express.json()],
    ['as text', express.text({ type: '*/*' })],
    ['as bytes', express.raw({ type: '*/*' })],
  ])('after a body parser that provides the body %s, uses that body', async (_what, parser) => {
    const service = createService({ maxBodyBytes: 100 });
    const app = express();
    app.use(parser, toNodeListener(service.handler));
    const origin = await serve(app);
    const headers = await service.bearer('admin');
    expect(await readResponse(fetch(`${origin}${ECHO}`, post({ input: { a: 1 } }, headers)))).toMatchObject({
      status: 200,
      body: { output: { said: { a: 1 } } },
    });
    expect(
      await readResponse(fetch(`${origin}${ECHO}`, post({ input: { a: 'x'.repeat(200) } }, headers))),
    ).toMatchObject({
      status: 413,
    });
  });

  it('mounted by Express at a path, puts that path before Location', async () => {
    const service = createService();
    const app = express();
    app.use('/service', toNodeListener(service.handler));
    app.use((_request, response) => void response.status(418).end());
    const origin = await serve(app);
    const response = await readResponse(
      fetch(`${origin}/service${ECHO}`, post({ async: true }, await service.bearer('admin'))),
    );
    expect(response.headers.get('location')).toBe(`/service/api/v1/executions/${response.body.executionId}`);
    expect((await fetch(`${origin}/service/other`)).status).toBe(418);
  });

  it('waits for a slow reader of a stream instead of buffering for it', async () => {
    const chunk = new Uint8Array(64 * 1024).fill(0x61);
    let made = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        made += 1;
        controller.enqueue(chunk);
        if (made === 4_000) controller.close();
      },
    });
    const handler: HttpHandler = { fetch: async () => new Response(body), handle: async () => ({ matched: false }) };
    const origin = await serve(toNodeListener(handler));
    const socket = await new Promise<import('node:net').Socket>((resolve, reject) => {
      const opened = connect(Number(new URL(origin).port), '127.0.0.1', () => resolve(opened)).on('error', reject);
    });
    socket.pause();
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    let before = -1;
    await vi.waitFor(
      () => {
        const settled = made > 0 && made === before;
        before = made;
        expect(settled).toBe(true);
      },
      { timeout: 20_000, interval: 50 },
    );
    expect(made).toBeLessThan(400);
    socket.destroy();
  });

  it('the error of a handler that rejects goes to `next`, or breaks the connection: no response is sent in part', async () => {
    const broken: HttpHandler = {
      fetch: () => Promise.reject(new Error('no')),
      handle: () => Promise.reject(new Error('no')),
    };
    const listener = toNodeListener(broken);
    const origin = await serve((request, response) =>
      listener(request, response, (error) => response.writeHead(500).end(String(error))),
    );
    expect(await (await fetch(`${origin}/x`)).text()).toBe('Error: no');
    const alone = await serve(listener);
    await expect(fetch(`${alone}/x`)).rejects.toThrow(TypeError);
  });

  it('a body that broke off before it is read is an error, not an endless wait', async () => {
    let take: (request: IncomingMessage) => void = () => {};
    const arrived = new Promise<IncomingMessage>((resolve) => {
      take = resolve;
    });
    const origin = await serve((request) => take(request));
    const client = httpRequest(origin, { method: 'POST', headers: { 'content-length': '30' } });
    client.on('error', () => {});
    client.write('{');
    const request = await arrived;
    const closed = new Promise((resolve) => request.once('close', resolve));
    client.destroy();
    await closed;
    await expect(new IncomingRequest(request, { path: '/', query: '' }).body(() => true)).rejects.toThrow(
      'closed before the body was complete',
    );
  });

  it('a body that breaks off runs nothing', async () => {
    const service = createService();
    const origin = await serve(toNodeListener(service.handler));
    const { authorization } = await service.bearer('admin');
    const verified = new Promise<void>((resolve) => {
      const { verify } = service.orchestrator.tokens;
      Object.assign(service.orchestrator.tokens, {
        verify: async (value: string) => {
          const principal = await verify(value);
          resolve();
          return principal;
        },
      });
    });
    const client = httpRequest(`${origin}${ECHO}`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json', 'content-length': '30' },
    });
    client.on('error', () => {});
    client.write('{"input":');
    await verified;
    const closed = new Promise((resolve) => client.once('close', resolve));
    client.destroy();
    await closed;
    await service.clock.advance(0);
    expect(await service.orchestrator.executions.list()).toEqual({ executions: [] });
    expect((await fetch(`${origin}/api/v1/health`)).status).toBe(200);
  });
});
