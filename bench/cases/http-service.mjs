/** The service that the HTTP cases measure: one ensemble of five trivial steps on memory storage, and a token for it. */

import { importLibrary } from '../library.mjs';

const BODY = JSON.stringify({ input: { x: 1 } });

export async function serviceCase() {
  const { createHandler, createOrchestrator } = await importLibrary();
  const flow = Array.from({ length: 5 }, (_, i) => ({ agent: `s${i}`, operation: 'code', config: { script: 'step' } }));
  const orchestrator = createOrchestrator({
    ensembles: [{ name: 'bench', flow, outputs: { x: '${s4.output}' } }],
    scripts: { step: async ({ input }) => input.x + 1 },
  });
  const plan = { requests: 1_000_000_000, executions: 1_000_000_000, concurrent: 1000 };
  const { token } = await orchestrator.tokens.create({ name: 'bench', scopes: ['execute:ensembles'], plan });
  return { handler: createHandler(orchestrator), token };
}

/** The request that every HTTP case sends. */
export function post(token) {
  return {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: BODY,
  };
}
