/** A local server that answers model calls with what a test prepares, and keeps what it received. */

import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads the body's fields and compares them
  readonly body: any;
}

/** Writes one answer. */
export type Reply = (response: ServerResponse) => void;

export interface ModelServer {
  readonly url: string;
  readonly received: readonly Received[];
  /** Resolves when a client has closed its connection before the answer ended. */
  readonly hungUp: Promise<void>;
  next(...replies: readonly Reply[]): void;
  close(): Promise<void>;
}

export async function modelServer(): Promise<ModelServer> {
  const received: Received[] = [];
  const replies: Reply[] = [];
  let onHangUp = () => {};
  const hungUp = new Promise<void>((resolve) => {
    onHangUp = resolve;
  });
  const server = createServer((request, response) => {
    let text = '';
    response.on('close', () => {
      if (!response.writableFinished) onHangUp();
    });
    request.setEncoding('utf8');
    request.on('data', (part) => {
      text += part;
    });
    request.on('end', () => {
      received.push({ path: request.url ?? '', headers: request.headers, body: JSON.parse(text) });
      const reply = replies.shift();
      if (reply) reply(response);
      else response.writeHead(500).end('the test prepared no answer');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    hungUp,
    next: (...more) => void replies.push(...more),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export const json =
  (body: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Reply =>
  (response) =>
    void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));

export const text =
  (body: string, contentType: string, status = 200): Reply =>
  (response) =>
    void response.writeHead(status, { 'content-type': contentType }).end(body);

/** Named events, as Anthropic and the Responses API of OpenAI send them. The connection breaks after them if `breaks`. */
export const events =
  (list: readonly Readonly<Record<string, unknown>>[], breaks = false): Reply =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const event of list) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    end(response, breaks);
  };

/** Events without a name and a last line `[DONE]`, as chat completions of OpenAI send them. */
export const chunks =
  (list: readonly unknown[], options: { readonly breaks?: boolean; readonly done?: boolean } = {}): Reply =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const chunk of list) response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    if (options.done !== false && options.breaks !== true) response.write('data: [DONE]\n\n');
    end(response, options.breaks === true);
  };

// The parts that were written must leave before the connection breaks.
function end(response: ServerResponse, breaks: boolean): void {
  if (!breaks) response.end();
  else response.write(': \n\n', () => setTimeout(() => response.destroy(), 20));
}
