/** `deno run --allow-net=127.0.0.1 --allow-env=PORT,LOG_TOKENS,LOG_STREAM examples/mount-deno/main.mjs` (the YAML parser reads the last two) */

import { toDenoHandler } from 'ensemble-orchestrator/deno';
import { printCall } from './print-call.mjs';
import { handler, orchestrator } from './service.mjs';

const respond = toDenoHandler(handler);

export const server = Deno.serve(
  {
    port: Number(Deno.env.get('PORT') ?? 3000),
    hostname: '127.0.0.1',
    onListen: ({ hostname, port }) => printCall(orchestrator, `http://${hostname}:${port}`),
  },
  (request, info) => (new URL(request.url).pathname === '/' ? new Response('my own page') : respond(request, info)),
);
