/** Serves a Node request with a handler that has only `fetch` and `handle`, for example a wrapped one. */

import { ByteBuffer } from '../../../engine/base/bytes/byte-buffer.ts';
import { type HostInfo, type HttpHandler, IS_PARSED, type PlainAnswer } from '../../../engine/host/host.port.ts';
import { addressOf, bytesOfParsed, headersOf, isParsed } from './from-incoming.ts';
import type { NodeRequest, NodeResponse } from './node-types.ts';
import type { Target } from './read-target.ts';
import { sendAnswer } from './send-answer.ts';

interface Exchange {
  readonly request: NodeRequest;
  readonly response: NodeResponse;
  readonly host: HostInfo;
  /** Undefined if the target of the request has no valid path. */
  readonly target: Target | undefined;
}

/** @returns whether the path was the handler's */
export async function fetchExchange(
  handler: HttpHandler,
  { request, response, host, target }: Exchange,
  ownPathsOnly: boolean,
): Promise<boolean> {
  const webRequest = target && toRequest(request, target);
  if (!webRequest) {
    sendAnswer(request, response, refusal(request, target));
    return true;
  }
  let answer: Response;
  if (ownPathsOnly) {
    const result = await handler.handle(webRequest, host);
    if (!result.matched) return false;
    answer = result.response;
  } else answer = await handler.fetch(webRequest, host);
  sendAnswer(request, response, {
    status: answer.status,
    headers: Object.fromEntries(answer.headers),
    body: answer.body ?? undefined,
  });
  return true;
}

function refusal({ method, url = '' }: NodeRequest, target: Target | undefined): PlainAnswer {
  if (target) return refuseRequest(400, `a request with the method ${method} and these headers is not supported`);
  if (url.startsWith('/')) return refuseRequest(404, 'there is nothing at this path; look it up in the list of routes');
  return refuseRequest(400, 'the target of the request must be a path, such as `/api/v1/health`');
}

/** An answer with the headers that every answer of a handler has. */
function refuseRequest(status: 400 | 404, message: string): PlainAnswer {
  const code = status === 404 ? 'NOT_FOUND' : 'INVALID_REQUEST';
  return {
    status,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'x-request-id': crypto.randomUUID(),
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      'content-security-policy': 'sandbox',
    },
    body: JSON.stringify({ error: { code, message } }),
  };
}

/** @returns undefined if it can't be a `Request`, for example with the method TRACE */
function toRequest(request: NodeRequest, target: Target): Request | undefined {
  try {
    return buildRequest(request, target);
  } catch {
    return undefined;
  }
}

function buildRequest(request: NodeRequest, target: Target): Request {
  const headers = headersOf(request);
  const { method = 'GET' } = request;
  const url = addressOf(request, target);
  if (method === 'GET' || method === 'HEAD') return new Request(url, { method, headers });
  const body = request.readableEnded ? streamOfParsed(request) : toStream(request);
  // Node requires `duplex` for a body that is a stream. The types of the DOM don't have it yet.
  const webRequest = new Request(url, { method, headers, body, duplex: 'half' } as RequestInit);
  return Object.defineProperty(webRequest, IS_PARSED, { value: isParsed(request) });
}

function streamOfParsed(request: NodeRequest): ReadableStream<Uint8Array> {
  const start = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    const bytes = bytesOfParsed(request);
    if (bytes.byteLength > 0) controller.enqueue(bytes);
    controller.close();
  };
  // A handler that does not read the body gets no error.
  return new ReadableStream({ pull: start }, { highWaterMark: 0 });
}

// Not Readable.toWeb(): cancelling its stream destroys the connection, and the answer that says why. And nothing is read before the
// handler reads, because the host may serve the request.
function toStream(request: NodeRequest): ReadableStream<Uint8Array> {
  let stop: (() => void) | undefined;
  let isEnded = false;
  const begin = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    let received = new ByteBuffer();
    let isDue = false;
    const flush = () => {
      const bytes = received.bytes();
      received = new ByteBuffer();
      isDue = false;
      if (bytes.byteLength > 0) controller.enqueue(new Uint8Array(bytes));
    };
    // Node emits each chunk alone, however small it is. The chunks of one turn are enqueued together.
    const onData = (chunk: Uint8Array) => {
      received.append(chunk);
      if (isDue) return;
      isDue = true;
      setImmediate(() => {
        if (isEnded) return;
        request.pause();
        flush();
      });
    };
    const onEnd = () => {
      flush();
      stop?.();
      controller.close();
    };
    const onBreak = (error?: Error) => {
      stop?.();
      controller.error(error ?? new Error('the connection was closed before the body was complete'));
    };
    stop = () => {
      isEnded = true;
      request.off('data', onData).off('end', onEnd).off('error', onBreak).off('close', onBreak);
    };
    request.on('data', onData).on('end', onEnd).on('error', onBreak).on('close', onBreak);
  };
  return new ReadableStream(
    {
      pull(controller) {
        if (!stop) begin(controller);
        request.resume();
      },
      cancel() {
        stop?.();
        request.pause();
      },
    },
    { highWaterMark: 0 },
  );
}
