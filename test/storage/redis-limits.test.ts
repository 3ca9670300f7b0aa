/** The logs of requests in a real Redis: the published suite, several processes, and a server that is away. */

import { Redis } from 'ioredis';
import { afterAll, describe, expect, it } from 'vitest';
import { limitStoreSuite } from '../../src/conformance/limit-store-suite.ts';
import { redisLimits } from '../../src/entries/redis.ts';
import { cleanUp, findRedis, newPrefix, SERVER } from './redis-server.ts';

const found = await findRedis();
const client = new Redis(SERVER, { lazyConnect: true });
const HOUR = { key: 'token:tok_1', limit: 100, windowMs: 3_600_000 };

describe.skipIf(!found)('Redis', () => {
  afterAll(async () => {
    await cleanUp(client);
    client.disconnect();
  });

  limitStoreSuite({
    name: 'redisLimits',
    create() {
      const rates = redisLimits({ url: SERVER, namespace: newPrefix() });
      return { rates, close: () => rates.close() };
    },
    test: { describe, it },
  });

  it('of 400 requests of four connections at once, exactly 100 pass', async () => {
    const namespace = newPrefix();
    const stores = Array.from({ length: 4 }, () => redisLimits({ url: SERVER, namespace }));
    const answers = await Promise.all(Array.from({ length: 400 }, (_, i) => stores[i % 4]?.take([HOUR], 1_000 + i)));
    expect(answers.filter((answer) => answer?.taken).length).toBe(100);
    await Promise.all(stores.map((store) => store.close()));
  });

  it('a passed client is used and stays open, and Redis forgets a log after its window', async () => {
    const namespace = newPrefix();
    const store = redisLimits({ client, namespace });
    await store.take([HOUR], 1_000);
    await store.close();
    expect((await store.peek([HOUR], 1_000)).map(({ used }) => used)).toEqual([1]);
    const ttl = await client.pttl(`{${namespace}}:requests:token:tok_1 3600000`);
    expect(ttl).toBeGreaterThan(3_600_000 - 60_000);
    expect(ttl).toBeLessThanOrEqual(3_600_000 + 60_000);
  });
});

it('a server that is away is OVERLOADED, and the message names no address', async () => {
  const store = redisLimits({ url: 'redis://user:geheim@127.0.0.1:1' });
  await expect(Promise.resolve(store.take([HOUR], 0))).rejects.toMatchObject({
    code: 'OVERLOADED',
    message: 'redisLimits: Redis did not answer',
  });
  await store.close();
});
