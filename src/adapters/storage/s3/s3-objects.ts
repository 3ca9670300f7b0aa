/** Objects in S3, or in a server that speaks its protocol. */

import { OrchestratorError } from '../../../engine/base/errors.ts';
import type { HttpResponse } from '../../../engine/host/http.port.ts';
import { checkKey, isPlainText, type ObjectStore, type StoredObject } from '../../../engine/storage/data.port.ts';
import { objectTooLarge, readPages } from '../bounded-reads.ts';
import { wellFormed } from '../well-formed.ts';
import { createClient, loadSigner, type SendToS3 } from './client.ts';
import { codeOfAnswer, isTooLarge, toS3Failure } from './failure.ts';
import { toKey, toName } from './object-names.ts';
import { placeOf, type S3ObjectsOptions } from './options.ts';
import { readText, readTexts } from './read-xml.ts';
import { uploadParts } from './upload-parts.ts';

/** The most keys of one answer. */
const PAGE = 1000;

/**
 * Objects in a bucket of S3, R2, MinIO and others, for bindings of `operation: storage`. Needs the package `aws4fetch`. It runs on every
 * runtime.
 *
 * @param options - see {@link S3ObjectsOptions}
 * @throws TypeError for options that can't be right
 * @example
 * ```ts no-run
 * import { createOrchestrator } from 'ensemble-orchestrator';
 * import { s3Objects } from 'ensemble-orchestrator/s3';
 *
 * const { AWS_ACCESS_KEY_ID: accessKeyId = '', AWS_SECRET_ACCESS_KEY: secretAccessKey = '' } = process.env;
 * const reports = s3Objects({ region: 'eu-central-1', bucket: 'reports', accessKeyId, secretAccessKey });
 * createOrchestrator({ bindings: { reports } });
 * ```
 */
export function s3Objects(options: S3ObjectsOptions): Required<ObjectStore> {
  const place = placeOf(options);
  const { prefix, maxObjectBytes } = place;
  const send = createClient(options, place);
  const nameOf = (key: string) => toName(prefix, checkKey(key));
  return {
    kind: 'objects',
    ready: async () => void (await loadSigner()),
    async get(key, { maxBytes = maxObjectBytes, signal } = {}) {
      const limit = Math.min(maxBytes, maxObjectBytes);
      const tooLarge = () => (limit === maxObjectBytes ? storeTooLarge(limit) : objectTooLarge(limit));
      const response = await send({
        ...{ action: 'get', method: 'GET', name: nameOf(key), maxBytes: limit },
        ...(signal && { signal }),
      }).catch((thrown: unknown) => {
        throw isTooLarge(thrown) ? tooLarge() : thrown;
      });
      if (response.status === 404 && codeOfAnswer(response) !== 'NoSuchBucket') return undefined;
      if (response.status !== 200) throw toS3Failure('get', response);
      if (response.body.length > limit) throw tooLarge();
      return toObject(response);
    },
    async put(key, { content, ...about }) {
      await putWhole(send, nameOf(key), content, about);
    },
    async putStream(key, { content, ...about }) {
      const name = nameOf(key);
      return uploadParts(send, content, {
        name,
        headers: headersOf(about),
        whole: (bytes) => putWhole(send, name, bytes, about),
      });
    },
    async delete(key) {
      const name = nameOf(key);
      // S3 answers a delete in the same way whether the object existed or not.
      const head = await send({ action: 'delete', method: 'HEAD', name });
      if (head.status === 404) return false;
      if (head.status !== 200) throw toS3Failure('delete', head);
      const deleted = await send({ action: 'delete', method: 'DELETE', name });
      if (deleted.status !== 204 && deleted.status !== 200) throw toS3Failure('delete', deleted);
      return true;
    },
    async list({ prefix: begin = '', after, limit, signal }) {
      if (!isPlainText(begin)) return [];
      return listKeys(send, {
        ...{ prefix, begin, limit },
        ...(after !== undefined && { after }),
        ...(signal && { signal }),
      });
    },
  };
}

type About = Pick<StoredObject, 'contentType' | 'updatedAt'>;

async function putWhole(send: SendToS3, name: string, body: Uint8Array, about: About): Promise<void> {
  const response = await send({ action: 'put', method: 'PUT', name, body, headers: headersOf(about) });
  // Some servers answer 200 before they know, and say in the body what went wrong.
  if (response.status !== 200 || codeOfAnswer(response) !== '') throw toS3Failure('put', response);
}

// A header has plain characters only. The exact type is kept in the description of the object.
function headersOf({ contentType, updatedAt }: About): Readonly<Record<string, string>> {
  return {
    'content-type': /^[!-~]+\/[!-~ ]*[!-~]$/.test(contentType) ? contentType : 'application/octet-stream',
    'x-amz-meta-content-type': encodeURIComponent(wellFormed(contentType)),
    'x-amz-meta-updated-at': String(updatedAt),
  };
}

/** An object that another program has stored has the type and the time that S3 gives it. */
function toObject({ body, headers }: HttpResponse): StoredObject {
  const updatedAt = Number(headers['x-amz-meta-updated-at'] ?? Date.parse(headers['last-modified'] ?? ''));
  return {
    content: body,
    contentType: decode(headers['x-amz-meta-content-type']) ?? headers['content-type'] ?? 'application/octet-stream',
    updatedAt: Number.isFinite(updatedAt) ? updatedAt : 0,
  };
}

function decode(text: string | undefined): string | undefined {
  try {
    return text === undefined ? undefined : decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

interface Listing {
  /** The store's own prefix. */
  readonly prefix: string;
  readonly begin: string;
  readonly after?: string;
  readonly limit: number;
  readonly signal?: AbortSignal;
}

async function listKeys(send: SendToS3, { prefix, begin, after, limit, signal }: Listing): Promise<readonly string[]> {
  const keys: string[] = [];
  // No key has a NUL. Those after a text with one are those after the text before it.
  const start = after === undefined ? '' : wellFormed(after).split('\u0000', 1)[0];
  await readPages<string>(signal, async (token) => {
    const response = await send({
      action: 'list',
      method: 'GET',
      ...(signal && { signal }),
      query: {
        'list-type': '2',
        'encoding-type': 'url',
        prefix: toName(prefix, begin),
        'max-keys': String(Math.min(limit - keys.length, PAGE)),
        ...(token !== undefined ? { 'continuation-token': token } : start && { 'start-after': toName(prefix, start) }),
      },
    });
    const xml = new TextDecoder('utf-8', { ignoreBOM: true }).decode(response.body);
    if (response.status !== 200) throw toS3Failure('list', response);
    const isTruncated = readText(xml, 'IsTruncated');
    if (isTruncated === undefined) {
      throw new OrchestratorError(
        'NOT_CONFIGURED',
        's3Objects: the endpoint answers `list` with something else than S3',
      );
    }
    // Some servers ignore `encoding-type`.
    const isEncoded = readText(xml, 'EncodingType') === 'url';
    const names = readTexts(xml, 'Key');
    for (const name of names) {
      const key = toKey(prefix, isEncoded ? decodeURIComponent(name.replaceAll('+', ' ')) : name);
      if (key !== undefined) keys.push(key);
    }
    const isOver = isTruncated !== 'true' || keys.length >= limit;
    return { found: names.length, place: isOver ? undefined : readText(xml, 'NextContinuationToken') };
  });
  return keys;
}

function storeTooLarge(limit: number): OrchestratorError {
  return new OrchestratorError(
    'INVALID_REQUEST',
    `s3Objects: the object is larger than ${limit} bytes, \`maxObjectBytes\``,
  );
}
