/** Mastra: a workflow of five chained steps, without storage. */

import { Mastra } from '@mastra/core';
import { createStep, createWorkflow } from '@mastra/core/workflows';
import { z } from 'zod';

export function setup() {
  const x = z.object({ x: z.number() });
  let workflow = createWorkflow({ id: 'bench', inputSchema: x, outputSchema: x });
  for (let i = 0; i < 5; i++) {
    const execute = async ({ inputData }) => ({ x: inputData.x + 1 });
    workflow = workflow.then(createStep({ id: `s${i}`, inputSchema: x, outputSchema: x, execute }));
  }
  workflow.commit();
  const registered = new Mastra({ workflows: { bench: workflow }, logger: false }).getWorkflow('bench');
  return {
    async run() {
      const run = await registered.createRun();
      const { status, result } = await run.start({ inputData: { x: 0 } });
      if (status !== 'success' || result.x !== 5) throw new Error(`the run came out as ${status}`);
    },
  };
}
