/** A tool server, or the token server of one, on 127.0.0.1. It records its requests. */

import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fetchHttp } from '../../src/adapters/http/fetch-http.ts';

export interface ReceivedRequest {
  readonly method: string;
  /** The path and the query, as they were sent. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: string;
}

/** What the server answers: a value is sent as JSON with the status 200. */
export type Answer = (request: ReceivedRequest, response: ServerResponse) => unknown;

export interface LocalServer {
  readonly url: string;
  readonly requests: readonly ReceivedRequest[];
  answer: Answer;
  close(): Promise<void>;
}

export async function startServer(): Promise<LocalServer> {
  const requests: ReceivedRequest[] = [];
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', async () => {
      const { method = '', url: target = '', headers } = incoming;
      const request = {
        method,
        target,
        headers: headers as ReceivedRequest['headers'],
        body: Buffer.concat(chunks).toString(),
      };
      requests.push(request);
      const value = await local.answer(request, response);
      if (value !== undefined) response.setHeader('content-type', 'application/json').end(JSON.stringify(value));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const local: LocalServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    answer: () => ({ content: 'ok', isError: false }),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return local;
}

/** Answers with a status, headers and a text. */
export function reply(status: number, body = '', headers: Readonly<Record<string, string>> = {}): Answer {
  return (_request, response) => void response.writeHead(status, headers).end(body);
}

/** Reaches local servers. */
export const localHttp = () => fetchHttp({ allow: ['127.0.0.1'] });
