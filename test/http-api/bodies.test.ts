/** Bodies: their size, their type, and what they may contain. */

import { once } from 'node:events';
import { connect } from 'node:net';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { toNodeListener } from '../../src/adapters/hosts/node/to-node-listener.ts';
import { type Ask, HOSTS, serve } from './hosts.ts';
import { createService, post, readResponse, type Service } from './service.ts';

const ECHO = '/api/v1/execute/ensemble/echo';
const MIB = 1024 * 1024;

/** A stream that counts the chunks that are read from it. */
function countingBody(chunk: Uint8Array, chunks: number) {
  let taken = 0;
  const stream = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (taken === chunks) controller.close();
        else {
          taken += 1;
          controller.enqueue(chunk);
        }
      },
    },
    { highWaterMark: 0 },
  );
  return { stream, taken: () => taken };
}

function nested(depth: number): string {
  return `{"async":true,"input":${'{"a":'.repeat(depth - 1)}{}${'}'.repeat(depth - 1)}}`;
}

describe.each(HOSTS)('bodies by $host', ({ host, open }) => {
  let service: Service;
  let ask: Ask;
  let headers: { authorization: string };
  beforeEach(async () => {
    service = createService();
    ask = await open(service.handler);
    headers = await service.bearer('admin');
  });
  const send = (body: BodyInit | undefined, extra: Record<string, string> = {}, path = ECHO) =>
    readResponse(
      ask(path, { method: 'POST', headers: { 'content-type': 'application/json', ...headers, ...extra }, body }),
    );
  const ofSize = (bytes: number) => {
    const empty = JSON.stringify({ input: { text: '' } });
    return JSON.stringify({ input: { text: 'a'.repeat(bytes - empty.length) } });
  };

  it('1 MiB is accepted, one byte more is 413', async () => {
    expect((await send(ofSize(MIB))).status).toBe(200);
    expect(await send(ofSize(MIB + 1))).toMatchObject({
      status: 413,
      body: { error: { code: 'PAYLOAD_TOO_LARGE', maxBytes: MIB } },
    });
    expect(await service.orchestrator.executions.list()).toMatchObject({ executions: [{ ensemble: 'echo' }] });
  });

  it('bytes are counted as they arrive when no length was announced', async () => {
    const body = countingBody(new Uint8Array(64 * 1024).fill(0x20), 1024);
    expect((await send(body.stream)).status).toBe(413);
    // A server buffers more between the client and the handler.
    expect(body.taken()).toBeLessThanOrEqual(host === 'fetch' ? MIB / (64 * 1024) + 1 : 1024);
  });

  it('the limit counts bytes of UTF-8, not characters', async () => {
    const small = createService({ maxBodyBytes: 40 });
    const call = await open(small.handler);
    const authorized = await small.bearer('admin');
    const text = (count: number) => JSON.stringify({ input: { t: '\u20ac'.repeat(count) } });
    expect((await call(ECHO, post(text(7), authorized))).status).toBe(200);
    expect((await call(ECHO, post(text(9), authorized))).status).toBe(413);
  });

  it.each([
    'executions/exec_01ARZ3NDEKTSV4RRFFQ69G5FAV',
    'ensembles/unknown',
    'tokens/tok_01ARZ3NDEKTSV4RRFFQ69G5FAV',
    'components/unknown/deployments/production',
    'state/echo',
  ])('DELETE %s refuses a body that it would not read, and takes none and `{}`', async (path) => {
    const remove = (body?: string) =>
      readResponse(
        ask(`/api/v1/${path}`, { method: 'DELETE', headers: { ...headers, 'content-type': 'application/json' }, body }),
      );
    expect(await remove('{"why":"old"}')).toMatchObject({ status: 400, body: { error: { code: 'INVALID_REQUEST' } } });
    expect([(await remove('{}')).status, (await remove()).status]).not.toContain(400);
  });

  it('no body is read before the caller is known', async () => {
    const body = countingBody(new Uint8Array(1024).fill(0x20), 4);
    const response = await readResponse(
      ask(ECHO, { method: 'POST', headers: { 'content-type': 'application/json' }, body: body.stream }),
    );
    expect(response.status).toBe(401);
    if (host === 'fetch') expect(body.taken()).toBe(0);
  });

  it.each([
    ['text/plain', '{}'],
    ['application/x-www-form-urlencoded', 'input=1'],
    [
      'multipart/form-data; boundary=x',
      '--x\r\ncontent-disposition: form-data; name="filepath"\r\n\r\n/etc/passwd\r\n--x--',
    ],
    ['Text/Plain;application/json', '{}'],
    ['application/jsonx', '{}'],
    ['application/vnd.api+json', '{}'],
    ['application/json; charset=utf-16', '{}'],
    ['application/json; charset=iso-8859-1', '{}'],
    ['', '{}'],
  ])('Content-Type `%s` is 415', async (type, body) => {
    const response = await send(new TextEncoder().encode(body), { 'content-type': type });
    expect(response).toMatchObject({ status: 415, body: { error: { code: 'UNSUPPORTED_MEDIA_TYPE' } } });
    expect(await service.orchestrator.executions.list()).toEqual({ executions: [] });
  });

  it('a body without Content-Type is 415', async () => {
    const response = await readResponse(ask(ECHO, { method: 'POST', headers, body: new TextEncoder().encode('{}') }));
    expect(response.status).toBe(415);
  });

  it.each([
    'Application/JSON',
    'application/json;charset=UTF-8',
    'application/json; charset="utf-8"',
    'application/json; profile=x',
  ])('Content-Type `%s` is JSON', async (type) => {
    expect((await send('{"input":{"a":1}}', { 'content-type': type })).body).toMatchObject({
      output: { said: { a: 1 } },
    });
  });

  it.each(['gzip', 'br', 'deflate', 'identity, gzip'])('Content-Encoding `%s` is 415', async (coding) => {
    expect((await send('{}', { 'content-encoding': coding })).status).toBe(415);
  });

  it.each([
    ['an array', '[]'],
    ['a number', '1'],
    ['null', 'null'],
    ['a string', '"input"'],
    ['trailing garbage', '{} {}'],
    ['a trailing comma', '{"input":{},}'],
    ['half a body', '{"input":'],
    ['single quotes', "{'input':{}}"],
    ['NaN', '{"input":{"a":NaN}}'],
    ['an input that is an array', '{"input":[1]}'],
    ['an input that is text', '{"input":"x"}'],
    ['an input that is null', '{"input":null}'],
    ['an async that is not a boolean', '{"async":"true"}'],
    ['invalid UTF-8', new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x7d])],
    ['UTF-16', new Uint8Array([0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00])],
  ])('%s is 400', async (_what, body) => {
    const response = await send(body as BodyInit);
    expect(response).toMatchObject({ status: 400, body: { error: { code: 'INVALID_REQUEST' } } });
    expect(await service.orchestrator.executions.list()).toEqual({ executions: [] });
  });

  it('the last of two equal keys counts; a byte-order mark is ignored', async () => {
    const twice = await send('{"input":{"a":1},"input":{"a":2,"a":3}}');
    expect(twice.body).toMatchObject({ output: { said: { a: 3 } } });
    const marked = await send(new Uint8Array([0xef, 0xbb, 0xbf, ...new TextEncoder().encode('{"input":{"a":1}}')]));
    expect(marked.body).toMatchObject({ output: { said: { a: 1 } } });
  });

  it.each([
    'flow',
    'agents',
    'definition',
    'id',
    'tenant',
    'owner',
    'plan',
    'createdAt',
    'version',
    'name',
    '__proto__',
    'constructor',
  ])('a body with the unknown key `%s` is refused, and nothing runs', async (key) => {
    const response = await send(`{"input":{},${JSON.stringify(key)}:[{"agent":"x"}]}`);
    expect(response).toMatchObject({
      status: 400,
      body: { error: { code: 'INVALID_REQUEST', issues: [{ message: expect.stringContaining(key) }] } },
    });
    expect(await service.orchestrator.executions.list()).toEqual({ executions: [] });
  });

  it('`__proto__` anywhere in an input is refused; `constructor` is data', async () => {
    expect((await send('{"input":{"__proto__":{"admin":true}}}')).status).toBe(400);
    expect((await send('{"input":{"a":[{"__proto__":1}]}}')).status).toBe(400);
    expect((await send('{"input":{"constructor":{"prototype":1}}}')).body).toMatchObject({
      output: { said: { constructor: { prototype: 1 } } },
    });
    expect(({} as { admin?: unknown }).admin).toBeUndefined();
  });

  it('an input is nested at most 64 deep; 100,000 deep is 400, not 500', async () => {
    expect((await send(nested(64))).status).toBe(202);
    for (const depth of [65, 1_000, 100_000]) {
      expect(await send(nested(depth)), `${depth}`).toMatchObject({
        status: 400,
        body: { error: { code: 'INVALID_INPUT' } },
      });
    }
    expect((await send(`${'['.repeat(500_000)}`)).status).toBe(400);
  });

  it.each([
    ['`*`', { scopes: ['*'] }],
    ['`ADMIN`', { scopes: ['ADMIN'] }],
    ['`admin `', { scopes: ['admin '] }],
    ['a string', { scopes: 'admin' }],
    ['a nested list', { scopes: [['admin']] }],
    ['`__proto__`', { scopes: ['__proto__'] }],
    ['none', { scopes: [] }],
    ['a hundred thousand', { scopes: Array.from({ length: 100_000 }, () => 'admin') }],
  ])('scopes that are %s are 400', async (_what, fields) => {
    const response = await send(JSON.stringify({ name: 'x', ...fields }), {}, '/api/v1/tokens');
    expect(response).toMatchObject({ status: 400, body: { error: { code: 'INVALID_REQUEST' } } });
    expect(JSON.stringify(response.body).length).toBeLessThan(200_000);
    expect(await service.orchestrator.tokens.list()).toHaveLength(1);
  });

  it('duplicate scopes count once', async () => {
    const response = await send('{"name":"x","scopes":["read:state","read:state"]}', {}, '/api/v1/tokens');
    expect(response).toMatchObject({ status: 201, body: { scopes: ['read:state'] } });
  });

  it.each(['0', '-1', '1.5', '"60"', '1e400', '1e12', 'null', '[60]'])('expiresIn %s is 400', async (expiresIn) => {
    const response = await send(`{"name":"x","scopes":["read:state"],"expiresIn":${expiresIn}}`, {}, '/api/v1/tokens');
    expect(response).toMatchObject({
      status: 400,
      body: { error: { code: 'INVALID_REQUEST', issues: [{ path: 'expiresIn' }] } },
    });
  });
});

describe('bodies on the wire', () => {
  /** Sends a text over a socket. @returns what the server sends until it closes the socket, or until the text matches `until` */
  async function wire(text: string, until: RegExp): Promise<string> {
    const service = createService();
    const { authorization } = await service.bearer('admin');
    const { port } = new URL(await serve(toNodeListener(service.handler)));
    return new Promise((resolve, reject) => {
      const socket = connect(Number(port), '127.0.0.1', () => socket.write(text.replace('TOKEN', authorization)));
      let response = '';
      socket.setEncoding('utf8').on('data', (chunk) => {
        response += chunk;
        if (until.test(response)) socket.destroy();
      });
      socket.on('close', () => resolve(response)).on('error', reject);
    });
  }
  const HEAD = `POST ${ECHO} HTTP/1.1\r\nHost: x\r\nAuthorization: TOKEN\r\nContent-Type: application/json\r\n`;

  it('both Content-Length and Transfer-Encoding are refused before anything runs', async () => {
    const response = await wire(
      `${HEAD}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
      /\r\n\r\n/,
    );
    expect(response).toMatch(/^HTTP\/1\.1 400 /);
  });

  it('an announced length over the limit is 413 before the body arrives', async () => {
    expect(await wire(`${HEAD}Content-Length: 99999999\r\n\r\n`, /PAYLOAD_TOO_LARGE/)).toMatch(/^HTTP\/1\.1 413 /);
  });

  it('a transfer coding other than `chunked` is 415: no body is decoded', async () => {
    const response = await wire(`${HEAD}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`, /\r\n\r\n/);
    expect(response).toMatch(/^HTTP\/1\.1 415 /);
  });

  it('a sender that continues slowly after a refusal is cut off after ten seconds', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const { port } = new URL(await serve(toNodeListener(createService().handler)));
    const socket = connect(Number(port), '127.0.0.1');
    socket.write(`POST ${ECHO} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{`);
    const [response] = await once(socket, 'data');
    expect(String(response)).toMatch(/^HTTP\/1\.1 401 /);
    const drip = setInterval(() => socket.write(' '), 50);
    onTestFinished(() => clearInterval(drip));
    const closed = vi.fn();
    socket
      .on('close', closed)
      .on('error', () => {})
      .resume();
    vi.advanceTimersByTime(9_999);
    await new Promise(setImmediate);
    expect(closed).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    await once(socket, 'close');
  });

  it('a sender that continues for ever after a 413 is cut off', async () => {
    const service = createService();
    const { authorization } = await service.bearer('admin');
    const { port } = new URL(await serve(toNodeListener(service.handler)));
    const chunk = `10000\r\n${' '.repeat(0x10000)}\r\n`;
    const sent = await new Promise<number>((resolve) => {
      let count = 0;
      const socket = connect(Number(port), '127.0.0.1');
      const pump = () => {
        while (!socket.destroyed && socket.write(chunk)) count += 1;
        count += 1;
      };
      socket
        .on('error', () => {})
        .on('close', () => resolve(count))
        .on('drain', pump);
      socket.resume();
      socket.write(`${HEAD.replace('TOKEN', authorization)}Transfer-Encoding: chunked\r\n\r\n`);
      pump();
    });
    expect(sent * 0x10000).toBeLessThan(64 * MIB);
  });
});
