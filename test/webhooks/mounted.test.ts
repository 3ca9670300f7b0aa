/** Webhooks in a server of Node.js: paths that are not theirs go to the next handler, and signatures cover the bytes that came over the socket. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { signPayload } from '../../src/engine/signing/sign-payload.ts';
import { toNodeListener } from '../../src/entries/node.ts';
import { echo, openWebhooks } from './world.ts';

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
