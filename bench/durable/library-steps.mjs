/** This library: an ensemble of five steps, each of which passes its result to the next. */

import { importLibrary } from '../library.mjs';

const FLOW = Array.from({ length: 5 }, (_, i) => ({
  agent: `s${i}`,
  operation: 'code',
  config: { script: 'increment' },
  input: { x: i === 0 ? '${input.x}' : `\${s${i - 1}.output}` },
}));

/** @param options - further options of the orchestrator @returns the `orchestrator` and `run()`, which runs the ensemble once and throws when the result is wrong */
export async function fiveSteps(storage, options = {}) {
  const { createOrchestrator } = await importLibrary();
  const orchestrator = createOrchestrator({
    ...options,
    storage,
    ensembles: [{ name: 'bench', flow: FLOW, outputs: { x: '${s4.output}' } }],
    scripts: { increment: async ({ input }) => input.x + 1 },
  });
  const run = async () => {
    const { status, output } = await orchestrator.execute('bench', { x: 0 });
    if (status !== 'completed' || output.x !== 5) throw new Error(`the status of the run is ${status}`);
  };
  return { orchestrator, run };
}

/** @param prefix - of the table names in that store. @returns SQL that counts what is stored */
export function countStored(prefix) {
  return `SELECT
    (SELECT count(*) FROM ${prefix}executions WHERE status = 'completed') AS executions,
    (SELECT count(*) FROM ${prefix}steps) AS steps`;
}

/** @throws when the number of finished executions or steps is wrong */
export function checkStored(found, executions) {
  if (Number(found.executions) === executions && Number(found.steps) === 5 * executions) return;
  throw new Error(`${executions} executions left ${found.executions} finished ones with ${found.steps} steps`);
}
