/** The fakes: stubbed HTTP, mail in memory, a model that answers what it is told to. */

import { describe, expect, it } from 'vitest';
import type { HttpRequest } from '../../src/engine/ports/http.ts';
import { fakeModel, memoryMail, type StubHttp, stubHttp } from '../../src/testing.ts';

const call = async (http: StubHttp, url: string, request: Partial<HttpRequest> = {}) => {
  const { status, headers, body } = await http.send({ method: 'GET', url, ...request });
  return { status, headers, text: new TextDecoder().decode(body) };
};

describe('stubHttp', () => {
  it('answers JSON, text, a status and headers', async () => {
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

  it('a route that is added later wins, and may replace one', async () => {
    const http = stubHttp({ '*': { text: 'any' } }).on('https://a.example/x', { text: 'first' });
    expect((await call(http, 'https://a.example/x')).text).toBe('first');
    http.on('https://a.example/x', { text: 'second' });
    expect((await call(http, 'https://a.example/x')).text).toBe('second');
    expect((await call(http, 'https://a.example/y')).text).toBe('any');
  });

  it('a list answers one a call, the last one again and again', async () => {
    const http = stubHttp({ '*': [{ text: '1' }, { text: '2' }] });
    const texts = [];
    for (let i = 0; i < 4; i++) texts.push((await call(http, 'https://a.example/')).text);
    expect(texts).toEqual(['1', '2', '2', '2']);
    await expect(call(stubHttp({ '*': [] }), 'https://a.example/')).rejects.toThrow(TypeError);
  });

  it('a function answers by the request, later if it likes, and its throw is the failure', async () => {
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

  it('an unexpected call fails, says what is stubbed and how to stub it, and is recorded', async () => {
    const http = stubHttp({ 'GET https://a.example/x': { json: 1 } });
    await expect(call(http, 'https://a.example/y?secret=1', { method: 'post' })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      retryable: false,
      message:
        "unexpected call POST https://a.example/y (stubbed: GET https://a.example/x). Stub it: stubHttp({ 'POST https://a.example/y': { json: { ... } } })",
    });
    expect(http.calls.length).toBe(1);
  });

  it('records calls with their bodies, read as JSON where they are', async () => {
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

  it('a route that is none is a TypeError', () => {
    expect(() => stubHttp({ 'GET  x y': {} })).toThrow(
      TypeError('stubHttp: a route is `METHOD url` or a URL, not "GET  x y"'),
    );
    expect(() => stubHttp({ '': {} })).toThrow(TypeError('stubHttp: a route is `METHOD url` or a URL, not ""'));
  });
});

describe('memoryMail', () => {
  const message = { from: 'a@x.example', to: ['b@x.example'], subject: 'Hello', text: 'Hi' };

  it('keeps what it is given, as it was given, with ids in order', async () => {
    const mail = memoryMail();
    const to = ['b@x.example'];
    expect(await mail.send({ ...message, to })).toEqual({ messageId: 'mail-1' });
    to.push('c@x.example');
    expect(await mail.send({ ...message, subject: 'Again' })).toEqual({ messageId: 'mail-2' });
    expect(mail.sent).toEqual([
      { ...message, messageId: 'mail-1' },
      { ...message, subject: 'Again', messageId: 'mail-2' },
    ]);
  });

  it('accepts a message with a key that it has seen once', async () => {
    const mail = memoryMail();
    const first = await mail.send(message, { idempotencyKey: 'k' });
    expect(await mail.send(message, { idempotencyKey: 'k' })).toEqual(first);
    await mail.send(message, { idempotencyKey: 'other' });
    await mail.send(message);
    await mail.send(message);
    expect(mail.sent.length).toBe(4);
  });

  it('refuses as many as it is told to; a refused key is not seen', async () => {
    const mail = memoryMail();
    mail.failNext('mailbox full', { count: 2 });
    mail.failNext('no such mailbox', { retryable: false });
    for (const expected of [
      { code: 'AGENT_FAILED', message: 'mailbox full', retryable: true },
      { code: 'AGENT_FAILED', message: 'mailbox full', retryable: true },
      { code: 'AGENT_FAILED', message: 'no such mailbox', retryable: false },
    ]) {
      await expect(mail.send(message, { idempotencyKey: 'k' })).rejects.toMatchObject(expected);
    }
    expect(await mail.send(message, { idempotencyKey: 'k' })).toEqual({ messageId: 'mail-1' });
  });

  it('an aborted signal sends nothing', async () => {
    const mail = memoryMail();
    await expect(mail.send(message, { signal: AbortSignal.abort('stop') })).rejects.toBe('stop');
    expect(mail.sent).toEqual([]);
  });
});

describe('fakeModel', () => {
  const request = { model: 'm', prompt: 'one two  three', system: 'be kind' };

  it('a text for every call, with words counted as tokens', async () => {
    const model = fakeModel('an answer');
    const expected = {
      text: 'an answer',
      usage: { inputTokens: 5, outputTokens: 2 },
      model: 'm',
      finishReason: 'stop',
    };
    expect([await model.generate(request), await model.generate(request)]).toEqual([expected, expected]);
    expect(model.calls).toEqual([request, request]);
  });

  it('an object is also its JSON text', async () => {
    expect(await fakeModel({ object: { n: 1 } }).generate(request)).toMatchObject({
      object: { n: 1 },
      text: '{"n":1}',
    });
  });

  it('parts of an answer win', async () => {
    expect(
      await fakeModel({
        text: 'cut',
        finishReason: 'length',
        model: 'other',
        usage: { inputTokens: 1, outputTokens: 9 },
      }).generate(request),
    ).toEqual({
      text: 'cut',
      finishReason: 'length',
      model: 'other',
      usage: { inputTokens: 1, outputTokens: 9 },
    });
  });

  it('a list answers one a call, the last one again', async () => {
    const model = fakeModel(['a', 'b']);
    const texts = [];
    for (let i = 0; i < 3; i++) texts.push((await model.generate(request)).text);
    expect(texts).toEqual(['a', 'b', 'b']);
    expect(() => fakeModel([])).toThrow(TypeError('fakeModel: the list of replies is empty'));
  });

  it('a function answers by the request, and its throw is the failure', async () => {
    expect((await fakeModel(async ({ prompt }) => prompt.toUpperCase()).generate(request)).text).toBe('ONE TWO  THREE');
    const failing = fakeModel(() => {
      throw new Error('overloaded');
    });
    await expect(failing.generate(request)).rejects.toThrow('overloaded');
    expect(failing.calls.length).toBe(1);
  });

  it('an aborted signal asks nothing', async () => {
    const model = fakeModel('x');
    await expect(model.generate({ ...request, signal: AbortSignal.abort('stop') })).rejects.toBe('stop');
    expect(model.calls).toEqual([]);
  });
});
