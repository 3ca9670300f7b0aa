/**
 * Inbound webhooks. Arguments: `receive` (a signed request that is answered 202) or `start` (the same execution by a call), then the storage;
 * `check` (the signature of 1 KB) or `node` (the HMAC of 1 KB by `node:crypto`).
 */

import { createHmac, randomBytes } from 'node:crypto';
import { importLibrary } from '../library.mjs';
import { storageOf, together } from '../storages.mjs';

const SECRET = randomBytes(32).toString('hex');
const HOOK = `
name: bench
trigger: [{ type: webhook, path: /webhooks/bench, auth: { type: signature, secret: "\${env.SECRET}" }, async: true }]
flow: []
`;

export async function setup([what, kind]) {
  const { createHandler, createOrchestrator, signPayload, verifySignature } = await importLibrary();
  const text = JSON.stringify({ text: 'x'.repeat(1000) });
  if (what === 'node')
    return { run: async () => createHmac('sha256', SECRET).update(`1700000000.${text}`).digest('hex') };
  if (what === 'check') {
    const body = new TextEncoder().encode(text);
    const headers = new Headers(signPayload({ secret: SECRET, body: text }));
    const now = Date.now();
    return {
      async run() {
        if (!(await verifySignature({ secret: SECRET, headers, body, now }))) throw new Error('it was refused');
      },
    };
  }
  const orchestrator = createOrchestrator({ ensembles: [HOOK], env: { SECRET }, storage: await storageOf(kind) });
  await orchestrator.ready();
  let n = 0;
  if (what === 'start') return together(() => orchestrator.start('bench', { n: n++ }));
  const handler = createHandler(orchestrator);
  return together(async () => {
    const body = JSON.stringify({ n: n++ });
    const signature = `sha256=${createHmac('sha256', SECRET).update(`${time()}.${body}`).digest('hex')}`;
    const headers = {
      'content-type': 'application/json',
      'x-webhook-timestamp': time(),
      'x-webhook-signature': signature,
    };
    const request = new Request('http://localhost/webhooks/bench', { method: 'POST', headers, body });
    const response = await handler.fetch(request, { ip: '192.0.2.1' });
    if (response.status !== 202) throw new Error(`it was answered ${response.status}`);
  });
}

function time() {
  return String(Math.floor(Date.now() / 1000));
}
