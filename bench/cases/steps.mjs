/** A flow of any number of trivial steps, to see whether the time of one step grows with the length of the flow. */

import { importLibrary } from '../library.mjs';

const KEPT_RECORDS = 50_000;

/** @param count - number of steps */
export const setup = ([count]) => stepsCase(Number(count));

export async function stepsCase(count) {
  const { createOrchestrator, memoryStorage } = await importLibrary();
  const flow = Array.from({ length: count }, (_, i) => ({
    agent: `s${i}`,
    operation: 'code',
    config: { script: 'increment' },
  }));
  const orchestrator = createOrchestrator({
    // At every length, keeps as many step records as the default (10,000 executions) keeps for five steps.
    storage: memoryStorage({ keep: Math.ceil(KEPT_RECORDS / count) }),
    ensembles: [{ name: 'bench', flow }],
    scripts: { increment: async ({ input }) => input.x + 1 },
  });
  return {
    units: count,
    async run() {
      const { status, agents } = await orchestrator.execute('bench', { x: 0 });
      if (status !== 'completed' || agents[count - 1].output !== 1)
        throw new Error(`the status of the run is ${status}`);
    },
  };
}
