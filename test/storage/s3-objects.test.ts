/** Objects in S3: the published suite, what a bucket holds, uploads in parts, failures, and another server of the protocol. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import S3rver from 's3rver';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { dataSuite } from '../../src/conformance/data-suite.ts';
import { nodeHttp } from '../../src/entries/node.ts';
import { type S3ObjectsOptions, s3Objects } from '../../src/entries/s3.ts';
import type { HttpRequest } from '../../src/index.ts';
import { fetchHttp } from '../../src/index.ts';
import { BUCKET, KEYS, startS3 } from './s3-server.ts';

const server = await startS3();
afterAll(() => server.close());
afterEach(() => {
  server.intercept = undefined;
});

const MIB = 1024 * 1024;
const open = (more: Partial<S3ObjectsOptions> = {}) => {
  const { endpoint, region } = server;
  return s3Objects({ url: endpoint, region, bucket: BUCKET, ...KEYS, ...more });
};
const create = (more?: Partial<S3ObjectsOptions>) => {
  server.objects.clear();
  return { objects: open(more) };
};
const text = (content: string) => ({
  content: new TextEncoder().encode(content),
  contentType: 'text/plain',
  updatedAt: 7,
});
async function* stream(parts: number, size: number, failAt = Number.POSITIVE_INFINITY) {
  for (let part = 0; part < parts; part++) {
    if (part === failAt) throw new RangeError('the source broke');
    yield new Uint8Array(size).fill(part);
  }
}

dataSuite({
  name: 's3Objects',
  create: () => create(),
  reopen: () => ({ objects: open() }),
  kinds: ['objects'],
  test: { describe, it },
});
dataSuite({
  name: 's3Objects with a prefix, over nodeHttp',
  create: () => create({ prefix: 'app/ä+/', http: nodeHttp({ allow: ['127.0.0.1'] }) }),
  kinds: ['objects'],
  test: { describe, it },
});

describe('a server without an end', () => {
  const listing = (keys: string, next: string) =>
    `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>${next}</NextContinuationToken>${keys}</ListBucketResult>`;
  /** A client whose answers a function gives. */
  const answering = (answer: (request: HttpRequest, count: number) => Promise<string> | string) => {
    let asked = 0;
    const http = {
      async send(request: HttpRequest) {
        asked += 1;
        request.signal?.throwIfAborted();
        const body = new TextEncoder().encode(await answer(request, asked));
        return { status: 200, headers: {}, body };
      },
    };
    return { objects: open({ http }), asked: () => asked };
  };

  it('is given up when its lists have no keys, or stay where they are', async () => {
    for (const next of ['same', undefined]) {
      const { objects, asked } = answering((_, count) => listing('', next ?? `page-${count}`));
      await expect(objects.list({ limit: 10, now: 0 })).rejects.toMatchObject({ code: 'OVERLOADED', retryable: true });
      expect(asked()).toBe(21);
    }
  });

  it('is asked no more when nobody waits for its list', async () => {
    const controller = new AbortController();
    const { objects, asked } = answering((_, count) => {
      if (count === 3) controller.abort(new Error('cancelled'));
      return listing(`<Key>key-${count}</Key>`, `page-${count}`);
    });
    await expect(objects.list({ limit: 1000, now: 0, signal: controller.signal })).rejects.toThrow('cancelled');
    expect(asked()).toBe(3);
  });

  it('is read no further than its reader takes', async () => {
    const { objects } = create();
    await objects.put('large', { ...text(''), content: new Uint8Array(200_000) });
    await expect(objects.get('large', { maxBytes: 100_000 })).rejects.toMatchObject({
      code: 'INVALID_OUTPUT',
      details: { reason: 'too-large', limit: 100_000 },
    });
    expect((await objects.get('large', { maxBytes: 200_000 }))?.content).toHaveLength(200_000);
  });

  it.each([
    [507, '', 'OVERLOADED'],
    [200, '<Error><Code>InternalError</Code></Error>', 'OVERLOADED'],
    [200, '<Error><Code>AccessDenied</Code></Error>', 'NOT_CONFIGURED'],
  ])('a put that is answered %i with the body `%s` has failed: %s', async (status, body, code) => {
    server.intercept = () => ({ status, body });
    await expect(open().put('key', text('x'))).rejects.toMatchObject({ code });
  });
});

describe('the bucket', () => {
  it('has plain keys under their own names, with their content type', async () => {
    const { objects } = create({ prefix: 'app/' });
    await objects.put('reports/2026 (1).pdf', { ...text('x'), contentType: 'application/pdf' });
    const [[name, stored] = []] = server.objects;
    expect(name).toBe('app/reports/2026 (1).pdf');
    expect(stored?.headers['content-type']).toBe('application/pdf');
  });

  it('may have objects of other programs: they are read with the type and the time of S3', async () => {
    const { objects } = create();
    server.objects.set('other', { body: Buffer.from('x'), headers: { 'content-type': 'text/html' } });
    expect(await objects.get('other')).toMatchObject({
      contentType: 'text/html',
      updatedAt: Date.UTC(2026, 0, 1, 0, 0, 5),
    });
  });

  it('may have names that no key has: they are not listed, and take no place in a page', async () => {
    const { objects } = create();
    const odd = Array.from({ length: 30 }, (_, i) => `.hidden-${i}`);
    for (const name of [...odd, 'x'.repeat(600), 'z']) server.objects.set(name, { body: Buffer.from(''), headers: {} });
    expect(await objects.list({ limit: 1, now: 0 })).toEqual(['z']);
  });

  it('lists more keys than one answer has', async () => {
    const { objects } = create();
    for (let i = 0; i < 2500; i++) server.objects.set(`k${10_000 + i}`, { body: Buffer.from(''), headers: {} });
    expect(await objects.list({ limit: 2200, now: 0 })).toHaveLength(2200);
  });
});

describe('a stream', () => {
  it('of several parts is one object, with its type and time, and no upload stays open', async () => {
    const { objects } = create();
    const size = await objects.putStream('big', { ...text(''), contentType: 'video/mp4', content: stream(21, MIB) });
    const object = await objects.get('big');
    expect(size).toBe(21 * MIB);
    expect(object).toMatchObject({ contentType: 'video/mp4', updatedAt: 7 });
    expect(object?.content.every((byte, i) => byte === Math.floor(i / MIB))).toBe(true);
    expect(server.uploads.size).toBe(0);
  });

  it('that breaks after some parts aborts the upload, and the old object stays', async () => {
    const { objects } = create();
    await objects.put('big', text('old'));
    const broken = { ...text(''), content: stream(20, MIB, 15) };
    await expect(objects.putStream('big', broken)).rejects.toThrow(new RangeError('the source broke'));
    expect(server.uploads.size).toBe(0);
    expect(new TextDecoder().decode((await objects.get('big'))?.content)).toBe('old');
  });

  it('whose upload S3 refuses at its end, with the status 200, fails, and is aborted', async () => {
    const { objects } = create();
    server.intercept = (method, url) =>
      method === 'POST' && url.includes('uploadId=')
        ? { status: 200, body: '<Error><Code>InternalError</Code></Error>' }
        : undefined;
    const content = stream(9, MIB);
    await expect(objects.putStream('big', { ...text(''), content })).rejects.toMatchObject({ code: 'OVERLOADED' });
    expect(server.uploads.size).toBe(0);
    expect(await objects.get('big')).toBeUndefined();
  });
});

describe('failures of S3', () => {
  it.each([
    [503, 'SlowDown', 'OVERLOADED', true],
    [500, 'InternalError', 'OVERLOADED', true],
    [400, 'RequestTimeout', 'OVERLOADED', true],
    [403, 'AccessDenied', 'NOT_CONFIGURED', false],
    [403, 'RequestTimeTooSkewed', 'NOT_CONFIGURED', false],
    [301, 'PermanentRedirect', 'NOT_CONFIGURED', false],
    [404, 'NoSuchBucket', 'NOT_CONFIGURED', false],
    [400, 'EntityTooLarge', 'INVALID_REQUEST', false],
    [502, '', 'OVERLOADED', true],
  ])('%d %s is %s, in every call', async (status, s3Code, code, retryable) => {
    const { objects } = create();
    server.intercept = () => ({ status, body: s3Code && `<Error><Code>${s3Code}</Code></Error>` });
    const page = { limit: 1, now: 0 };
    for (const call of [() => objects.get('a'), () => objects.put('a', text('')), () => objects.list(page)]) {
      await expect(call()).rejects.toMatchObject({ code, retryable, message: expect.stringContaining(s3Code) });
    }
  });

  it('a wrong secret is NOT_CONFIGURED, and no message has the keys', async () => {
    const error = await Promise.resolve(open({ secretAccessKey: 'not-the-secret' }).get('a')).catch(String);
    expect(error).toMatch(/SignatureDoesNotMatch; check `secretAccessKey`/);
    expect(error).not.toMatch(/not-the-secret|AKID/);
  });

  it('a server that is away is OVERLOADED', async () => {
    for (const http of [undefined, nodeHttp({ allow: ['127.0.0.1'] })]) {
      const objects = open({ url: 'http://127.0.0.1:9', ...(http && { http }) });
      await expect(objects.get('a')).rejects.toMatchObject({ code: 'OVERLOADED', retryable: true });
    }
  });

  it('an address that the given client refuses is NOT_CONFIGURED', async () => {
    const objects = open({ http: fetchHttp() });
    await expect(objects.get('a')).rejects.toMatchObject({ code: 'NOT_CONFIGURED', retryable: false });
  });

  it('an object that exceeds `maxObjectBytes` is refused, not cut', async () => {
    create();
    server.objects.set('a', { body: Buffer.alloc(2 * MIB), headers: {} });
    await expect(open({ maxObjectBytes: MIB }).get('a')).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      retryable: false,
    });
  });

  it('an endpoint that is no S3 is NOT_CONFIGURED, also where it answers 200', async () => {
    const { objects } = create();
    server.intercept = () => ({ status: 200, body: '<html>welcome</html>' });
    await expect(objects.list({ limit: 1, now: 0 })).rejects.toMatchObject({ code: 'NOT_CONFIGURED' });
  });
});

describe('addresses', () => {
  const urlOf = async (more: Partial<S3ObjectsOptions>) => {
    const sent: HttpRequest[] = [];
    const http = {
      async send(request: HttpRequest) {
        sent.push(request);
        return { status: 404, headers: {}, body: new Uint8Array() };
      },
    };
    await s3Objects({ region: 'us-east-1', bucket: 'my-bucket', ...KEYS, sessionToken: 'token', http, ...more }).get(
      '/a b',
    );
    expect(sent[0]?.headers?.['x-amz-security-token']).toBe('token');
    return sent[0]?.url;
  };
  it.each<[string, Partial<S3ObjectsOptions>]>([
    ['https://my-bucket.s3.us-east-1.amazonaws.com//a%20b', {}],
    ['https://s3.us-east-1.amazonaws.com/my-bucket//a%20b', { forcePathStyle: true }],
    ['https://s3.us-east-1.amazonaws.com/my.bucket//a%20b', { bucket: 'my.bucket' }],
    ['http://localhost:9000/base/my-bucket//a%20b', { url: 'http://localhost:9000/base/' }],
    ['https://my-bucket.example.com//a%20b', { url: 'https://example.com', forcePathStyle: false }],
  ])('%s', async (url, more) => {
    expect(await urlOf(more)).toBe(url);
  });
});

describe('options of s3Objects', () => {
  it.each<[string, Partial<S3ObjectsOptions>]>([
    ['region', { region: '' }],
    ['bucket', { bucket: 'No/Bucket' }],
    ['secretAccessKey', { secretAccessKey: undefined as never }],
    ['url', { url: 'ftp://x' }],
    ['url', { url: 'https://user:pass@x' }],
    ['prefix', { prefix: 'a/../b' }],
    ['http', { http: {} as never }],
    ['maxObjectBytes', { maxObjectBytes: 0 }],
  ])('a wrong `%s` is refused', (name, more) => {
    expect(() => open(more)).toThrow(new RegExp(`^s3Objects: \`${name}\``));
  });
});

describe('s3rver, another server of the protocol, which checks signatures', () => {
  const directory = mkdtempSync(join(tmpdir(), 'ensemble-s3-'));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it('keeps objects with odd keys, lists them, and takes streams', async () => {
    const configureBuckets = [{ name: BUCKET, configs: [] }];
    const s3rver = new S3rver({ port: 0, address: '127.0.0.1', silent: true, directory, configureBuckets });
    const { port } = await s3rver.run();
    const keys = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' };
    const objects = open({ url: `http://127.0.0.1:${port}`, region: 'us-east-1', ...keys });
    // Its routes know no empty segments, and its files no names of more than 255 bytes.
    const names = ['../a', '.', 'a', 'a b+c%20d', 'a/b', 'a?x=1#y', '&<>"\'', 'ä', '漢'].sort();
    for (const key of names) await objects.put(key, text(key));
    for (const key of names) expect(new TextDecoder().decode((await objects.get(key))?.content)).toBe(key);
    // Its tokens of further pages can't be made on this Node.js.
    expect([...(await objects.list({ limit: 100, now: 0 }))].sort()).toEqual(names);
    expect(await objects.list({ limit: 100, now: 0, prefix: 'a/' })).toEqual(['a/b']);
    expect(await objects.list({ limit: 100, now: 0, after: 'ä' })).toEqual(['漢']);
    expect(await objects.putStream('big', { ...text(''), content: stream(17, MIB) })).toBe(17 * MIB);
    expect((await objects.get('big'))?.content[16 * MIB]).toBe(16);
    expect([await objects.delete('a'), await objects.delete('a')]).toEqual([true, false]);
    await s3rver.close();
  });
});
