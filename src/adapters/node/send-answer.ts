/** Sends an answer over a Node response: no faster than the peer takes it, and no longer than the peer is there. */

import type { PlainAnswer } from '../../engine/ports/host.ts';
import type { NodeRequest, NodeResponse } from './node-types.ts';

/** What of a body that nobody wants is still taken, so that its sender gets to read the answer. */
const DISCARD_BYTES = 8 * 1024 * 1024;
const DISCARD_MS = 10_000;

export function sendAnswer(request: NodeRequest, response: NodeResponse, { status, headers, body }: PlainAnswer): void {
  if (response.destroyed || response.headersSent) {
    if (body instanceof ReadableStream) void body.cancel();
    return;
  }
  if (!request.complete) discardRest(request);
  if (body instanceof ReadableStream) {
    response.writeHead(status, headers);
    void sendStream(response, body);
    return;
  }
  if (body === undefined) {
    response.writeHead(status, headers);
    response.end();
    return;
  }
  const length = Buffer.byteLength(body);
  headers['content-length'] = String(length);
  response.writeHead(status, headers);
  // Where every character is one byte, Node copies the text instead of encoding it.
  response.end(body, length === body.length ? 'latin1' : 'utf8');
}

// Node would read on for minutes; a sender that goes on past this is cut off.
function discardRest(request: NodeRequest): void {
  let left = DISCARD_BYTES;
  request.on('data', (chunk: Uint8Array) => {
    left -= chunk.byteLength;
    if (left < 0) request.destroy();
  });
  const timer = setTimeout(() => request.destroy(), DISCARD_MS);
  request.on('close', () => clearTimeout(timer));
  // A sender that breaks off has its answer or wants none.
  request.on('error', () => {});
  request.resume();
}

/** The stream is cancelled when the peer goes away; what it tells about goes on. */
async function sendStream(response: NodeResponse, body: ReadableStream<Uint8Array>): Promise<void> {
  const reader = body.getReader();
  const gone = new Promise<void>((resolve) => {
    response.once('close', () => {
      void reader.cancel().catch(() => {});
      resolve();
    });
  });
  // The headers go out now: the first event may be long in coming.
  response.flushHeaders();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || response.destroyed) break;
      if (!response.write(value))
        await Promise.race([gone, new Promise<void>((resolve) => response.once('drain', resolve))]);
    }
    response.end();
  } catch {
    // The answer can't be mended any more: a broken connection tells the peer that it is not whole.
    response.destroy();
  }
}
