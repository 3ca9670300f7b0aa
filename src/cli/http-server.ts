/** `ensemble serve`'s own server: listens, logs a line a request, and stops without cutting off what it has begun. */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { messageOf } from '../engine/errors.ts';
import { CliError } from './cli-error.ts';
import { cutText, oneLine } from './text.ts';

export interface HttpServer {
  /** Such as `http://127.0.0.1:3000`, as a caller on this machine writes it. */
  readonly url: string;
  /** Takes no connection and no request any more. */
  stop(): void;
  /**
   * Resolves when every answer at hand is given, or broken off: after `graceMs`, and what has no end yet (a stream of events)
   * after `openMs` already.
   */
  drain(times: { readonly openMs: number; readonly graceMs: number }): Promise<void>;
}

interface ServerOptions {
  readonly host: string;
  /** 0 for any that is free. */
  readonly port: number;
  readonly listener: (request: IncomingMessage, response: ServerResponse) => void;
  /** Takes one line a request, without its end. */
  readonly log: (line: string) => void;
}

/** @throws CliError when it can't listen there */
export async function startHttpServer({ host, port, listener, log }: ServerOptions): Promise<HttpServer> {
  const open = new Set<ServerResponse>();
  /** Connections between two requests. */
  const idle = new Set<Socket>();
  let stopping = false;
  let onIdle: (() => void) | undefined;
  const server = createServer((request, response) => {
    const began = performance.now();
    const { socket } = request;
    open.add(response);
    idle.delete(socket);
    response.on('close', () => {
      open.delete(response);
      if (!socket.destroyed) idle.add(socket);
      if (open.size === 0) onIdle?.();
      const status = response.writableFinished ? response.statusCode : 'broken off';
      const ms = Math.round(performance.now() - began);
      log(`${request.method ?? '-'} ${pathOf(request.url ?? '')} ${status} ${ms}ms`);
    });
    if (stopping) refuse(response);
    else listener(request, response);
  });
  server.on('connection', (socket) => socket.once('close', () => idle.delete(socket)));
  // Node's own, which `close` calls, takes a connection for idle whose answer is written and still on its way to the reader.
  server.closeIdleConnections = () => {
    for (const socket of idle) socket.destroy();
  };
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(new CliError(explain(error, host, port))));
    server.listen(port, host, resolve);
  });
  // A connection that can't be taken (too many files, say) ends no server.
  server.on('error', (error) => log(`the server had an error: ${oneLine(messageOf(error))}`));
  return {
    url: urlOf(server.address() as AddressInfo),
    stop() {
      for (const response of open) if (!response.headersSent) response.setHeader('connection', 'close');
      if (!stopping) server.close();
      stopping = true;
    },
    async drain({ openMs, graceMs }) {
      if (open.size > 0) {
        const timers: NodeJS.Timeout[] = [];
        await new Promise<void>((resolve) => {
          onIdle = resolve;
          const breakOff = () => {
            for (const response of open) if (!response.writableEnded) response.destroy();
          };
          timers.push(setTimeout(breakOff, openMs), setTimeout(resolve, graceMs));
        });
        for (const timer of timers) clearTimeout(timer);
      }
      server.closeAllConnections();
    },
  };
}

// On a connection that was open before: its request comes to a process that is about to end.
function refuse(response: ServerResponse): void {
  const body = JSON.stringify({ error: { code: 'OVERLOADED', message: 'the service is stopping; try again' } });
  response.writeHead(503, {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'x-request-id': crypto.randomUUID(),
    connection: 'close',
    'retry-after': '1',
  });
  response.end(body);
}

/** The path alone, without the token of a signal link: that, and what stands behind `?`, may be secret. */
function pathOf(target: string): string {
  let path = target;
  if (!target.startsWith('/')) path = URL.canParse(target) ? new URL(target).pathname : '*';
  [path = ''] = path.split(/[?#]/, 1);
  const link = path.includes('/executions/') ? -1 : path.lastIndexOf('/signals/');
  if (link >= 0) path = `${path.slice(0, link)}/signals/***`;
  return cutText(oneLine(path), 200);
}

function urlOf({ address, family, port }: AddressInfo): string {
  if (address === '0.0.0.0' || address === '::') return `http://localhost:${port}`;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}

function explain(error: NodeJS.ErrnoException, host: string, port: number): string {
  switch (error.code) {
    case 'EADDRINUSE':
      return `port ${port} of ${host} is in use; name another with --port, or 0 for any that is free`;
    case 'EACCES':
      return `this user may not listen on port ${port}; name one from 1024 on with --port`;
    case 'EADDRNOTAVAIL':
      return `${host} is no address of this machine; name another with --host, such as 127.0.0.1, or 0.0.0.0 for all`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `there is no host ${host}; name an address with --host, such as 127.0.0.1`;
    default:
      return `can't listen on ${host}, port ${port}: ${messageOf(error)}`;
  }
}
