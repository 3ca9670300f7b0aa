import { createHandler, createOrchestrator } from 'ensemble-orchestrator';

export const orchestrator = createOrchestrator({
  ensembles: [
    {
      name: 'greet',
      inputs: { who: { type: 'string', required: true } },
      flow: [{ agent: 'hello', operation: 'code', config: { script: 'hello' } }],
      outputs: { text: '${hello.output}' },
    },
  ],
  scripts: { hello: ({ input }) => `Hello ${input.who}` },
});

export const handler = createHandler(orchestrator);
