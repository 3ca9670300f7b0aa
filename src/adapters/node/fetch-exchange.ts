/** Serves one Node request by a handler that has only `fetch` and `handle`: one that an app has wrapped, say. */

import { ByteBuffer } from '../../engine/byte-buffer.ts';
import type { HostInfo, HttpHandler, PlainAnswer } from '../../engine/ports/host.ts';
import type { NodeRequest, NodeResponse } from './node-types.ts';
import { isHost, type Target } from './read-target.ts';
import { refuseRequest } from './refuse-request.ts';
import { sendAnswer } from './send-answer.ts';

interface Exchange {
  readonly request: NodeRequest;
  readonly response: NodeResponse;
  readonly host: HostInfo;
  /** Undefined for one that no path can be read from. */
  readonly target: Target | undefined;
}

/** @returns whether the path was the handler's */
export async function fetchExchange(
  handler: HttpHandler,
  { request, response, host, target }: Exchange,
  ownPathsOnly: boolean,
): Promise<boolean> {
  const asked = target && toRequest(request, target);
  if (!asked) {
    sendAnswer(request, response, refusal(request, target));
    return true;
  }
  let answer: Response;
  if (ownPathsOnly) {
    const result = await handler.handle(asked, host);
    if (!result.matched) return false;
    answer = result.response;
  } else answer = await handler.fetch(asked, host);
  sendAnswer(request, response, {
    status: answer.status,
    headers: Object.fromEntries(answer.headers),
    body: answer.body ?? undefined,
  });
  return true;
}

function refusal({ method, url = '' }: NodeRequest, target: Target | undefined): PlainAnswer {
  if (target) return refuseRequest(400, `a request with the method ${method} and these headers can't be taken`);
  if (url.startsWith('/')) return refuseRequest(404, 'there is nothing at this path; look it up in the list of routes');
  return refuseRequest(400, 'the target of the request must be a path, such as `/api/v1/health`');
}

/** @returns undefined for what can't be a `Request`, TRACE say */
function toRequest(request: NodeRequest, target: Target): Request | undefined {
  try {
    return buildRequest(request, target);
  } catch {
    return undefined;
  }
}

// Only path and query of its URL are the request's own. The header `Host` is the sender's word, and takes no part in the path.
function buildRequest(request: NodeRequest, { path, query }: Target): Request {
  const headers = new Headers();
  for (let i = 0; i + 1 < request.rawHeaders.length; i += 2) {
    const name = request.rawHeaders[i] as string;
    if (!name.startsWith(':')) headers.append(name, request.rawHeaders[i + 1] as string);
  }
  const { method = 'GET' } = request;
  const { host = '' } = request.headers;
  const url = `http://${isHost(host) ? host : 'localhost'}${path}${query && '?'}${query}`;
  if (method === 'GET' || method === 'HEAD') return new Request(url, { method, headers });
  const body = toStream(request);
  // Node asks for `duplex` where a body streams; the DOM's types don't have it yet.
  return new Request(url, { method, headers, body, duplex: 'half' } as RequestInit);
}

// Not Readable.toWeb(): cancelling its stream destroys the connection, and with it the answer that says why. And nothing is
// taken before somebody reads: the request may turn out to be the host's.
function toStream(request: NodeRequest): ReadableStream<Uint8Array> {
  let stop: (() => void) | undefined;
  let isOver = false;
  const begin = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    let came = new ByteBuffer();
    let isDue = false;
    const hand = () => {
      const bytes = came.bytes();
      came = new ByteBuffer();
      isDue = false;
      if (bytes.byteLength > 0) controller.enqueue(new Uint8Array(bytes));
    };
    // Node hands on each chunk by itself, however small: those of one turn go on as one.
    const onData = (chunk: Uint8Array) => {
      came.append(chunk);
      if (isDue) return;
      isDue = true;
      setImmediate(() => {
        if (isOver) return;
        request.pause();
        hand();
      });
    };
    const onEnd = () => {
      hand();
      stop?.();
      controller.close();
    };
    const onBreak = (error?: Error) => {
      stop?.();
      controller.error(error ?? new Error('the connection was closed before the body was complete'));
    };
    stop = () => {
      isOver = true;
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
