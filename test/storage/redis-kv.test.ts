/** Keyed values in a real Redis: the published suite, what Redis holds, and failures of the server. */

import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, it } from 'vitest';
import { dataSuite } from '../../src/conformance/data-suite.ts';
import { redisKv } from '../../src/entries/redis.ts';
import { cleanUp, findRedis, newPrefix, SERVER } from './redis-server.ts';

const found = await findRedis();
const client = new Redis(SERVER, { lazyConnect: true });

describe.skipIf(!found)('Redis', () => {
  afterAll(async () => {
    await cleanUp(client);
    client.disconnect();
  });

  let prefix = '';
  const reopen = () => {
    const kv = redisKv({ url: SERVER, namespace: prefix });
    return { kv, close: () => kv.close() };
  };
  const create = () => {
    prefix = newPrefix();
    return reopen();
  };
  dataSuite({ name: 'redisKv', create, reopen, kinds: ['kv'], test: { describe, it } });

  it('a database that the server does not have is NOT_CONFIGURED, and nothing is written to another one', async () => {
    const namespace = newPrefix();
    const kv = redisKv({ url: `${SERVER}/4095`, namespace });
    await expect(kv.put('a', 1)).rejects.toMatchObject({
      code: 'NOT_CONFIGURED',
      message: expect.stringContaining('no database 4095'),
    });
    await kv.close();
    const first = redisKv({ url: SERVER, namespace });
    expect(await first.get('a', 0)).toBeUndefined();
    await first.close();
    const second = redisKv({ url: `${SERVER}/1`, namespace });
    await second.put('a', 2);
    expect(await second.get('a', 0)).toBe(2);
    await second.delete('a');
    await second.close();
    expect(() => redisKv({ url: `${SERVER}/cache` })).toThrow('the number of a database');
  });

  it('a passed client is used, and stays open', async () => {
    const kv = redisKv({ client, namespace: newPrefix() });
    await kv.put('a', [1]);
    await kv.close();
    expect(await client.ping()).toBe('PONG');
    expect(await kv.get('a', 0)).toEqual([1]);
  });

  it('two stores with different prefixes do not see each other, whatever the prefixes contain', async () => {
    const base = newPrefix();
    const kvs = ['', '*', ':value'].map((end) => redisKv({ client, namespace: base + end }));
    for (const [i, kv] of kvs.entries()) await kv.put('a', i);
    for (const [i, kv] of kvs.entries()) {
      expect(await kv.get('a', 0)).toBe(i);
      expect(await kv.list({ limit: 10, now: 0 })).toEqual(['a']);
    }
  });

  it('lists pages of 5,000 keys, of which most are expired', async () => {
    const kv = redisKv({ client, namespace: newPrefix() });
    const keys = Array.from({ length: 5000 }, (_, i) => `key-${String(i).padStart(5, '0')}`);
    const live = (i: number) => i % 1000 === 999;
    await Promise.all(keys.map((key, i) => kv.put(key, i, live(i) ? undefined : 1000)));
    expect(await kv.list({ limit: 3, now: 1000 })).toEqual(['key-00999', 'key-01999', 'key-02999']);
    expect(await kv.list({ limit: 3, now: 1000, after: 'key-02999' })).toEqual(['key-03999', 'key-04999']);
  });

  it('a value that expired is deleted from Redis by a later read, and by Redis itself an hour after its expiry', async () => {
    const name = newPrefix();
    const kv = redisKv({ client, namespace: name });
    const now = Date.now();
    await kv.put('a', 1, now + 60_000);
    const ttl = await client.pttl(`{${name}}:value:a`);
    expect(ttl).toBeGreaterThan(3_600_000);
    expect(ttl).toBeLessThanOrEqual(3_600_000 + 60_000);
    expect(await kv.list({ limit: 10, now: now + 60_000 })).toEqual([]);
    await expect.poll(() => client.exists(`{${name}}:value:a`, `{${name}}:keys`, `{${name}}:expiries`)).toBe(0);
  });

  it('a key whose value Redis deleted is not listed', async () => {
    const name = newPrefix();
    const kv = redisKv({ client, namespace: name });
    await kv.put('a', 1);
    await kv.put('b', 2);
    await client.del(`{${name}}:value:a`);
    expect(await kv.list({ limit: 10, now: 0 })).toEqual(['b']);
    expect(await kv.delete('a')).toBe(false);
  });

  it('a value that is not JSON is reported as damaged, with its key', async () => {
    const name = newPrefix();
    const kv = redisKv({ client, namespace: name });
    await kv.put('a', 1);
    await client.set(`{${name}}:value:a`, '{"torn');
    await expect(kv.get('a', 0)).rejects.toMatchObject({ code: 'INTERNAL', message: /key a is damaged/ });
  });

  it('names of other types under the prefix are reported as a mistake of the configuration', async () => {
    const name = newPrefix();
    const kv = redisKv({ client, namespace: name });
    await client.set(`{${name}}:keys`, 'text');
    await expect(kv.put('a', 1)).rejects.toMatchObject({
      code: 'NOT_CONFIGURED',
      message: /WRONGTYPE/,
      retryable: false,
    });
  });

  it('a wrong password is NOT_CONFIGURED, and no message contains it', async () => {
    const kv = redisKv({ url: SERVER.replace('//', '//nobody:hunter2@'), namespace: newPrefix() });
    const thrown = await Promise.resolve(kv.get('a', 0)).catch((error: unknown) => error);
    await kv.close();
    expect(thrown).toMatchObject({ code: 'NOT_CONFIGURED', retryable: false });
    expect(String(thrown)).not.toContain('hunter2');
  });
});

describe('a Redis that does not answer', () => {
  it('is OVERLOADED and retryable', async () => {
    const server = createServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const kv = redisKv({ url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}` });
    await expect(kv.get('a', 0)).rejects.toMatchObject({ code: 'OVERLOADED', retryable: true });
    await kv.close();
    await expect(kv.get('a', 0)).rejects.toMatchObject({ code: 'OVERLOADED', retryable: false });
    server.close();
  });
});

describe('options of redisKv', () => {
  it.each([
    [{}, /either `client` or `url`/],
    [{ url: 'redis://h', client: { eval: async () => 1 } }, /either `client` or `url`/],
    [{ client: {} as never }, /`eval`/],
    [{ url: 'http://h' }, /redis:\/\//],
    [{ url: 'redis://h', prefix: 'a{b}' }, /`prefix`/],
  ])('%j is refused', (options, message) => {
    expect(() => redisKv(options)).toThrow(message);
  });
});
