/** The memory of bodies while they arrive: chunks are not kept separately, and all bodies together have a budget. */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { toNodeListener } from '../../src/adapters/hosts/node/to-node-listener.ts';
import type { HttpHandler } from '../../src/engine/host/host.port.ts';
import { createApiHandler } from '../../src/http-handlers/create-api-handler.ts';
import { type Ask, HOSTS, serve } from './hosts.ts';
import { createService, post, readResponse, type Service } from './service.ts';

const ECHO = '/api/v1/execute/ensemble/echo';
const SLOW = '/api/v1/execute/ensemble/slow';
const MIB = 1024 * 1024;
const encode = (text: string) => new TextEncoder().encode(text);

/** JSON of an input, this many bytes long. */
function ofSize(bytes: number): string {
  const empty = JSON.stringify({ input: { text: '' } });
  return JSON.stringify({ input: { text: 'a'.repeat(bytes - empty.length) } });
}

/** The bytes in use after a garbage collection. */
function bytesInUse(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** A body whose chunks the test sends. */
function slowBody() {
  let to: ReadableStreamDefaultController<Uint8Array> | undefined;
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      to = controller;
    },
  });
  return {
    stream,
    send: (text: string) => to?.enqueue(encode(text)),
    end: () => to?.close(),
    breakOff: () => to?.error(new Error('gone')),
  };
}

describe('a body of 1 MiB in chunks of one byte needs only a few times its size', () => {
  const TEXT = ofSize(MIB);
  // Measured before the last byte arrives. An array for each chunk would take 100 MB and more.
  const MAX_BYTES = 16 * MIB;

  it('by fetch', async () => {
    const { handler, bearer } = createService();
    const bytes = encode(TEXT);
    let at = 0;
    let sendLast: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      sendLast = resolve;
    });
    const body = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          if (at === MIB - 1) await held;
          controller.enqueue(bytes.slice(at, at + 1));
          at += 1;
          if (at === MIB) controller.close();
        },
      },
      { highWaterMark: 0 },
    );
    const headers = { ...(await bearer('admin')), 'content-type': 'application/json' };
    const before = bytesInUse();
    const init = { method: 'POST', headers, body, duplex: 'half' } as RequestInit;
    const response = handler.fetch(new Request(`http://service.test${ECHO}`, init));
    await vi.waitFor(() => expect(at).toBe(MIB - 1), { timeout: 50_000, interval: 20 });
    expect(bytesInUse() - before).toBeLessThan(MAX_BYTES);
    sendLast();
    expect(await readResponse(response)).toMatchObject({ status: 200, body: { status: 'completed' } });
  });

  it.each([
    ['by a Node server', (handler: HttpHandler) => handler],
    [
      'by a Node server, wrapped',
      ({ fetch, handle }: HttpHandler): HttpHandler => ({ fetch: (...given) => fetch(...given), handle }),
    ],
  ])('%s', async (_way, as) => {
    const { handler, bearer } = createService();
    const { authorization } = await bearer('admin');
    const { port } = new URL(await serve(toNodeListener(as(handler))));
    const socket = connect(Number(port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    await once(socket, 'connect');
    const before = bytesInUse();
    const head = `POST ${ECHO} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\n`;
    socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n`);
    for (let from = 0; from < MIB - 1; from += 8192) {
      let wire = '';
      for (const byte of TEXT.slice(from, Math.min(from + 8192, MIB - 1))) wire += `1\r\n${byte}\r\n`;
      if (!socket.write(wire)) await once(socket, 'drain');
    }
    await wait(200);
    expect(bytesInUse() - before).toBeLessThan(MAX_BYTES);
    socket.write(`1\r\n${TEXT.at(-1)}\r\n0\r\n\r\n`);
    expect(await firstLine(socket)).toBe('HTTP/1.1 200 OK');
  });
});

async function firstLine(socket: Socket): Promise<string | undefined> {
  const [chunk] = (await once(socket, 'data')) as [Buffer];
  return String(chunk).split('\r\n', 1)[0];
}

describe.each(HOSTS)('the budget of bodies in flight by $host', ({ open }) => {
  let service: Service;
  let ask: Ask;
  let headers: Record<string, string>;
  beforeEach(async () => {
    service = createService({ maxBodyBytes: 1_000, maxInFlightBytes: 2_500 });
    ask = await open(service.handler);
    headers = { ...(await service.bearer('admin')), 'content-type': 'application/json' };
  });
  const send = (body: BodyInit, path = ECHO) => readResponse(ask(path, { method: 'POST', headers, body }));
  const OVERLOADED = { status: 503, body: { error: { code: 'OVERLOADED' } } };
  /** Sends the first 900 bytes of `count` bodies, which the budget then holds. */
  const begin = async (count: number) => {
    const bodies = Array.from({ length: count }, slowBody);
    const responses = bodies.map(({ stream, send: give }) => {
      give(' '.repeat(900));
      return send(stream).catch(() => undefined);
    });
    // By the time of these responses, the bytes above have arrived.
    for (let i = 0; i < 20; i++) await ask('/api/v1/health');
    return { bodies, responses };
  };

  it('a request beyond the budget is 503 with Retry-After and runs nothing; the budget is free again when a request has ended', async () => {
    const { bodies, responses } = await begin(2);
    const refused = await send(ofSize(800));
    expect(refused).toMatchObject(OVERLOADED);
    expect(refused.headers.get('retry-after')).toBe('1');
    expect((await service.orchestrator.executions.list()).executions).toEqual([]);
    expect((await send(ofSize(200))).status).toBe(200);
    bodies[0]?.send('{}');
    bodies[0]?.end();
    expect(await responses[0]).toMatchObject({ status: 200 });
    expect((await send(ofSize(800))).status).toBe(200);
    bodies[1]?.end();
    expect(await responses[1]).toMatchObject({ status: 400 });
    const again = await Promise.all([1, 2, 3, 4].map(() => send(ofSize(200))));
    expect(again.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  });

  it('a body that breaks off and a body that is refused free their part of the budget', async () => {
    for (let i = 0; i < 3; i++) {
      const { bodies, responses } = await begin(2);
      for (const { breakOff } of bodies) breakOff();
      await Promise.all(responses);
      // Over a socket, the server sees the break a moment later.
      await vi.waitFor(async () => expect((await send(' '.repeat(990))).status).toBe(400), { timeout: 20_000 });
      expect((await send(ofSize(1_001))).status).toBe(413);
      expect((await send('[]'.padEnd(900))).status).toBe(400);
    }
    const both = await Promise.all([send(ofSize(1_000)), send(ofSize(1_000))]);
    expect(both.map(({ status }) => status)).toEqual([200, 200]);
  });

  it('an accepted execution holds nothing of the budget, however long it runs', async () => {
    const responses: Promise<{ readonly status: number }>[] = [];
    for (let i = 0; i < 3; i++) {
      const begun = service.begun();
      responses.push(send(ofSize(1_000), SLOW));
      await begun;
      await ask('/api/v1/health');
    }
    expect((await send(ofSize(1_000))).status).toBe(200);
    service.release();
    expect((await Promise.all(responses)).map(({ status }) => status)).toEqual([200, 200, 200]);
  });
});

describe('an announced length', () => {
  it('counts before the body arrives; a body that does not fit is refused unread', async () => {
    const { handler, bearer } = createService({ maxBodyBytes: 1_000, maxInFlightBytes: 1_500 });
    const { authorization } = await bearer('admin');
    const { port } = new URL(await serve(toNodeListener(handler)));
    const head = `POST ${ECHO} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\n`;
    const call = async () => {
      const socket = connect(Number(port), '127.0.0.1');
      onTestFinished(() => void socket.destroy());
      socket.write(`${head}Content-Length: 1000\r\n\r\n`);
      await once(socket, 'connect');
      return socket;
    };
    const first = await call();
    const firstResponse = firstLine(first);
    for (let i = 0; i < 20; i++) await fetch(`http://127.0.0.1:${port}/api/v1/health`);
    expect(await firstLine(await call())).toBe('HTTP/1.1 503 Service Unavailable');
    first.write(ofSize(1_000));
    expect(await firstResponse).toBe('HTTP/1.1 200 OK');
    const third = await call();
    const last = firstLine(third);
    third.write(ofSize(1_000));
    expect(await last).toBe('HTTP/1.1 200 OK');
  });
});

describe('the memory of a value, in addition to its text,', () => {
  it('counts; one body alone is accepted, however much it needs', async () => {
    const { handler, bearer } = createService({ maxInFlightBytes: 1_000 });
    const headers = await bearer('admin');
    const call = (text: string) => handler.fetch(new Request(`http://service.test${ECHO}`, post(text, headers)));
    const listOf = (count: number) => `{"input":{"a":[${'{},'.repeat(count)}{}]}}`;
    expect((await call(listOf(50))).status).toBe(200);
    const list = listOf(8);
    const statuses = (await Promise.all([list, list].map(call))).map(({ status }) => status);
    expect(statuses.sort()).toEqual([200, 503]);
    const texts = [1, 2].map(() => JSON.stringify({ input: { a: 'x'.repeat(60) } }));
    expect((await Promise.all(texts.map(call))).map(({ status }) => status)).toEqual([200, 200]);
  });
});

describe('the budget is an option of a handler', () => {
  const { orchestrator } = createService();

  it.each([0, -1, 1.5, Number.NaN, '64' as unknown as number])('%s bytes is refused', (maxInFlightBytes) => {
    expect(() => createApiHandler(orchestrator, { maxInFlightBytes })).toThrow(TypeError);
  });

  it('by default it is 64 MiB', async () => {
    const { handler, bearer } = createService();
    const headers = await bearer('admin');
    const call = (text: string) => handler.fetch(new Request(`http://service.test${ECHO}`, post(text, headers)));
    // Each is 1 MiB of text, and more than twenty times that as a value: two of them fit.
    const lists = `{"input":{"a":[${'{},'.repeat(330_000)}{}]}}`;
    const responses = await Promise.all([lists, lists, lists, lists, lists].map(call));
    expect(responses.filter(({ status }) => status === 503)).toHaveLength(3);
    expect((await call(lists)).status).not.toBe(503);
  });
});
