/**
 * OpenWorkflow: a workflow of five steps and a worker in this process. An execution is done when the worker has stored its end.
 * Its handle would report the end later, because it polls once a second.
 */

import { OpenWorkflow } from 'openworkflow';

export async function fiveSteps(backend, concurrency) {
  const ended = new Map();
  const waiting = new Map();
  const complete = backend.completeWorkflowRun.bind(backend);
  backend.completeWorkflowRun = async (params) => {
    const run = await complete(params);
    const resolve = waiting.get(params.workflowRunId);
    if (resolve) resolve(params.output);
    else ended.set(params.workflowRunId, params.output);
    return run;
  };
  const openworkflow = new OpenWorkflow({ backend });
  const workflow = openworkflow.defineWorkflow({ name: 'bench' }, async ({ step }) => {
    let x = 0;
    for (let i = 0; i < 5; i++) x = await step.run({ name: `s${i}` }, async () => x + 1);
    return x;
  });
  const worker = openworkflow.newWorker({ concurrency });
  await worker.start();
  let last;
  return {
    async run() {
      const { id } = (await workflow.run({})).workflowRun;
      const x = ended.has(id) ? ended.get(id) : await new Promise((resolve) => waiting.set(id, resolve));
      ended.delete(id);
      waiting.delete(id);
      last = id;
      if (x !== 5) throw new Error(`expected 5, not ${x}`);
    },
    async check() {
      const { status, output } = await backend.getWorkflowRun({ workflowRunId: last });
      const { data } = await backend.listStepAttempts({ workflowRunId: last, limit: 100 });
      if (status !== 'completed' || output !== 5 || data.length !== 5)
        throw new Error(`the last run is stored as ${status} with ${data.length} steps and the output ${output}`);
    },
    close: () => worker.stop(),
  };
}
