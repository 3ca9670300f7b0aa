/** Sends an answer with a Node response, at the speed of the peer, until the peer disconnects. */

import { type PlainAnswer, STALL_MS } from '../../../engine/host/host.port.ts';
import type { NodeRequest, NodeResponse } from './node-types.ts';

/** How much of an unused body is still read, so that its sender can read the answer. */
const DISCARD_BYTES = 8 * 1024 * 1024;
const DISCARD_MS = 10_000;

export function sendAnswer(request: NodeRequest, response: NodeResponse, answer: PlainAnswer): void {
  const { status, headers, body, sent } = answer;
  if (response.destroyed || response.headersSent) {
    if (body instanceof ReadableStream) void body.cancel();
    sent?.();
    return;
  }
  if (!request.complete) discardRest(request);
  if (sent) response.once('close', sent);
  if (sent || body instanceof ReadableStream) cutWhenStalled(request, response);
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
  // If every character is one byte, Node copies the text instead of encoding it.
  response.end(body, length === body.length ? 'latin1' : 'utf8');
}

/** Disconnects a peer that takes nothing of what is sent. A server with a time limit of its own does this itself. */
function cutWhenStalled({ socket }: NodeRequest, response: NodeResponse): void {
  const { server } = socket as { readonly server?: { readonly timeout?: number } };
  if (server?.timeout) return;
  response.setTimeout(STALL_MS, () => {
    if (socket.writableLength > 0) response.destroy();
  });
}

// Node would read for minutes. A sender that exceeds these limits is disconnected.
function discardRest(request: NodeRequest): void {
  let left = DISCARD_BYTES;
  request.on('data', (chunk: Uint8Array) => {
    left -= chunk.byteLength;
    if (left < 0) request.destroy();
  });
  const timer = setTimeout(() => request.destroy(), DISCARD_MS);
  request.on('close', () => clearTimeout(timer));
  // A sender that disconnects has its answer or does not need one.
  request.on('error', () => {});
  request.resume();
}

/** Cancels the stream if the peer disconnects. The execution that the stream reports continues. */
async function sendStream(response: NodeResponse, body: ReadableStream<Uint8Array>): Promise<void> {
  const reader = body.getReader();
  const gone = new Promise<void>((resolve) => {
    response.once('close', () => {
      void reader.cancel().catch(() => {});
      resolve();
    });
  });
  // Sends the headers now: the first event may take a long time.
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
    // Too late for an error answer: a broken connection shows the peer that the answer is not complete.
    response.destroy();
  }
}
