/** For tests on a real Redis: whether there is a server, and names that only one test uses. */

import { Redis } from 'ioredis';

/** The address of the server. */
export const SERVER = process.env.TEST_REDIS ?? 'redis://127.0.0.1:6379';

/** @returns whether a server answers; logs it when none does, because its tests are then skipped */
export async function findRedis(): Promise<boolean> {
  const client = new Redis(SERVER, { lazyConnect: true, connectTimeout: 2000, retryStrategy: () => null });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.ping();
    return true;
  } catch (error) {
    console.log(`no Redis at ${new URL(SERVER).host} (${(error as Error).message}): its tests are skipped`);
    return false;
  } finally {
    client.disconnect();
  }
}

let prefixes = 0;

export function newPrefix(): string {
  prefixes += 1;
  return `ensemble_test_${process.pid}_${prefixes}_${Math.trunc(performance.timeOrigin)}`;
}

/** Deletes the keys of all prefixes of this process. */
export async function cleanUp(client: Redis): Promise<void> {
  for await (const names of client.scanStream({ match: `{ensemble_test_${process.pid}_*`, count: 1000 })) {
    if (names.length > 0) await client.del(...(names as string[]));
  }
}
