/** BullMQ: jobs in a queue of Redis, with the server's settings for its disk. Limits by key (groups) are in its paid edition. */

import { Queue, Worker } from 'bullmq';
import Redis from 'ioredis';
import { unavailable } from '../../durable/unavailable.mjs';

export async function setup({ redis, concurrency, job }) {
  const probe = new Redis(redis, { lazyConnect: true, retryStrategy: null });
  try {
    await probe.connect();
  } catch (error) {
    throw unavailable(`no Redis server can be reached (${error.message}); name one in REDIS_URL`);
  }
  probe.disconnect();
  const { hostname: host, port } = new URL(redis);
  const connection = { host, port: Number(port || 6379), maxRetriesPerRequest: null };
  const name = `drain-${process.pid}`;
  const queue = new Queue(name, { connection });
  let worker;
  return {
    enqueue: (key) => queue.add('job', { key }),
    async work() {
      worker = new Worker(name, ({ data }) => job(data.key), { connection, concurrency });
    },
    async close() {
      await worker.close();
      await queue.obliterate({ force: true });
      await queue.close();
    },
  };
}
