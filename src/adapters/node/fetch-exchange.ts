/** Serves one Node request by a handler that has only `fetch` and `handle`: one that an app has wrapped, say. */

import { ByteBuffer } from '../../engine/byte-buffer.ts';
import type { HostInfo, HttpHandler } from '../../engine/ports/host.ts';
import type { NodeRequest, NodeResponse } from './node-types.ts';
import { sendAnswer } from './send-answer.ts';

/** @returns whether the path was the handler's */
export async function fetchExchange(
  handler: HttpHandler,
  request: NodeRequest,
  response: NodeResponse,
  host: HostInfo,
  ownPathsOnly: boolean,
): Promise<boolean> {
  const asked = toRequest(request);
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

function toRequest(request: NodeRequest): Request {
  const headers = new Headers();
  for (let i = 0; i + 1 < request.rawHeaders.length; i += 2) {
    const name = request.rawHeaders[i] as string;
    if (!name.startsWith(':')) headers.append(name, request.rawHeaders[i + 1] as string);
  }
  const { method = 'GET', url = '/' } = request;
  const target = new URL(url.startsWith('/') ? `http://${request.headers.host ?? 'localhost'}${url}` : url);
  if (method === 'GET' || method === 'HEAD') return new Request(target, { method, headers });
  const body = toStream(request);
  // Node asks for `duplex` where a body streams; the DOM's types don't have it yet.
  return new Request(target, { method, headers, body, duplex: 'half' } as RequestInit);
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
