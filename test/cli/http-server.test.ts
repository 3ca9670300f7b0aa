/** The server of `ensemble serve` on real sockets: clients that do not read, pipelined requests, and bodies that are not read. */

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { toNodeListener } from '../../src/adapters/hosts/node/to-node-listener.ts';
import { startHttpServer } from '../../src/cli/service/http-server.ts';
import { createService } from '../http-api/service.ts';

const MIB = 1024 * 1024;

interface Limits {
  readonly stallMs?: number;
  readonly keepAliveMs?: number;
}

async function start(listener: (request: IncomingMessage, response: ServerResponse) => void, limits: Limits = {}) {
  const log: string[] = [];
  const server = await startHttpServer({
    host: '127.0.0.1',
    port: 0,
    listener,
    log: (line) => void log.push(line),
    limits,
  });
  onTestFinished(async () => {
    server.stop();
    await server.drain({ openMs: 0, graceMs: 0 });
  });
  const port = Number(new URL(server.url).port);
  const open = async (): Promise<Socket> => {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    onTestFinished(() => void socket.destroy());
    await once(socket, 'connect');
    return socket;
  };
  return { open, log, url: server.url };
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
const large = (_request: IncomingMessage, response: ServerResponse) => void response.end('a'.repeat(32 * MIB));

/** The text that a socket receives until it matches or the connection is closed. */
async function readUntil(socket: Socket, pattern: RegExp): Promise<string> {
  let text = '';
  for await (const chunk of socket) {
    text += chunk;
    if (pattern.test(text)) break;
  }
  return text;
}

describe('a client', () => {
  it('that reads nothing of its response is cut off after a time', async () => {
    const { open, log } = await start(large, { stallMs: 300 });
    for (let i = 0; i < 3; i++) {
      const socket = await open();
      socket.pause();
      socket.write(get(`/silent/${i}`));
    }
    await vi.waitFor(() => expect(log).toHaveLength(3), { timeout: 20_000 });
    for (const line of log) expect(line).toMatch(/^GET \/silent\/\d broken off \d+ms$/);
  });

  it('that reads nothing of a stream is cut off too', async () => {
    const cancelled = vi.fn();
    const chunk = new Uint8Array(MIB);
    const body = () =>
      new ReadableStream<Uint8Array>({ pull: (to) => to.enqueue(chunk), cancel: cancelled }, { highWaterMark: 0 });
    const listener = toNodeListener({
      fetch: async () => new Response(body()),
      handle: async () => ({ matched: false }),
    });
    const { open } = await start(listener, { stallMs: 300 });
    const socket = await open();
    socket.pause();
    socket.write(get('/'));
    await vi.waitFor(() => expect(cancelled).toHaveBeenCalled(), { timeout: 20_000 });
  });

  it('that reads slowly gets its whole response, however long it takes', async () => {
    const { open } = await start(large, { stallMs: 2_000 });
    const socket = await open();
    socket.write(get('/slow'));
    let taken = 0;
    for await (const chunk of socket) {
      taken += (chunk as Buffer).byteLength;
      if (taken > 32 * MIB) break;
      await wait(10);
    }
    expect(taken).toBeGreaterThan(32 * MIB);
  }, 120_000);

  it('is not cut off before its response begins', async () => {
    const { url } = await start((_request, response) => void setTimeout(() => response.end('late'), 1_500), {
      stallMs: 100,
    });
    expect(await (await fetch(url)).text()).toBe('late');
  });

  it('that keeps its connection open between two requests is disconnected after a time', async () => {
    const { open } = await start((_request, response) => void response.end('ok'), { stallMs: 100, keepAliveMs: 200 });
    const socket = await open();
    socket.write(get('/'));
    expect(await readUntil(socket, /never/)).toMatch(/^HTTP\/1\.1 200 OK/);
  }, 20_000);
});

describe('pipelined requests on one connection', () => {
  it('are handled one after the other: none begins before the previous response is read', async () => {
    const began: string[] = [];
    const { open } = await start((request, response) => {
      began.push(request.url ?? '');
      large(request, response);
    });
    const socket = await open();
    socket.pause();
    const paths = Array.from({ length: 5 }, (_, i) => `/${i}`);
    socket.write(paths.map(get).join(''));
    await vi.waitFor(() => expect(began).toEqual(['/0']), { timeout: 20_000 });
    await wait(200);
    expect(began).toEqual(['/0']);
    socket.resume();
    await vi.waitFor(() => expect(began).toEqual(paths), { timeout: 20_000 });
  });

  it('all get a response, in their order', async () => {
    const { open } = await start((request, response) => {
      setTimeout(() => response.end(`<${request.url}>`), request.url === '/0' ? 100 : 0);
    });
    const socket = await open();
    socket.write(Array.from({ length: 50 }, (_, i) => get(`/${i}`)).join(''));
    const text = await readUntil(socket, /<\/49>/);
    expect([...text.matchAll(/<\/(\d+)>/g)].map(([, number]) => Number(number))).toEqual(
      Array.from({ length: 50 }, (_, i) => i),
    );
  });

  it('are cut off when more than a hundred wait', async () => {
    let began = 0;
    const { open } = await start(() => {
      began += 1;
    });
    const socket = await open();
    socket.write(get('/').repeat(1_000));
    await once(socket, 'close');
    expect(began).toBe(1);
  });

  it('are dropped when the client disconnects', async () => {
    const began: string[] = [];
    const { open, url } = await start((request, response) => {
      began.push(request.url ?? '');
      if (request.url !== '/0') response.end('ok');
    });
    const socket = await open();
    socket.write(get('/0') + get('/1'));
    await vi.waitFor(() => expect(began).toEqual(['/0']), { timeout: 20_000 });
    socket.destroy();
    await (await fetch(`${url}/2`)).text();
    expect(began).toEqual(['/0', '/2']);
  });
});

describe('a request', () => {
  const head = (fields: string) =>
    `POST /api/v1/execute/ensemble/echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${fields}\r\n`;

  it('with `Expect: 100-continue` is refused before its body, or gets 100 Continue when the caller is known', async () => {
    const service = createService();
    const { authorization } = await service.bearer('admin');
    const { open } = await start(toNodeListener(service.handler));
    const expects = 'Expect: 100-continue\r\nContent-Length: 2\r\n';
    const stranger = await open();
    stranger.write(head(expects));
    expect(await readUntil(stranger, /UNAUTHORIZED/)).toMatch(/^HTTP\/1\.1 401 /);
    const known = await open();
    known.write(head(`Authorization: ${authorization}\r\n${expects}`));
    const [received] = await once(known, 'data');
    expect(String(received)).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    known.write('{}');
    expect(await readUntil(known, /completed/)).toMatch(/^HTTP\/1\.1 200 OK/);
  });

  it('with two `Host` headers is 400, and does not reach the handler', async () => {
    const listener = vi.fn();
    const { open } = await start(listener);
    const socket = await open();
    socket.write('GET /api/v1/health HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n');
    const response = await readUntil(socket, /INVALID_REQUEST/);
    expect(response).toMatch(/^HTTP\/1\.1 400 /);
    for (const header of ['x-request-id: ', 'x-content-type-options: nosniff', 'cache-control: no-store'])
      expect(response).toContain(header);
    expect(listener).not.toHaveBeenCalled();
  });
});
