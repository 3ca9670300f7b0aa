/** What bodies cost while they come: no chunk is kept by itself, and all of them together have a budget. */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { toNodeListener } from '../../src/adapters/node/to-node-listener.ts';
import type { HttpHandler } from '../../src/engine/ports/host.ts';
import { createApiHandler } from '../../src/http-handlers/create-api-handler.ts';
import { type Ask, DOORS, serve } from './doors.ts';
import { createService, post, type Service, told } from './service.ts';

const ECHO = '/api/v1/execute/ensemble/echo';
const SLOW = '/api/v1/execute/ensemble/slow';
const MIB = 1024 * 1024;
const encode = (text: string) => new TextEncoder().encode(text);

/** JSON of an input, this many bytes long. */
function ofSize(bytes: number): string {
  const empty = JSON.stringify({ input: { text: '' } });
  return JSON.stringify({ input: { text: 'a'.repeat(bytes - empty.length) } });
}

/** Bytes that are in use after a collection of garbage. */
function bytesInUse(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** A body that comes when the test says so. */
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

describe('a body of 1 MiB in chunks of one byte is kept in a few times its size', () => {
  const TEXT = ofSize(MIB);
  // What came of it is looked at while the last byte is still to come; an array for each chunk takes 100 MB and more.
  const MOST = 16 * MIB;

  it('by fetch', async () => {
    const { handler, bearer } = createService();
    const bytes = encode(TEXT);
    let at = 0;
    let goOn: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
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
    const answer = handler.fetch(new Request(`http://service.test${ECHO}`, init));
    await vi.waitFor(() => expect(at).toBe(MIB - 1), { timeout: 50_000, interval: 20 });
    expect(bytesInUse() - before).toBeLessThan(MOST);
    goOn();
    expect(await told(answer)).toMatchObject({ status: 200, body: { status: 'completed' } });
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
    expect(bytesInUse() - before).toBeLessThan(MOST);
    socket.write(`1\r\n${TEXT.at(-1)}\r\n0\r\n\r\n`);
    expect(await firstLine(socket)).toBe('HTTP/1.1 200 OK');
  });
});

async function firstLine(socket: Socket): Promise<string | undefined> {
  const [chunk] = (await once(socket, 'data')) as [Buffer];
  return String(chunk).split('\r\n', 1)[0];
}

describe.each(DOORS)('the budget of bodies in flight by $door', ({ open }) => {
  let service: Service;
  let ask: Ask;
  let headers: Record<string, string>;
  beforeEach(async () => {
    service = createService({ maxBodyBytes: 1_000, maxInFlightBytes: 2_500 });
    ask = await open(service.handler);
    headers = { ...(await service.bearer('admin')), 'content-type': 'application/json' };
  });
  const send = (body: BodyInit, path = ECHO) => told(ask(path, { method: 'POST', headers, body }));
  const OVERLOADED = { status: 503, body: { error: { code: 'OVERLOADED' } } };
  /** Bodies that have begun and hold 900 bytes each, and then one answer to a small one. */
  const begin = async (count: number) => {
    const bodies = Array.from({ length: count }, slowBody);
    const answers = bodies.map(({ stream, send: give }) => {
      give(' '.repeat(900));
      return send(stream).catch(() => undefined);
    });
    // Health is answered later than what was sent before it has come.
    for (let i = 0; i < 20; i++) await ask('/api/v1/health');
    return { bodies, answers };
  };

  it('past it a request is 503 with Retry-After, and runs nothing; there is room again when one has ended', async () => {
    const { bodies, answers } = await begin(2);
    const refused = await send(ofSize(800));
    expect(refused).toMatchObject(OVERLOADED);
    expect(refused.headers.get('retry-after')).toBe('1');
    expect((await service.orchestrator.executions.list()).executions).toEqual([]);
    expect((await send(ofSize(200))).status).toBe(200);
    bodies[0]?.send('{}');
    bodies[0]?.end();
    expect(await answers[0]).toMatchObject({ status: 200 });
    expect((await send(ofSize(800))).status).toBe(200);
    bodies[1]?.end();
    expect(await answers[1]).toMatchObject({ status: 400 });
    const again = await Promise.all([1, 2, 3, 4].map(() => send(ofSize(200))));
    expect(again.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  });

  it('a body that breaks off, and one that is refused, give their room back', async () => {
    for (let i = 0; i < 3; i++) {
      const { bodies, answers } = await begin(2);
      for (const { breakOff } of bodies) breakOff();
      await Promise.all(answers);
      // Over a socket the server hears of it a moment later.
      await vi.waitFor(async () => expect((await send(' '.repeat(990))).status).toBe(400));
      expect((await send(ofSize(1_001))).status).toBe(413);
      expect((await send('[]'.padEnd(900))).status).toBe(400);
    }
    const both = await Promise.all([send(ofSize(1_000)), send(ofSize(1_000))]);
    expect(both.map(({ status }) => status)).toEqual([200, 200]);
  });

  it('a run that was accepted holds no room, however long it takes', async () => {
    const answers: Promise<{ readonly status: number }>[] = [];
    for (let i = 0; i < 3; i++) {
      const begun = service.begun();
      answers.push(send(ofSize(1_000), SLOW));
      await begun;
      await ask('/api/v1/health');
    }
    expect((await send(ofSize(1_000))).status).toBe(200);
    service.release();
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 200]);
  });
});

describe('a length that is announced', () => {
  it('counts before the body comes, and who does not fit is told so unread', async () => {
    const { handler, bearer } = createService({ maxBodyBytes: 1_000, maxInFlightBytes: 1_500 });
    const { authorization } = await bearer('admin');
    const { port } = new URL(await serve(toNodeListener(handler)));
    const head = `POST ${ECHO} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\n`;
    const knock = async () => {
      const socket = connect(Number(port), '127.0.0.1');
      onTestFinished(() => void socket.destroy());
      socket.write(`${head}Content-Length: 1000\r\n\r\n`);
      await once(socket, 'connect');
      return socket;
    };
    const first = await knock();
    const answered = firstLine(first);
    for (let i = 0; i < 20; i++) await fetch(`http://127.0.0.1:${port}/api/v1/health`);
    expect(await firstLine(await knock())).toBe('HTTP/1.1 503 Service Unavailable');
    first.write(ofSize(1_000));
    expect(await answered).toBe('HTTP/1.1 200 OK');
    const third = await knock();
    const last = firstLine(third);
    third.write(ofSize(1_000));
    expect(await last).toBe('HTTP/1.1 200 OK');
  });
});

describe('what a value takes up beside its text', () => {
  it('counts, and one body alone is let in whatever it takes up', async () => {
    const { handler, bearer } = createService({ maxInFlightBytes: 1_000 });
    const headers = await bearer('admin');
    const knock = (text: string) => handler.fetch(new Request(`http://service.test${ECHO}`, post(text, headers)));
    const listOf = (count: number) => `{"input":{"a":[${'{},'.repeat(count)}{}]}}`;
    expect((await knock(listOf(50))).status).toBe(200);
    const list = listOf(8);
    const statuses = (await Promise.all([list, list].map(knock))).map(({ status }) => status);
    expect(statuses.sort()).toEqual([200, 503]);
    const texts = [1, 2].map(() => JSON.stringify({ input: { a: 'x'.repeat(60) } }));
    expect((await Promise.all(texts.map(knock))).map(({ status }) => status)).toEqual([200, 200]);
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
    const knock = (text: string) => handler.fetch(new Request(`http://service.test${ECHO}`, post(text, headers)));
    // Each is 1 MiB of text, and more than twenty times that as a value: there is room for two.
    const lists = `{"input":{"a":[${'{},'.repeat(330_000)}{}]}}`;
    const answers = await Promise.all([lists, lists, lists, lists, lists].map(knock));
    expect(answers.filter(({ status }) => status === 503)).toHaveLength(3);
    expect((await knock(lists)).status).not.toBe(503);
  });
});
