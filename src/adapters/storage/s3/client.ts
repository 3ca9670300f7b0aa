/** Sends signed requests to S3. The optional package `aws4fetch` signs them. */

import { joinBytes } from '../../../engine/base/bytes/join-bytes.ts';
import { OrchestratorError } from '../../../engine/base/errors.ts';
import { packageFailure } from '../../../engine/base/package-failure.ts';
import type { HttpClient, HttpRequest, HttpResponse } from '../../../engine/host/http.port.ts';
import { isTooLarge, toLost } from './failure.ts';
import { encodeStrictly, toPath } from './object-names.ts';
import type { S3ObjectsOptions, S3Place } from './options.ts';

export interface S3Request {
  /** What the request is for, for messages. */
  readonly action: string;
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE';
  /** The name of the object. Absent for requests about the bucket. */
  readonly name?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** The largest answer. */
  readonly maxBytes?: number;
  readonly signal?: AbortSignal;
}

/** @returns the answer, whatever its status is. @throws OVERLOADED if there is none */
export type SendToS3 = (request: S3Request) => Promise<HttpResponse>;

/** The largest answer that is not an object. */
const ANSWER_BYTES = 2 ** 24;
const ERROR_BYTES = 2 ** 14;

export function createClient(options: S3ObjectsOptions, { base, maxObjectBytes, timeoutMs }: S3Place): SendToS3 {
  const { accessKeyId, secretAccessKey, sessionToken, region, http = platformHttp } = options;
  // The keys of a day, which the package derives from the secret.
  const cache = new Map<string, ArrayBuffer>();
  return async ({ action, method, name, query = {}, headers = {}, body, maxBytes, signal }) => {
    const { AwsV4Signer } = await loadSigner();
    const pairs = Object.entries(query).map(([key, value]) => `${encodeStrictly(key)}=${encodeStrictly(value)}`);
    const path = name === undefined ? '' : `/${toPath(name)}`;
    const url = `${base}${path}${pairs.length > 0 ? `?${pairs.join('&')}` : ''}`;
    const content = body ?? new Uint8Array();
    const signer = new AwsV4Signer({
      ...{ method, url, region, service: 's3', accessKeyId, secretAccessKey, cache },
      ...(sessionToken !== undefined && { sessionToken }),
      headers: { ...headers, 'x-amz-content-sha256': await sha256(content) },
    });
    const signed = await signer.sign();
    const sent = Object.fromEntries(signed.headers as Headers);
    try {
      return await http.send({
        ...{ method, url, headers: sent, timeoutMs },
        ...(body !== undefined && { body }),
        // An answer that is not an object, such as an error, may be larger than a small limit.
        maxResponseBytes: Math.max(maxBytes ?? maxObjectBytes, maxBytes === undefined ? ANSWER_BYTES : ERROR_BYTES),
        ...(signal && { signal }),
      });
    } catch (thrown) {
      if (signal?.aborted) throw signal.reason;
      if (isTooLarge(thrown)) throw thrown;
      throw toLost(action, thrown);
    }
  };
}

export async function loadSigner() {
  return await import('aws4fetch').catch((cause: unknown) => {
    throw packageFailure(cause, { who: 's3Objects', name: 'aws4fetch' });
  });
}

async function sha256(bytes: Uint8Array): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** The platform's `fetch`. The host names the server, so that any address is allowed. */
const platformHttp: HttpClient = {
  async send({ url, method, headers, body, timeoutMs = 60_000, maxResponseBytes = 0, signal }: HttpRequest) {
    const late = AbortSignal.timeout(timeoutMs);
    const response = await fetch(url, {
      ...{ method, redirect: 'manual', signal: signal ? AbortSignal.any([signal, late]) : late },
      ...(headers && { headers }),
      ...(body !== undefined && { body: body as Uint8Array<ArrayBuffer> }),
    });
    return {
      status: response.status,
      headers: Object.fromEntries(response.headers),
      body: await readBody(response, maxResponseBytes),
    };
  },
};

async function readBody({ body }: Response, maxBytes: number): Promise<Uint8Array> {
  if (!body) return new Uint8Array();
  const reader = body.getReader();
  const parts: Uint8Array[] = [];
  for (let length = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return joinBytes(parts);
    length += value.length;
    if (length > maxBytes) {
      await reader.cancel().catch(() => undefined);
      const message = `the answer is larger than ${maxBytes} bytes`;
      throw new OrchestratorError('AGENT_FAILED', message, { details: { reason: 'too-large', limit: maxBytes } });
    }
    parts.push(value);
  }
}
