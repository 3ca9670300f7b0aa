/** Converts a `Request` to a plain request, and a plain response to a `Response`, for hosts of the Fetch API. */

import { ByteBuffer } from '../../engine/base/bytes/byte-buffer.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import {
  bodyWasRead,
  IS_PARSED,
  type PlainAnswer,
  type PlainRequest,
  STALL_MS,
  type TakeBytes,
} from '../../engine/host/host.port.ts';

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

  get isParsed(): boolean {
    return (this.#request as { readonly [IS_PARSED]?: boolean })[IS_PARSED] === true;
  }

  body(take: TakeBytes): Promise<Uint8Array | undefined> {
    if (this.#request.bodyUsed) throw bodyWasRead();
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

const PIECE = 64 * 1024;

export function toResponse({ status, headers, body, sent }: PlainAnswer, setTimer: Clock['setTimer']): Response {
  const stream = sent && typeof body === 'string' ? inPieces(body, sent, setTimer) : body;
  return new Response(stream ?? null, { status, headers });
}

/** A text as a stream, so that it is known when the reader has taken it. A reader that takes nothing for 30 seconds is cut off. */
function inPieces(body: string, sent: () => void, setTimer: Clock['setTimer']): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let at = 0;
  let cancelTimer: () => void = () => {};
  const end = () => {
    cancelTimer();
    sent();
  };
  return new ReadableStream(
    {
      pull(controller) {
        cancelTimer();
        // A pair of surrogates is one character.
        let next = Math.min(at + PIECE, body.length);
        if (next < body.length && (body.charCodeAt(next - 1) & 0xfc00) === 0xd800) next += 1;
        controller.enqueue(encoder.encode(body.slice(at, next)));
        at = next;
        if (at === body.length) {
          controller.close();
          end();
          return;
        }
        cancelTimer = setTimer(STALL_MS, () => {
          controller.error(new Error('the reader has taken nothing for 30 seconds'));
          end();
        });
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  );
}
