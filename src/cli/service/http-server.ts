/** The server of `ensemble serve`: listens, logs a line for each request, and finishes open responses before it stops. */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type ErrorCode, messageOf } from '../../engine/base/errors.ts';
import { CliError } from '../terminal/cli-error.ts';
import { cutText, oneLine } from '../terminal/text.ts';

export interface HttpServer {
  /** Such as `http://127.0.0.1:3000`, as a caller on this machine writes it. */
  readonly url: string;
  /** Accepts no further connections and requests. */
  stop(): void;
  /**
   * Resolves when every open response has ended. After `openMs`, responses that are not complete (event streams) are cut off.
   * After `graceMs`, so are complete responses that the client has not read.
   */
  drain(times: { readonly openMs: number; readonly graceMs: number }): Promise<void>;
}

interface ServerOptions {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  readonly listener: (request: IncomingMessage, response: ServerResponse) => void;
  /** Receives one line for each request, without a line end. */
  readonly log: (line: string) => void;
  /** Shorter times, for tests. */
  readonly limits?: { readonly stallMs?: number; readonly keepAliveMs?: number };
}

/** A client that reads nothing of its response for this time is disconnected. */
const STALL_MS = 30_000;
/** How long a connection stays open between two requests. */
const KEEP_ALIVE_MS = 5_000;
/** How many requests may wait on one connection for the responses before theirs. */
const MAX_WAITING = 100;

/** @throws CliError when it can't listen on the host and port */
export async function startHttpServer({ host, port, listener, log, limits = {} }: ServerOptions): Promise<HttpServer> {
  const open = new Set<ServerResponse>();
  /** Connections between two requests. */
  const idle = new Set<Socket>();
  /** For each connection with an open response, the requests after the current one. */
  const queues = new Map<Socket, (() => void)[]>();
  const stalled = new WeakSet<Socket>();
  let stopping = false;
  let onIdle: (() => void) | undefined;
  const work = (request: IncomingMessage, response: ServerResponse) => {
    const began = performance.now();
    const { socket } = request;
    open.add(response);
    response.on('close', () => {
      open.delete(response);
      if (open.size === 0) onIdle?.();
      const status = response.writableFinished && !stalled.has(socket) ? response.statusCode : 'broken off';
      const ms = Math.round(performance.now() - began);
      log(`${request.method ?? '-'} ${pathOf(request.url ?? '')} ${status} ${ms}ms`);
      const next = socket.destroyed ? undefined : queues.get(socket)?.shift();
      if (next) return next();
      queues.delete(socket);
      if (!socket.destroyed) idle.add(socket);
    });
    if (stopping) answerRefusal(response, 503, 'OVERLOADED', 'the service is stopping; try again');
    else if (hasTwoHosts(request))
      answerRefusal(response, 400, 'INVALID_REQUEST', 'the header `Host` must occur only once');
    else listener(request, response);
  };
  // One after the other: Node would run all pipelined requests at once, and buffer their responses until the first one is read.
  const accept = (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    const queue = queues.get(socket);
    if (queue) {
      if (queue.push(() => work(request, response)) > MAX_WAITING) socket.destroy();
      return;
    }
    queues.set(socket, []);
    idle.delete(socket);
    work(request, response);
  };
  const server = createServer(accept);
  // Sends 100 Continue when the handler reads the body.
  server.on('checkContinue', (request, response) => {
    request.once('resume', () => {
      if (!response.headersSent) response.writeContinue();
    });
    accept(request, response);
  });
  server.keepAliveTimeout = limits.keepAliveMs ?? KEEP_ALIVE_MS;
  // Called after a time without any data on a connection. A caller that waits for an execution may be silent for longer.
  server.setTimeout(limits.stallMs ?? STALL_MS, (socket: Socket) => {
    if (socket.writableLength > 0) stalled.add(socket);
    if (socket.writableLength > 0 || idle.has(socket)) socket.destroy();
  });
  server.on('connection', (socket) =>
    socket.once('close', () => {
      idle.delete(socket);
      queues.delete(socket);
    }),
  );
  // `close` calls this. Node's own version considers a connection idle while the client still reads a written response.
  server.closeIdleConnections = () => {
    for (const socket of idle) socket.destroy();
  };
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(new CliError(explain(error, host, port))));
    server.listen(port, host, resolve);
  });
  // An error such as too many open files must not end the server.
  server.on('error', (error) => log(`the server reported an error: ${oneLine(messageOf(error))}`));
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

/** Two `Host` headers name two hosts for one request: a proxy may have used the other one. */
function hasTwoHosts({ rawHeaders }: IncomingMessage): boolean {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts > 1;
}

function answerRefusal(response: ServerResponse, status: number, code: ErrorCode, message: string): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'x-request-id': crypto.randomUUID(),
    connection: 'close',
    ...(code === 'OVERLOADED' && { 'retry-after': '1' }),
  });
  response.end(JSON.stringify({ error: { code, message } }));
}

/** The path, without the query and without the token of a signal link: both may be secret. */
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
      return `port ${port} of ${host} is in use; name another port with --port, or 0 for any free port`;
    case 'EACCES':
      return `this user may not listen on port ${port}; name a port from 1024 on with --port`;
    case 'EADDRNOTAVAIL':
      return `${host} is not an address of this machine; name another with --host, such as 127.0.0.1, or 0.0.0.0 for all`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `there is no host ${host}; name an address with --host, such as 127.0.0.1`;
    default:
      return `can't listen on ${host}, port ${port}: ${messageOf(error)}`;
  }
}
