/** Converts a `Request` to a plain request, and a plain response to a `Response`, for hosts of the Fetch API. */

import { ByteBuffer } from '../engine/base/byte-buffer.ts';
import type { PlainAnswer, PlainRequest, TakeBytes } from '../engine/ports/host.ts';

/** A `Request` as a plain request. Its body is not touched before `body()` is called. A class: an object of closures costs 7 us more. */
export class FetchedRequest implements PlainRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly mount = '';
  readonly #request: Request;
  readonly #headers: Headers;

  constructor(request: Request) {
    const { url } = request;
    // A `Request` has its URL in the URL parser's form: scheme, `://`, authority, path.
    const start = url.indexOf('/', url.indexOf('://') + 3);
    let end = url.indexOf('#', start);
    if (end < 0) end = url.length;
    const mark = url.indexOf('?', start);
    const hasQuery = mark >= 0 && mark < end;
    this.#request = request;
    this.#headers = request.headers;
    this.method = request.method;
    this.path = url.slice(start, hasQuery ? mark : end);
    this.query = hasQuery ? url.slice(mark + 1, end) : '';
  }

  get hasBody(): boolean {
    return this.#request.body !== null;
  }

  header(name: string): string | undefined {
    return this.#headers.get(name) ?? undefined;
  }

  withoutBody(): Request {
    return new Request(this.#request.url, { method: this.method, headers: this.#headers });
  }

  body(take: TakeBytes): Promise<Uint8Array | undefined> {
    return readBody(this.#request.body, take);
  }
}

async function readBody(body: Request['body'], take: TakeBytes): Promise<Uint8Array | undefined> {
  const buffer = new ByteBuffer();
  if (!body) return buffer.bytes();
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return buffer.bytes();
    if (!take(value.byteLength)) {
      // The host decides what the sender sees of the cancellation.
      void reader.cancel().catch(() => {});
      return undefined;
    }
    buffer.append(value);
  }
}

export function toResponse({ status, headers, body }: PlainAnswer): Response {
  return new Response(body ?? null, { status, headers });
}
