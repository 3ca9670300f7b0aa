/** `npx wrangler dev --config examples/mount-worker/wrangler.json`; the first call below `/api` prints a token. */

import { createHandler, createOrchestrator } from 'ensemble-orchestrator';
import { toWorker } from 'ensemble-orchestrator/workers';
import { printCall } from './print-call.mjs';

const ensembles = [
  {
    name: 'greet',
    inputs: { who: { type: 'string', required: true } },
    flow: [{ agent: 'hello', operation: 'code', config: { script: 'hello' } }],
    outputs: { text: '${hello.output}' },
  },
];
const scripts = { hello: ({ input, env }) => `${env.GREETING} ${input.who}` };

// Called once, with the variables of the Worker.
const service = toWorker(async (env) => {
  const orchestrator = createOrchestrator({ ensembles, scripts, env: { GREETING: env.GREETING } });
  await printCall(orchestrator, 'http://localhost:8787');
  return createHandler(orchestrator);
});

export default {
  fetch(request, env, context) {
    if (new URL(request.url).pathname === '/') return new Response('my own page');
    return service.fetch(request, env, context);
  },
};
