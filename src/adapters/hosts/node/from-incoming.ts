/** A Node request as a plain request. */

import { ByteBuffer } from '../../../engine/base/bytes/byte-buffer.ts';
import { bodyWasRead, type PlainRequest, type TakeBytes } from '../../../engine/host/host.port.ts';
import type { NodeRequest } from './node-types.ts';
import { isHost, type Target } from './read-target.ts';

/** A class, because new closures for each request would cost more than the rest of the work here. */
export class IncomingRequest implements PlainRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly #request: NodeRequest;

  constructor(request: NodeRequest, { path, query }: Target) {
    this.#request = request;
    this.method = request.method ?? 'GET';
    this.path = path;
    this.query = query;
  }

  get mount(): string {
    const { baseUrl } = this.#request;
    return typeof baseUrl === 'string' ? baseUrl : '';
  }

  header(name: string): string | undefined {
    return readHeader(this.#request.rawHeaders, name);
  }

  withoutBody(): Request {
    return new Request(addressOf(this.#request, { path: this.mount + this.path, query: this.query }), {
      method: this.method,
      headers: headersOf(this.#request),
    });
  }

  get hasBody(): boolean {
    const length = this.header('content-length');
    if (length !== undefined) return length !== '0';
    // HTTP/2 does not announce a body.
    return this.#request.httpVersionMajor > 1 || this.header('transfer-encoding') !== undefined;
  }

  get isParsed(): boolean {
    return isParsed(this.#request);
  }

  body(take: TakeBytes): Uint8Array | undefined | Promise<Uint8Array | undefined> {
    const request = this.#request;
    if (!request.readableEnded) return collect(request, take);
    const bytes = bytesOfParsed(request);
    return take(bytes.byteLength) ? bytes : undefined;
  }
}

/** Whether a body parser has left a value, and neither the bytes nor their text. */
export function isParsed({ readableEnded, body }: NodeRequest): boolean {
  const isKept = typeof body === 'string' || body instanceof Uint8Array;
  return readableEnded && body !== undefined && body !== null && !isKept;
}

/** The URL of a request. Only the path and the query come from the target. `Host` is a header of the sender, and does not change the path. */
export function addressOf({ headers: { host = '' } }: NodeRequest, { path, query }: Target): string {
  return `http://${isHost(host) ? host : 'localhost'}${path}${query && '?'}${query}`;
}

export function headersOf({ rawHeaders }: NodeRequest): Headers {
  const headers = new Headers();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (!name.startsWith(':')) headers.append(name, rawHeaders[i + 1] as string);
  }
  return headers;
}

const EMPTY = new Uint8Array();

// Reads the raw headers: `headers` drops the second of two Authorization headers, and a request with two must be refused.
function readHeader(raw: readonly string[], name: string): string | undefined {
  let value: string | undefined;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const key = raw[i] as string;
    if (key.length !== name.length || (key !== name && key.toLowerCase() !== name)) continue;
    value = value === undefined ? raw[i + 1] : `${value}, ${raw[i + 1]}`;
  }
  return value;
}

/** A body parser has read the stream before: only its result remains. @throws if nothing remains of a body that was not empty */
export function bytesOfParsed({ body, headers }: NodeRequest): Uint8Array {
  if (body === undefined || body === null) {
    if (Number(headers['content-length'] ?? 0) > 0) throw bodyWasRead();
    return EMPTY;
  }
  if (body instanceof Uint8Array) return body;
  return new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body));
}

function collect(request: NodeRequest, take: TakeBytes): Promise<Uint8Array | undefined> {
  return new Promise((resolve, reject) => {
    // A close without an end: the connection was cut. The error is created only then: its stack costs as much as a small request.
    const onClose = () => {
      if (!request.readableEnded) reject(new Error('the connection was closed before the body was complete'));
    };
    // `close` was emitted before: there would be no event.
    if (request.destroyed) return onClose();
    const buffer = new ByteBuffer();
    const onData = (chunk: Uint8Array) => {
      if (take(chunk.byteLength)) {
        buffer.append(chunk);
        return;
      }
      request.off('data', onData);
      request.pause();
      resolve(undefined);
    };
    request.on('data', onData);
    request.on('end', () => resolve(buffer.bytes()));
    request.on('close', onClose);
  });
}
