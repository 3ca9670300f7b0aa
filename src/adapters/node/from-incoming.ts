/** A Node request as a plain one. */

import { ByteBuffer } from '../../engine/byte-buffer.ts';
import type { PlainRequest, TakeBytes } from '../../engine/ports/host.ts';
import type { NodeRequest } from './node-types.ts';
import type { Target } from './read-target.ts';

/** A class, because a fresh set of closures a request would cost more than the request's own work here. */
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

  get hasBody(): boolean {
    const length = this.header('content-length');
    if (length !== undefined) return length !== '0';
    // HTTP/2 frames a body without saying so ahead.
    return this.#request.httpVersionMajor > 1 || this.header('transfer-encoding') !== undefined;
  }

  body(take: TakeBytes): Uint8Array | undefined | Promise<Uint8Array | undefined> {
    const request = this.#request;
    if (!request.readableEnded) return collect(request, take);
    const parsed = parsedBody(request.body);
    return take(parsed.byteLength) ? parsed : undefined;
  }
}

const EMPTY = new Uint8Array();

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

// A body parser in front has read the stream to its end: what it made of it is all that there is.
function parsedBody(body: unknown): Uint8Array {
  if (body === undefined || body === null) return EMPTY;
  if (body instanceof Uint8Array) return body;
  return new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body));
}

function collect(request: NodeRequest, take: TakeBytes): Promise<Uint8Array | undefined> {
  return new Promise((resolve, reject) => {
    // Without an end before it, a connection that was cut. The error is made only then: its stack costs as much as a small request.
    const onClose = () => {
      if (!request.readableEnded) reject(new Error('the connection was closed before the body was complete'));
    };
    // Its `close` has been: nobody would call back.
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
