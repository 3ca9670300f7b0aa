import { createHandler, createOrchestrator } from 'ensemble-orchestrator';
import { toWorker } from 'ensemble-orchestrator/workers';

const ensembles = [
  {
    name: 'greet',
    inputs: { who: { type: 'string', required: true } },
    flow: [{ agent: 'hello', operation: 'code', config: { script: 'hello' } }],
    outputs: { text: '${hello.output}' },
  },
];
const scripts = { hello: ({ input, env }) => `${env.GREETING} ${input.who}` };

// Called once, with the Worker's own variables.
export default toWorker((env) =>
  createHandler(createOrchestrator({ ensembles, scripts, env: { GREETING: env.GREETING } })),
);
