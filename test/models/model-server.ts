/** A local model server for tests: it answers each request from a script, and records what it received. */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One answer: JSON, text with a content type, or the pieces of a body, each in a packet of its own. */
export interface ScriptedAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly text?: string;
  readonly pieces?: readonly (string | Uint8Array)[];
  /** Breaks the connection after the pieces. */
  readonly breaks?: boolean;
  /** Sends nothing more, and does not end. */
  readonly hangs?: boolean;
}

export interface ReceivedRequest {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  // biome-ignore lint/suspicious/noExplicitAny: the wire format, which the tests assert
  readonly body: any;
}

export interface ModelServer {
  readonly url: string;
  readonly requests: readonly ReceivedRequest[];
  close(): Promise<void>;
}

/** @param answers - one for each request, in order; the last one repeats */
export async function startModelServer(answers: readonly ScriptedAnswer[]): Promise<ModelServer> {
  const requests: ReceivedRequest[] = [];
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    requests.push({
      path: request.url ?? '',
      headers: request.headers,
      body: JSON.parse(Buffer.concat(parts).toString()),
    });
    const answer = answers[Math.min(requests.length, answers.length) - 1] as ScriptedAnswer;
    await send(answer, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function send(
  { status = 200, headers, json, text, pieces, breaks, hangs }: ScriptedAnswer,
  response: ServerResponse,
) {
  const type = pieces ? 'text/event-stream; charset=utf-8' : json === undefined ? 'text/plain' : 'application/json';
  response.writeHead(status, { 'content-type': type, ...headers });
  for (const piece of pieces ?? []) {
    response.write(piece);
    // A turn of the event loop sends the piece as a packet of its own.
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (hangs) return;
  if (breaks) response.destroy();
  else response.end(json === undefined ? text : JSON.stringify(json));
}

/** A whole answer with a text. */
export function completion(content: string, more: object = {}): ScriptedAnswer {
  return {
    json: {
      model: 'small-1',
      choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 11, completion_tokens: 7 },
      ...more,
    },
  };
}

/** The text of a stream with one event for each delta, and the usage at its end. */
export function streamOf(deltas: readonly object[], finishReason = 'stop'): string {
  const events = [
    ...deltas.map((delta) => ({ model: 'small-1', choices: [{ index: 0, delta, finish_reason: null }], usage: null })),
    { model: 'small-1', choices: [{ index: 0, delta: {}, finish_reason: finishReason }] },
    { model: 'small-1', choices: [], usage: { prompt_tokens: 11, completion_tokens: 7 } },
  ];
  return `${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')}data: [DONE]\n\n`;
}
