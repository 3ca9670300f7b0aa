/** Webhooks in a server of Node.js: paths that are not theirs go to the next handler, and signatures cover the bytes that came over the socket. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { describe, expect, it, onTestFinished } from 'vitest';
import { signPayload } from '../../src/engine/signing/sign-payload.ts';
import { toNodeListener } from '../../src/entries/node.ts';
import type { HttpHandler } from '../../src/index.ts';
import { echo, openWebhooks } from './world.ts';

const own = (handler: HttpHandler): HttpHandler => ({
  fetch: (request, host) => handler.fetch(request, host),
  handle: (request, host) => handler.handle(request, host),
});

describe.each([
  ['the listener', (handler: HttpHandler) => handler],
  ['the listener with a wrapped handler', own],
])('a body parser before %s', (_, wrap) => {
  async function open(...before: express.RequestHandler[]) {
    const auth = { type: 'signature', secret: 'hush' };
    const errors: unknown[] = [];
    const logger = { debug() {}, info() {}, warn() {}, error: (fields: object) => void errors.push(fields) };
    const signed = echo({ path: '/signed', auth }, { name: 'signed' });
    const world = openWebhooks([signed, echo({ path: '/open', public: true, accept: ['json', 'form'] })], { logger });
    const app = express().use(...before, toNodeListener(wrap(world.handler)));
    const server = app.listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    onTestFinished(() => void server.close());
    const send = async (path: string, body: string, type = 'application/json') => {
      const headers = { 'content-type': type, ...signPayload({ secret: 'hush', body, now: world.clock.now() }) };
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`;
      const response = await fetch(url, { method: 'POST', headers, body });
      return { status: response.status, body: await response.json() };
    };
    return { send, errors };
  }
  const ORDER = /`app\.use\(toNodeListener\(handler\)\)` before `app\.use\(express\.json\(\)\)`/;

  it.each(['{"a":1}', '{ "a" : 1 }'])(
    'a signed webhook refuses %s, and names the order of the two lines in log and answer',
    async (body) => {
      const { send, errors } = await open(express.json());
      const refused = await send('/signed', body);
      expect([refused.status, refused.body.error]).toEqual([500, expect.stringMatching(ORDER)]);
      expect(errors).toEqual([
        expect.objectContaining({ err: expect.objectContaining({ message: expect.stringMatching(ORDER) }) }),
      ]);
    },
  );

  it.each([
    ['JSON', '{ "a": 1 }', 'application/json'],
    ['a form', 'a=1', 'application/x-www-form-urlencoded'],
  ])('a webhook without a signature takes the value of %s that was parsed', async (_kind, body, type) => {
    const { send } = await open(express.json(), express.urlencoded());
    const { status, body: answer } = await send('/open', body, type);
    expect([status, String(answer.output.said.a)]).toEqual([200, '1']);
  });

  it('a parsed value is held to the rules of every body: 64 levels, and no key __proto__', async () => {
    const { send } = await open(express.json());
    for (const body of [`${'['.repeat(65)}${']'.repeat(65)}`, '{"a":{"__proto__":1}}'])
      expect((await send('/open', body)).status).toBe(400);
  });

  it('bytes that a parser keeps are checked as they came', async () => {
    const { send } = await open(express.raw({ type: '*/*' }));
    expect(await send('/signed', '{ "a" : 1 }')).toMatchObject({ status: 200, body: { output: { said: { a: 1 } } } });
  });

  it('a body that was read, and of which nothing was kept, is refused with the same text', async () => {
    const { send } = await open((request, _response, next) => {
      request.resume().once('end', () => next());
    });
    for (const path of ['/signed', '/open']) {
      const { status, body } = await send(path, '{"a":1}');
      expect([status, body.error]).toEqual([500, expect.stringMatching(ORDER)]);
    }
  });
});

it('a Request whose body was read before is refused with the order of the lines', async () => {
  const { handler } = openWebhooks([echo({ public: true })]);
  const headers = { 'content-type': 'application/json' };
  const request = new Request('http://localhost/webhooks/echo', { method: 'POST', headers, body: '{}' });
  await request.json();
  const response = await handler.fetch(request);
  expect([response.status, (await response.json()).error]).toEqual([
    500,
    expect.stringContaining('put the handler first'),
  ]);
});

it('a listener with `next` serves the webhooks of code and storage, and leaves unknown ones to the app', async () => {
  const secret = 'hush';
  const { handler, orchestrator, clock } = openWebhooks([echo({ path: '/in', auth: { type: 'signature', secret } })]);
  const stored = echo({ path: '/webhooks/stored', public: true }, { name: 'stored' });
  await orchestrator.ensembles.create(stored);
  const listener = toNodeListener(handler);
  const server = createServer((request, response) => {
    listener(request, response, () => response.writeHead(418).end('the app'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const send = async (path: string, body: string, signed = body) => {
    const headers = { 'content-type': 'application/json', ...signPayload({ secret, body: signed, now: clock.now() }) };
    const response = await fetch(url + path, { method: 'POST', headers, body });
    return [response.status, await response.text()] as const;
  };
  const raw = '{ "a" :  "ż" }\r\n';
  const [status, text] = await send('/in', raw);
  expect([status, JSON.parse(text).output]).toEqual([200, { said: { a: 'ż' } }]);
  expect((await send('/in', raw, JSON.stringify(JSON.parse(raw))))[0]).toBe(401);
  expect((await send('/webhooks/stored', '{}'))[0]).toBe(200);
  for (const path of ['/webhooks/unknown', '/in/more', '/']) expect(await send(path, '{}')).toEqual([418, 'the app']);
});
