/** Stores whose optional package is not installed: the error names what to install. */

import { describe, expect, it, vi } from 'vitest';
import { packageFailure } from '../../src/engine/base/package-failure.ts';
import { redisKv } from '../../src/entries/redis.ts';
import { s3Objects } from '../../src/entries/s3.ts';

vi.mock('ioredis', () => {
  throw new Error("Cannot find package 'ioredis'");
});
vi.mock('aws4fetch', () => {
  throw new Error("Cannot find package 'aws4fetch'");
});

it('an error of an optional package says what to install, without paths of the host', () => {
  const wanted = { who: 'redisKv', name: 'ioredis', install: 'ioredis@6', version: 'version 6' };
  const failure = (text: string) => packageFailure(new Error(text), wanted);
  expect(failure("Cannot find package 'ioredis' imported from /srv/app/x.js")).toMatchObject({
    code: 'NOT_CONFIGURED',
    message: 'redisKv: the package ioredis is not installed; `npm install ioredis@6`',
    details: { driver: 'ioredis' },
  });
  expect(failure('Unexpected token\n  at /srv/app/x.js').message).toBe(
    "redisKv: the package ioredis is there but can't be loaded (Unexpected token); install version 6 again: `npm install ioredis@6`",
  );
});

describe('a missing package', () => {
  it('of redisKv is NOT_CONFIGURED, with what to install', async () => {
    const kv = redisKv({ url: 'redis://127.0.0.1' });
    const error = {
      code: 'NOT_CONFIGURED',
      retryable: false,
      message: expect.stringContaining('npm install ioredis@6'),
    };
    await expect(kv.get('a', 0)).rejects.toMatchObject(error);
    await kv.close();
  });

  it('of s3Objects is NOT_CONFIGURED, with what to install', async () => {
    const objects = s3Objects({ region: 'x', bucket: 'bucket', accessKeyId: 'a', secretAccessKey: 'b' });
    const error = {
      code: 'NOT_CONFIGURED',
      retryable: false,
      message: expect.stringContaining('npm install aws4fetch'),
    };
    await expect(objects.get('a')).rejects.toMatchObject(error);
  });

  it('is not needed for a client of your own', async () => {
    const kv = redisKv({ client: { eval: async () => '[1]' } });
    expect(await kv.get('a', 0)).toEqual([1]);
  });
});
