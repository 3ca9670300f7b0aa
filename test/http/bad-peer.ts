/** A peer on 127.0.0.1 with correct and broken routes. It counts requests and open connections by route. */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';

export interface BadPeer {
  readonly baseUrl: string;
  readonly port: number;
  /** The number of requests for this path, without query. */
  count(path: string): number;
  /** The number of open connections whose last request was for this path. */
  open(path: string): number;
  /** Resolves when no connection whose last request was for this path is open. */
  closed(path: string): Promise<void>;
  close(): Promise<void>;
}

const SQUEEZED = Buffer.from('squeezed');
/** Compressed, it has more than one block, so that a decoder has something to return of its first half. */
const LONG = Buffer.from(Array.from({ length: 40_000 }, (_, i) => `${i} `).join(''));
const halfOf = (bytes: Buffer) => bytes.subarray(0, bytes.length >> 1);
const TEN_MIB_OF_ZEROS = 10 * 1024 * 1024;

export async function startBadPeer(): Promise<BadPeer> {
  const counts = new Map<string, number>();
  const lastPath = new Map<Socket, string>();
  const waiting = new Set<() => void>();
  const open = (path: string) => [...lastPath.values()].filter((value) => value === path).length;
  let bomb: Buffer | undefined;

  const server = createServer((request, response) => {
    const path = (request.url ?? '/').split('?')[0] as string;
    counts.set(path, (counts.get(path) ?? 0) + 1);
    lastPath.set(request.socket, path);
    response.on('error', () => {});
    const [, route = '', argument = '', rest] = path.split('/');
    const counted = rest === undefined ? `/${argument}` : `/${argument}/${rest}`;
    if (route === 'count') return void response.end(String(counts.get(counted) ?? 0));
    if (route === 'open') return void response.end(String(open(`/${argument}`)));
    if (route === 'bomb') {
      // gzip members may be concatenated: twenty times the same 10 MiB of zeros are 200 MiB.
      bomb ??= Buffer.concat(Array(20).fill(gzipSync(Buffer.alloc(TEN_MIB_OF_ZEROS))));
      return void response.setHeader('content-encoding', 'gzip').end(bomb);
    }
    const answer = Object.hasOwn(ROUTES, route) ? ROUTES[route] : undefined;
    if (answer === undefined) response.writeHead(404).end('no such route');
    else answer(request, response, argument);
  });
  server.on('connection', (socket) => {
    socket.on('error', () => {});
    socket.on('close', () => {
      lastPath.delete(socket);
      for (const check of waiting) check();
    });
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;

  return {
    baseUrl: `http://127.0.0.1:${port}`,
    port,
    count: (path) => counts.get(path) ?? 0,
    open,
    closed: (path) =>
      new Promise<void>((resolve) => {
        const check = () => {
          if (open(path) > 0) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      }),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

type Route = (request: IncomingMessage, response: ServerResponse, argument: string) => void;

const ROUTES: Readonly<Record<string, Route>> = {
  echo(request, response) {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method, url, headers } = request;
      response.setHeader('x-one', '1').setHeader('x-many', ['a', 'b']).setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ method, url, headers, body: Buffer.concat(chunks).toString('base64') }));
    });
  },
  bytes: (_, response) => void response.end(Buffer.from(Uint8Array.from({ length: 256 }, (_unused, i) => i))),
  status(_, response, argument) {
    const bodiless = argument === '204' || argument === '304';
    response.writeHead(Number(argument)).end(bodiless ? undefined : `status ${argument}`);
  },
  redirect: (_, response) => void response.writeHead(302, { location: '/redirected' }).end('moved'),
  'redirect-loop': (_, response) => void response.writeHead(302, { location: '/redirect-loop' }).end(),
  'redirect-metadata': (_, response) => void response.writeHead(307, { location: 'http://169.254.169.254/' }).end(),
  redirected: (_, response) => void response.end('followed'),
  gzip: (_, response) => void response.setHeader('content-encoding', 'gzip').end(gzipSync(SQUEEZED)),
  deflate: (_, response) => void response.setHeader('content-encoding', 'deflate').end(deflateSync(SQUEEZED)),
  'raw-deflate': (_, response) => void response.setHeader('content-encoding', 'deflate').end(deflateRawSync(SQUEEZED)),
  br: (_, response) => void response.setHeader('content-encoding', 'br').end(brotliCompressSync(SQUEEZED)),
  'empty-gzip': (_, response) => void response.setHeader('content-encoding', 'gzip').end(),
  'broken-gzip': (_, response) => void response.setHeader('content-encoding', 'gzip').end('this is no gzip at all'),
  'two-gzips': (_, response) =>
    void response.setHeader('content-encoding', 'gzip').end(Buffer.concat([gzipSync('squee'), gzipSync('zed')])),
  'cut-gzip': (_, response) => void response.setHeader('content-encoding', 'gzip').end(halfOf(gzipSync(LONG))),
  'cut-deflate': (_, response) => void response.setHeader('content-encoding', 'deflate').end(halfOf(deflateSync(LONG))),
  'cut-br': (_, response) => void response.setHeader('content-encoding', 'br').end(halfOf(brotliCompressSync(LONG))),
  'cut-chunked'(_, response) {
    response.write('the first part');
    response.socket?.end();
  },
  zstd: (_, response) => void response.setHeader('content-encoding', 'zstd').end('?'),
  encodings(_, response) {
    let body = SQUEEZED;
    for (let i = 0; i < 8; i++) body = gzipSync(body);
    response.setHeader('content-encoding', Array(8).fill('gzip').join(', ')).end(body);
  },
  /** A number of chunks of one byte each, as fast as the peer reads them. */
  chunks(_, response, argument) {
    const { socket } = response;
    const piece = '1\r\nx\r\n';
    let left = Number(argument);
    const pour = () => {
      while (left > 0 && !socket?.destroyed) {
        const count = Math.min(left, 10_000);
        left -= count;
        if (!socket?.write(piece.repeat(count))) return void socket?.once('drain', pour);
      }
      socket?.end('0\r\n\r\n');
    };
    socket?.write('HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n');
    pour();
  },
  never() {},
  kept: (_, response) => void response.end('kept'),
  end: (request) => void request.socket.end(),
  trickle(request, response) {
    response.write('.');
    const timer = setInterval(() => response.write('.'), 10);
    request.socket.on('close', () => clearInterval(timer));
  },
  infinite(request, response) {
    const chunk = Buffer.alloc(64 * 1024, 'x');
    const pour = () => {
      while (!request.socket.destroyed && response.write(chunk));
    };
    response.on('drain', pour);
    pour();
  },
  'infinite-1xx'(request, response) {
    const timer = setInterval(() => response.writeEarlyHints({ link: '</a>; rel=preload' }), 5);
    request.socket.on('close', () => clearInterval(timer));
  },
  reset: (request) => void request.socket.resetAndDestroy(),
  'reset-mid-body'(request, response) {
    response.writeHead(200, { 'content-length': '1000' });
    response.write('0123456789', () => setImmediate(() => request.socket.resetAndDestroy()));
  },
  short: (request) => void request.socket.end('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n0123456789'),
  long: (request) => void request.socket.end('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n0123456789'),
  garbage: (request) => void request.socket.end('\0\0\0 this is not the protocol you meant\r\n\r\n'),
  'big-header': (request) => void request.socket.write(`HTTP/1.1 200 OK\r\nx-big: ${'a'.repeat(1024 * 1024)}\r\n\r\n`),
  'late-answer'(_, response) {
    setTimeout(() => response.end('late'), 40);
  },
};
