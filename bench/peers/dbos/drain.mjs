/** DBOS: workflows of one step in a queue. A partition for each key, with one workflow at a time. It polls every second by default. */

import { DBOS } from '@dbos-inc/dbos-sdk';

export async function setup({ postgres, keys, concurrency, job }) {
  DBOS.setConfig({ name: 'bench', systemDatabaseUrl: postgres, logLevel: 'error' });
  const workflow = DBOS.registerWorkflow(async (key) => DBOS.runStep(() => job(key), { name: 's' }), { name: 'drain' });
  const limits = keys > 0 ? { partitionConcurrency: 1 } : {};
  await DBOS.launch();
  const queue = await DBOS.registerQueue('drain', { ...limits, workerConcurrency: 0 });
  return {
    async enqueue(key) {
      const enqueueOptions = keys > 0 ? { queuePartitionKey: key } : undefined;
      await DBOS.startWorkflow(workflow, { queueName: 'drain', enqueueOptions })(key);
    },
    work: () => queue.setWorkerConcurrency(concurrency),
    close: () => DBOS.shutdown(),
  };
}
