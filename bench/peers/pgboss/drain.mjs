/** pg-boss: jobs in a queue, fetched in batches without a pause while batches are full. One job of a group at a time. */

import { PgBoss } from 'pg-boss';

export async function setup({ postgres, keys, concurrency, job }) {
  const boss = new PgBoss({ connectionString: postgres, schedule: false });
  boss.on('error', (error) => console.error(error.message));
  await boss.start();
  await boss.createQueue('drain');
  const limits = keys > 0 ? { groupConcurrency: 1 } : {};
  const polling = { batchSize: concurrency, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 };
  return {
    enqueue: (key) => boss.send('drain', { key }, keys > 0 ? { group: { id: key } } : {}),
    async work() {
      await boss.work('drain', { ...polling, ...limits }, async (all) => {
        await Promise.all(all.map(({ data }) => job(data.key)));
      });
    },
    close: () => boss.stop({ graceful: false }),
  };
}
