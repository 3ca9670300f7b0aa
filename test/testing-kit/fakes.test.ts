/** `stubHttp`: routes, replies and recorded calls. */

import { describe, expect, it } from 'vitest';
import type { HttpRequest } from '../../src/engine/ports/http.ts';
import { type StubHttp, stubHttp } from '../../src/entries/testing.ts';

const call = async (http: StubHttp, url: string, request: Partial<HttpRequest> = {}) => {
  const { status, headers, body } = await http.send({ method: 'GET', url, ...request });
  return { status, headers, text: new TextDecoder().decode(body) };
};

describe('stubHttp', () => {
  it('answers with JSON, text, a status and headers', async () => {
    const http = stubHttp({
      'https://a.example/json': { json: { ä: [1] } },
      'https://a.example/text': { text: 'plain', status: 201, headers: { 'X-Own': 'yes' } },
      'https://a.example/none': { status: 204 },
      'https://a.example/null': { json: null },
      'https://a.example/typed': { json: 1, headers: { 'Content-Type': 'application/problem+json' } },
    });
    expect(await call(http, 'https://a.example/json')).toEqual({
      status: 200,
      headers: { 'content-type': 'application/json' },
      text: '{"ä":[1]}',
    });
    expect(await call(http, 'https://a.example/text')).toEqual({
      status: 201,
      headers: { 'content-type': 'text/plain; charset=utf-8', 'x-own': 'yes' },
      text: 'plain',
    });
    expect(await call(http, 'https://a.example/none')).toEqual({ status: 204, headers: {}, text: '' });
    expect((await call(http, 'https://a.example/null')).text).toBe('null');
    expect((await call(http, 'https://a.example/typed')).headers).toEqual({
      'content-type': 'application/problem+json',
    });
  });

  it('answers with bytes, and gives a body in chunks to a caller that reads it as it comes', async () => {
    const http = stubHttp({
      'https://a.example/bytes': { bytes: Uint8Array.of(0, 255) },
      'https://a.example/chunks': {
        status: 503,
        chunks: ['a', '', 'bc'],
        headers: { 'content-type': 'text/event-stream' },
      },
      'https://a.example/json': { json: [1] },
    });
    const seen: unknown[] = [];
    const onChunk: HttpRequest['onChunk'] = (chunk, head) =>
      void seen.push([new TextDecoder().decode(chunk), head.status, head.headers['content-type']]);
    const { headers, body } = await http.send({ method: 'GET', url: 'https://a.example/bytes' });
    expect([headers, body]).toEqual([{ 'content-type': 'application/octet-stream' }, Uint8Array.of(0, 255)]);
    expect((await call(http, 'https://a.example/chunks', { onChunk })).text).toBe('abc');
    await call(http, 'https://a.example/json', { onChunk });
    expect(seen).toEqual([
      ['a', 503, 'text/event-stream'],
      ['bc', 503, 'text/event-stream'],
      ['[1]', 200, 'application/json'],
    ]);
    const why = new Error('seen enough');
    const throwing: Partial<HttpRequest> = {
      onChunk() {
        throw why;
      },
    };
    await expect(call(http, 'https://a.example/chunks', throwing)).rejects.toBe(why);
  });

  it.each<[string, string, string, boolean]>([
    ['https://a.example/x', 'GET', 'https://a.example/x', true],
    ['https://a.example/x', 'POST', 'https://a.example/x', true],
    ['get https://a.example/x', 'GET', 'https://a.example/x', true],
    ['GET https://a.example/x', 'get', 'https://a.example/x', true],
    ['GET https://a.example/x', 'POST', 'https://a.example/x', false],
    ['https://a.example/x', 'GET', 'https://a.example/x?q=1', true],
    ['https://a.example/x?q=1', 'GET', 'https://a.example/x?q=1', true],
    ['https://a.example/x?q=1', 'GET', 'https://a.example/x?q=2', false],
    ['https://a.example/x?q=1', 'GET', 'https://a.example/x', false],
    ['https://a.example/*', 'GET', 'https://a.example/x/y', true],
    ['https://a.example/*/end', 'GET', 'https://a.example/x/y/end', true],
    ['https://a.example/*/end', 'GET', 'https://a.example/end', false],
    ['https://*.example/*b*c', 'GET', 'https://a.example/xbyc', true],
    ['https://*.example/*b*c', 'GET', 'https://a.example/xcyb', false],
    ['*', 'GET', 'https://a.example/x', true],
    ['https://a.example/x.y', 'GET', 'https://a.example/xzy', false],
    ['https://a.example/x', 'GET', 'https://a.example/xx', false],
    ['https://a.example/aba*aba', 'GET', 'https://a.example/aba', false],
  ])('the route %s and the call %s %s', async (route, method, url, matches) => {
    const http = stubHttp({ [route]: { text: 'hit' } });
    const answer = call(http, url, { method }).then(
      ({ text }) => text === 'hit',
      () => false,
    );
    expect(await answer).toBe(matches);
  });

  it('a route that is added later wins, and may replace a route', async () => {
    const http = stubHttp({ '*': { text: 'any' } }).on('https://a.example/x', { text: 'first' });
    expect((await call(http, 'https://a.example/x')).text).toBe('first');
    http.on('https://a.example/x', { text: 'second' });
    expect((await call(http, 'https://a.example/x')).text).toBe('second');
    expect((await call(http, 'https://a.example/y')).text).toBe('any');
  });

  it('a list gives one reply per call, and repeats the last reply', async () => {
    const http = stubHttp({ '*': [{ text: '1' }, { text: '2' }] });
    const texts = [];
    for (let i = 0; i < 4; i++) texts.push((await call(http, 'https://a.example/')).text);
    expect(texts).toEqual(['1', '2', '2', '2']);
    await expect(call(stubHttp({ '*': [] }), 'https://a.example/')).rejects.toThrow(TypeError);
  });

  it('a function may answer later, and what it throws is the failure of the call', async () => {
    const http = stubHttp({ '*': async ({ url }) => ({ text: url.slice(-1) }) });
    expect((await call(http, 'https://a.example/7')).text).toBe('7');
    const failing = stubHttp({
      '*': () => {
        throw new Error('own');
      },
    });
    await expect(call(failing, 'https://a.example/')).rejects.toThrow('own');
  });

  it('a broken exchange fails as a real client does', async () => {
    const http = stubHttp({
      'https://a.example/c': { error: 'connection' },
      'https://a.example/t': { error: 'timeout' },
    });
    await expect(call(http, 'https://a.example/c')).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable: true,
      details: { reason: 'connection' },
    });
    await expect(call(http, 'https://a.example/t')).rejects.toMatchObject({ code: 'TIMEOUT', retryable: true });
  });

  it('an unexpected call fails with the stubbed routes and how to stub it, and is recorded', async () => {
    const http = stubHttp({ 'GET https://a.example/x': { json: 1 } });
    await expect(call(http, 'https://a.example/y?secret=1', { method: 'post' })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      retryable: false,
      message:
        "unexpected call POST https://a.example/y (stubbed: GET https://a.example/x). Stub it: stubHttp({ 'POST https://a.example/y': { json: { ... } } })",
    });
    expect(http.calls.length).toBe(1);
  });

  it('records calls with their bodies, and with JSON bodies parsed', async () => {
    const http = stubHttp({ '*': {} });
    await call(http, 'https://a.example/', { method: 'POST', body: '{"a":1}', headers: { 'x-a': 'b' } });
    await call(http, 'https://a.example/', { method: 'POST', body: new TextEncoder().encode('[2]') });
    await call(http, 'https://a.example/', { method: 'POST', body: 'no json' });
    await call(http, 'https://a.example/');
    expect(http.calls.map(({ json }) => json)).toEqual([{ a: 1 }, [2], undefined, undefined]);
    expect(http.calls[0]).toMatchObject({ method: 'POST', headers: { 'x-a': 'b' }, body: '{"a":1}' });
  });

  it('an aborted signal sends nothing', async () => {
    const http = stubHttp({ '*': {} });
    await expect(call(http, 'https://a.example/', { signal: AbortSignal.abort('stop') })).rejects.toBe('stop');
    expect(http.calls).toEqual([]);
  });

  it('an invalid route is a TypeError', () => {
    expect(() => stubHttp({ 'GET  x y': {} })).toThrow(
      TypeError('stubHttp: a route is `METHOD url` or a URL, not "GET  x y"'),
    );
    expect(() => stubHttp({ '': {} })).toThrow(TypeError('stubHttp: a route is `METHOD url` or a URL, not ""'));
  });
});
