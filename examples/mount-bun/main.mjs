/** `bun run examples/mount-bun/main.mjs` */

import { toBunHandler } from 'ensemble-orchestrator/bun';
import { printCall } from './print-call.mjs';
import { handler, orchestrator } from './service.mjs';

// Bun takes the port from PORT, and 3000 without it.
export const server = Bun.serve({
  hostname: '127.0.0.1',
  // In seconds. By default Bun cuts an answer after 10 seconds of silence, and a stream of events is silent for up to 15.
  idleTimeout: 30,
  routes: { '/': () => new Response('my own page') },
  fetch: toBunHandler(handler),
});

await printCall(orchestrator, server.url.origin);
