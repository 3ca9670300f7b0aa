/** Stores whose optional package is not installed: the error names what to install. */

import { describe, expect, it, vi } from 'vitest';
import { packageFailure } from '../../src/engine/base/package-failure.ts';
import { gitComponents } from '../../src/entries/git.ts';
import { mcpClient } from '../../src/entries/mcp.ts';
import { chromiumPdf } from '../../src/entries/pdf.ts';
import { redisKv, redisLimits } from '../../src/entries/redis.ts';
import { s3Objects } from '../../src/entries/s3.ts';
import { smtpMail } from '../../src/entries/smtp.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { createOrchestrator, type OrchestratorOptions } from '../../src/index.ts';

vi.mock('ioredis', () => {
  throw new Error("Cannot find package 'ioredis'");
});
vi.mock('aws4fetch', () => {
  throw new Error("Cannot find package 'aws4fetch'");
});
vi.mock('nodemailer/lib/smtp-connection', () => {
  throw new Error("Cannot find package 'nodemailer'");
});
vi.mock('playwright-core', () => {
  throw new Error("Cannot find package 'playwright-core'");
});
vi.mock('@modelcontextprotocol/client', () => {
  throw new Error("Cannot find package '@modelcontextprotocol/client'");
});
vi.mock('isomorphic-git', () => {
  throw new Error("Cannot find package 'isomorphic-git'");
});
const S3 = { region: 'x', bucket: 'bucket', accessKeyId: 'a', secretAccessKey: 'b' };

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

describe('`ready()` of the orchestrator finds a missing package before anything runs', () => {
  it.each<[string, Omit<OrchestratorOptions, 'clock'>, string]>([
    ['redisKv', { bindings: { cache: redisKv({ url: 'redis://127.0.0.1' }) } }, 'npm install ioredis@6'],
    ['redisLimits', { limits: { store: redisLimits({ url: 'redis://127.0.0.1' }) } }, 'npm install ioredis@6'],
    ['s3Objects', { bindings: { files: s3Objects(S3) } }, 'npm install aws4fetch'],
    ['smtpMail', { mail: { smtp: smtpMail({ host: 'mail.example' }) } }, 'npm install nodemailer'],
    ['chromiumPdf', { pdf: chromiumPdf() }, 'npm install playwright-core'],
    ['mcpClient', { mcp: mcpClient() }, 'npm install @modelcontextprotocol/client'],
    ['gitComponents', { components: gitComponents({ path: '.' }) }, 'npm install isomorphic-git'],
  ])('of %s', async (_, options, line) => {
    for (const orchestrator of [createOrchestrator(options), createTestOrchestrator(options)]) {
      const refused = { code: 'NOT_CONFIGURED', message: expect.stringContaining(line) };
      await expect(orchestrator.ready()).rejects.toMatchObject(refused);
      await orchestrator.close();
    }
  });

  it('and takes ports without such a method', async () => {
    const orchestrator = createOrchestrator({ pdf: { render: () => ({ content: new Uint8Array(), pages: 1 }) } });
    await orchestrator.ready();
    await orchestrator.close();
  });
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
    const objects = s3Objects(S3);
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
