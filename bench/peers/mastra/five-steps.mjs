/** A workflow of five chained steps, in its own Mastra instance. */

import { Mastra } from '@mastra/core';
import { createStep, createWorkflow } from '@mastra/core/workflows';
import { z } from 'zod';

/**
 * @param storage - stores each step; undefined: nothing is stored
 * @returns a function that runs the workflow once and throws when the result is wrong
 */
export function fiveSteps(storage) {
  const x = z.object({ x: z.number() });
  let workflow = createWorkflow({ id: 'bench', inputSchema: x, outputSchema: x });
  for (let i = 0; i < 5; i++) {
    const execute = async ({ inputData }) => ({ x: inputData.x + 1 });
    workflow = workflow.then(createStep({ id: `s${i}`, inputSchema: x, outputSchema: x, execute }));
  }
  workflow.commit();
  const registered = new Mastra({ workflows: { bench: workflow }, logger: false, storage }).getWorkflow('bench');
  return async () => {
    const run = await registered.createRun();
    const { status, result } = await run.start({ inputData: { x: 0 } });
    if (status !== 'success' || result.x !== 5) throw new Error(`the status of the run is ${status}`);
  };
}

/** @throws when the number of finished runs is wrong */
export async function checkRuns(storage, executions) {
  const workflows = await storage.getStore('workflows');
  const { total } = await workflows.listWorkflowRuns({ workflowName: 'bench', status: 'success', perPage: 1, page: 0 });
  if (total !== executions) throw new Error(`${executions} executions left ${total} finished runs`);
}
