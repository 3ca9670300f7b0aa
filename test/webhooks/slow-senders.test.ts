/** Senders that are not known yet, and send slowly or nothing: they take neither the memory of other senders nor that of the API. */

import { expect, it } from 'vitest';
import { hostTurn } from '../../src/adapters/clock/manual-clock.ts';
import { echo, openWebhooks } from './world.ts';

const MIB = 1024 * 1024;
const FORGED = { 'content-type': 'application/json', 'x-webhook-signature': `sha256=${'0'.repeat(64)}` };

/** What was sent so far is read. */
async function arrived(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await hostTurn();
}

function open() {
  const signed = { ...echo({ auth: { type: 'signature', secret: 'hush' } }), name: 'signed' };
  const shared = { trigger: [{ type: 'webhook', path: '/webhooks/open', public: true }], flow: [] };
  const world = openWebhooks([signed, { name: 'open', ...shared }]);
  const { handler, clock } = world;
  const time = () => String(Math.floor(clock.now() / 1000));
  /** Begins a request, whose body the test sends. */
  const begin = (ip: string, first: number, announced = MIB) => {
    let to: ReadableStreamDefaultController<Uint8Array> | undefined;
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        to = controller;
        controller.enqueue(new Uint8Array(first));
      },
    });
    const headers = { ...FORGED, 'x-webhook-timestamp': time(), 'content-length': String(announced) };
    const init = { method: 'POST', headers, body, duplex: 'half' } as RequestInit;
    const status = handler.fetch(new Request('http://localhost/webhooks/echo', init), { ip }).then((r) => r.status);
    return { status, send: (bytes: number) => to?.enqueue(new Uint8Array(bytes)), end: () => to?.close() };
  };
  const ask = async (path: string, ip: string, headers: Record<string, string> = {}) => {
    const init = { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: '{}' };
    return (await handler.fetch(new Request(`http://localhost${path}`, init), { ip })).status;
  };
  return { ...world, begin, ask };
}

it('a body that was only announced holds no memory', async () => {
  const { begin, ask } = open();
  for (let nr = 0; nr < 100; nr++) void begin('192.0.2.1', 1);
  await arrived();
  expect(await ask('/webhooks/open', '192.0.2.1')).toBe(200);
});

it('the bodies of one address take at most a quarter of the memory, those of all senders a half: the API has the rest', async () => {
  const { begin, ask, orchestrator } = open();
  const { token } = await orchestrator.tokens.create({ name: 't', scopes: ['admin'] });
  const api = () => ask('/api/v1/execute/ensemble/open', '192.0.2.9', { authorization: `Bearer ${token}` });
  for (let nr = 0; nr < 16; nr++) void begin('192.0.2.1', MIB - 1);
  await arrived();
  expect(await begin('192.0.2.1', MIB).status).toBe(503);
  expect(await ask('/webhooks/open', '192.0.2.2')).toBe(200);
  for (let nr = 0; nr < 16; nr++) void begin('192.0.2.2', MIB - 1);
  await arrived();
  expect(await begin('192.0.2.3', 100).status).toBe(503);
  expect(await api()).toBe(200);
});

it('a body that does not arrive is given up after 30 seconds, and one that arrives at 8 KB a second is not', async () => {
  const { begin, clock } = open();
  const stalled = begin('192.0.2.1', 1);
  const dripping = begin('192.0.2.1', 1);
  const slow = begin('192.0.2.1', 1);
  let ended = '';
  void stalled.status.then((status) => (ended += `stalled ${status} `));
  void dripping.status.then((status) => (ended += `dripping ${status} `));
  void slow.status.then((status) => (ended += `slow ${status} `));
  for (let second = 0; second < 29; second++) {
    dripping.send(1);
    slow.send(9_000);
    await clock.advance(1_000);
  }
  expect(ended).toBe('');
  await clock.advance(1_100);
  expect(ended).toBe('stalled 400 dripping 400 ');
  await clock.advance(20_000);
  slow.end();
  await slow.status;
  expect(ended).toBe('stalled 400 dripping 400 slow 401 ');
});
