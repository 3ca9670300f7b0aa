/** `npx wrangler dev --config examples/durable-object/wrangler.json`; then `POST /reminders` with `{ "to": "Ada", "delay": "10s" }`. */

import { createHandler, createOrchestrator } from 'ensemble-orchestrator';
import { durableObjectStorage, toDurableObject } from 'ensemble-orchestrator/workers';

const ensembles = [
  {
    name: 'remind',
    inputs: { to: { type: 'string', required: true }, delay: { type: 'string', default: '1h' } },
    flow: [
      {
        agent: 'promise',
        operation: 'code',
        config: { script: 'notify' },
        input: { text: 'A reminder for ${input.to} is set' },
      },
      { sleep: '${input.delay}' },
      { agent: 'keep', operation: 'code', config: { script: 'notify' }, input: { text: 'Here it is, ${input.to}' } },
    ],
  },
];

const Orchestrating = toDurableObject((ctx, env) => {
  const scripts = {
    async notify({ input }) {
      const response = await fetch(env.NOTIFY_URL, { method: 'POST', body: input.text });
      if (!response.ok) throw new Error(`the receiver answered ${response.status}`);
      return response.status;
    },
  };
  const orchestrator = createOrchestrator({ ensembles, scripts, storage: durableObjectStorage(ctx) });
  return { orchestrator, handler: createHandler(orchestrator) };
});

/** One object for each tenant: its executions are in its own database. */
export class Workflows extends Orchestrating {
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname !== '/reminders') return super.fetch(request);
    const { id } = await this.orchestrator.start('remind', await request.json());
    return Response.json({ id }, { status: 202 });
  }
}

export default {
  fetch(request, { WORKFLOWS }) {
    return WORKFLOWS.get(WORKFLOWS.idFromName('main')).fetch(request);
  },
};
