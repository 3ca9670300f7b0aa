/** A Node request as a plain one. */

import type { PlainRequest } from '../../engine/ports/host.ts';
import type { NodeRequest } from './node-types.ts';
import { readTarget } from './read-target.ts';

export function fromIncoming(request: NodeRequest): PlainRequest {
  const { path, query } = readTarget(request.url ?? '/');
  return {
    method: request.method ?? 'GET',
    path,
    query,
    mount: typeof request.baseUrl === 'string' ? request.baseUrl : '',
    header: (name) => readHeader(request.rawHeaders, name),
    get hasBody() {
      const length = readHeader(request.rawHeaders, 'content-length');
      if (length !== undefined) return length !== '0';
      // HTTP/2 frames a body without saying so ahead.
      return request.httpVersionMajor > 1 || readHeader(request.rawHeaders, 'transfer-encoding') !== undefined;
    },
    body: (maxBytes) => readBody(request, maxBytes),
  };
}

// As sent, not from `headers`: that one drops the second of two Authorization headers, and two must be seen (A94).
function readHeader(raw: readonly string[], name: string): string | undefined {
  let value: string | undefined;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const key = raw[i] as string;
    if (key.length !== name.length || (key !== name && key.toLowerCase() !== name)) continue;
    value = value === undefined ? raw[i + 1] : `${value}, ${raw[i + 1]}`;
  }
  return value;
}

function readBody(request: NodeRequest, maxBytes: number): Promise<Uint8Array | undefined> {
  const parsed = parsedBody(request);
  if (parsed) return Promise.resolve(parsed.byteLength > maxBytes ? undefined : parsed);
  if (Number(readHeader(request.rawHeaders, 'content-length') ?? 0) > maxBytes) return Promise.resolve(undefined);
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    let size = 0;
    const forget = () => {
      request.off('data', onData);
      request.off('end', onEnd);
      request.off('error', onBreak);
      request.off('close', onBreak);
    };
    const onData = (chunk: Uint8Array) => {
      size += chunk.byteLength;
      if (size <= maxBytes) {
        chunks.push(chunk);
        return;
      }
      forget();
      request.pause();
      resolve(undefined);
    };
    const onEnd = () => {
      forget();
      resolve(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, size));
    };
    const onBreak = (error?: Error) => {
      forget();
      reject(error ?? new Error('the connection was closed before the body was complete'));
    };
    request.on('data', onData);
    request.on('end', onEnd);
    request.on('error', onBreak);
    request.on('close', onBreak);
  });
}

// A body parser in front has read the stream to its end: what it made of it is all that there is.
function parsedBody({ readableEnded, destroyed, body }: NodeRequest): Uint8Array | undefined {
  if (!readableEnded && !(destroyed && body !== undefined)) return undefined;
  if (body === undefined || body === null) return new Uint8Array();
  if (body instanceof Uint8Array) return body;
  return new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body));
}
