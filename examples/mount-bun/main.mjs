/** `bun run examples/mount-bun/main.mjs` */

import { toBunHandler } from 'ensemble-orchestrator/bun';
import { printCall } from './print-call.mjs';
import { handler, orchestrator } from './service.mjs';

// Bun uses the port of the variable PORT, or 3000.
export const server = Bun.serve({
  hostname: '127.0.0.1',
  // In seconds. By default, Bun cuts a response after 10 seconds without data. An event stream may have none for 15 seconds.
  idleTimeout: 30,
  routes: { '/': () => new Response('my own page') },
  fetch: toBunHandler(handler),
});

await printCall(orchestrator, server.url.origin);
