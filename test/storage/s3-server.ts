/**
 * A server of S3 in memory, for tests: any key, pages in the order of bytes, uploads in parts, errors as S3 words them. It computes the
 * signature of each request from the bytes that arrived, by the rules of Signature Version 4.
 */

import { createHash, createHmac, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

interface Stored {
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

interface Answer {
  readonly status: number;
  readonly body?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

export const KEYS = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };
export const BUCKET = 'test-bucket';
const REGION = 'eu-test-1';

export interface S3Server {
  readonly endpoint: string;
  readonly region: string;
  /** What is stored, by name. */
  readonly objects: Map<string, Stored>;
  /** Uploads that were neither completed nor aborted. */
  readonly uploads: Map<string, Map<number, Buffer>>;
  /** Called before each request; what it returns is the answer. */
  intercept: ((method: string, url: string) => Answer | undefined) | undefined;
  close(): void;
}

const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();
const sha256 = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest('hex');
const failure = (status: number, code: string): Answer => ({
  status,
  body: `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>not &quot;shown&quot;</Message></Error>`,
});

/** @returns the code of S3's error, if the signature is wrong */
function wrongSignature({ method = '', url = '', headers }: IncomingMessage, body: Buffer): string | undefined {
  const pattern = /^AWS4-HMAC-SHA256 Credential=([^/]+)\/([^,]+), SignedHeaders=([^,]+), Signature=(\w+)$/;
  const [, id, scope = '', names = '', signature] = pattern.exec(headers.authorization ?? '') ?? [];
  if (id !== KEYS.accessKeyId) return 'InvalidAccessKeyId';
  if (headers['x-amz-content-sha256'] !== sha256(body)) return 'XAmzContentSHA256Mismatch';
  const [path = '', query = ''] = url.split('?');
  // A path is signed as it is sent, and only these characters may be sent as they are.
  if (!/^(?:[A-Za-z0-9._~/-]|%[0-9A-F]{2})*$/.test(path)) return 'InvalidURI';
  const canonical = [
    ...[method, path, query.split('&').sort().join('&')],
    ...names.split(';').map((name) => `${name}:${headers[name]}`),
    ...['', names, headers['x-amz-content-sha256']],
  ].join('\n');
  const text = ['AWS4-HMAC-SHA256', headers['x-amz-date'], scope, sha256(canonical)].join('\n');
  const key = scope.split('/').reduce<string | Buffer>((made, part) => hmac(made, part), `AWS4${KEYS.secretAccessKey}`);
  return hmac(key, text).toString('hex') === signature && scope.includes(`/${REGION}/s3/`)
    ? undefined
    : 'SignatureDoesNotMatch';
}

const urlEncoded = (text: string) => encodeURIComponent(text).replaceAll('%20', '+').replaceAll('%2F', '/');

function list({ objects }: S3Server, query: URLSearchParams): Answer {
  const start = query.get('continuation-token') ?? query.get('start-after') ?? '';
  const limit = Math.min(Number(query.get('max-keys')), 1000);
  const names = [...objects.keys()]
    .filter(
      (name) => name.startsWith(query.get('prefix') ?? '') && Buffer.compare(Buffer.from(name), Buffer.from(start)) > 0,
    )
    .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  const page = names.slice(0, limit);
  const contents = page.map((name) => `<Contents><Key>${urlEncoded(name)}</Key><Size>1</Size></Contents>`).join('');
  const isTruncated = names.length > limit;
  const next = isTruncated
    ? `<NextContinuationToken>${page.at(-1)?.replaceAll('&', '&amp;')}</NextContinuationToken>`
    : '';
  const about = `<EncodingType>url</EncodingType><IsTruncated>${isTruncated}</IsTruncated>`;
  const xmlns = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"';
  return { status: 200, body: `<ListBucketResult ${xmlns}>${about}${next}${contents}</ListBucketResult>` };
}

function upload(
  server: S3Server,
  name: string,
  query: URLSearchParams,
  request: IncomingMessage,
  body: Buffer,
): Answer {
  const { method } = request;
  if (query.has('uploads')) {
    const id = randomBytes(8).toString('hex');
    server.uploads.set(id, new Map());
    pending.set(id, headersOf(request));
    return {
      status: 200,
      body: `<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`,
    };
  }
  const id = query.get('uploadId') ?? '';
  const parts = server.uploads.get(id);
  if (!parts) return failure(404, 'NoSuchUpload');
  if (method === 'PUT') {
    parts.set(Number(query.get('partNumber')), body);
    return { status: 200, headers: { etag: `"${sha256(body)}"` } };
  }
  server.uploads.delete(id);
  if (method === 'DELETE') return { status: 204 };
  const listed = [...body.toString().matchAll(/<PartNumber>(\d+)<\/PartNumber><ETag>(?:&#34;|")(\w+)(?:&#34;|")</g)];
  const found = listed.map(([, number, tag]) => [parts.get(Number(number)) ?? Buffer.alloc(0), tag] as const);
  if (found.some(([part, tag]) => sha256(part) !== tag)) return failure(400, 'InvalidPart');
  if (found.slice(0, -1).some(([part]) => part.length < 5 * 1024 * 1024)) return failure(400, 'EntityTooSmall');
  server.objects.set(name, { body: Buffer.concat(found.map(([part]) => part)), headers: pending.get(id) ?? {} });
  return { status: 200, body: '<CompleteMultipartUploadResult><ETag>"x"</ETag></CompleteMultipartUploadResult>' };
}

const pending: Pick<Map<string, Stored['headers']>, 'get' | 'set'> = new Map();

function headersOf({ headers }: IncomingMessage): Stored['headers'] {
  const kept = Object.entries(headers).filter(([name]) => name === 'content-type' || name.startsWith('x-amz-meta-'));
  return Object.fromEntries(kept) as Stored['headers'];
}

function answer(server: S3Server, request: IncomingMessage, body: Buffer): Answer {
  const { method = '', url = '' } = request;
  const given = server.intercept?.(method, url);
  if (given) return given;
  const wrong = wrongSignature(request, body);
  if (wrong !== undefined) return failure(403, wrong);
  const [path = '', search = ''] = url.split('?');
  const [, bucket = '', ...rest] = path.split('/');
  const name = decodeURIComponent(rest.join('/'));
  const query = new URLSearchParams(search);
  if (bucket !== BUCKET) return failure(404, 'NoSuchBucket');
  if (name === '') return list(server, query);
  if (query.has('uploads') || query.has('uploadId')) return upload(server, name, query, request, body);
  const stored = server.objects.get(name);
  if (method === 'PUT') server.objects.set(name, { body, headers: headersOf(request) });
  if (method === 'DELETE') server.objects.delete(name);
  if (method === 'PUT' || method === 'DELETE') return { status: method === 'PUT' ? 200 : 204 };
  if (!stored) return method === 'HEAD' ? { status: 404 } : failure(404, 'NoSuchKey');
  return {
    status: 200,
    body: stored.body,
    headers: { 'last-modified': 'Thu, 01 Jan 2026 00:00:05 GMT', ...stored.headers },
  };
}

export async function startS3(): Promise<S3Server> {
  const http = createServer(async (request, response) => {
    const { status, body, headers } = answer(server, request, await buffer(request));
    response.writeHead(status, headers).end(request.method === 'HEAD' ? undefined : body);
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const server: S3Server = {
    endpoint: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    ...{ region: REGION, objects: new Map(), uploads: new Map(), intercept: undefined },
    close: () => {
      http.closeAllConnections();
      http.close();
    },
  };
  return server;
}
