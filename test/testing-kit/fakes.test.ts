/** The stubs of the testing kit: `stubHttp`, `fakeModel`, `stubPdf` and seeded stores. */

import { describe, expect, it } from 'vitest';
import type { HttpRequest } from '../../src/engine/host/http.port.ts';
import {
  createTestOrchestrator,
  type FakeAnswer,
  fakeModel,
  memoryKv,
  memoryObjects,
  type StubHttp,
  type StubReply,
  stubHttp,
  stubPdf,
} from '../../src/entries/testing.ts';

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
    ['https://a.example', 'GET', 'https://a.example/', true],
    ['https://a.example', 'GET', 'https://a.example', true],
    ['https://A.example:443/ä', 'GET', 'https://a.example/%C3%A4', true],
    ['https://a.example?q=1', 'GET', 'https://a.example/?q=1', true],
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
    http.on('*', { text: 'any again' });
    expect((await call(http, 'https://a.example/x')).text).toBe('any again');
  });

  it.each<[unknown, string]>([
    [{ body: { a: 1 } }, 'has the unknown key `body`; a body is `json`, `text`, `chunks` or `bytes`'],
    [{ jsn: 1 }, 'has the unknown key `jsn`; did you mean `json`?'],
    [{ json: 1, text: 'a' }, 'has json and text; a reply has one body'],
    [{ status: '200' }, 'has the status "200"; a status is a whole number from 100 to 599'],
    [{ error: 'broken' }, "has the error \"broken\"; it is 'connection' or 'timeout'"],
    ['ok', 'must be an object such as { json: { id: 7 } }, not "ok"'],
  ])('the reply %j is refused when it is declared, and where a function returns it', async (given, problem) => {
    const reply = given as StubReply;
    const refused = TypeError(`stubHttp: a reply of \`GET https://a.example/\` ${problem}`);
    expect(() => stubHttp({ 'GET https://a.example/': reply })).toThrow(refused);
    expect(() => stubHttp().on('GET https://a.example/', [{ status: 503 }, reply])).toThrow(refused);
    const made = call(stubHttp({ '*': () => reply }), 'https://a.example/?secret=1');
    const message = `stubHttp: the reply to GET https://a.example/ ${problem}`;
    await expect(made).rejects.toMatchObject({ code: 'INVALID_REQUEST', message });
  });

  it('a list gives one reply per call, and repeats the last reply', async () => {
    const http = stubHttp({ '*': [{ text: '1' }, { text: '2' }] });
    const texts = [];
    for (let i = 0; i < 4; i++) texts.push((await call(http, 'https://a.example/')).text);
    expect(texts).toEqual(['1', '2', '2', '2']);
    expect(() => stubHttp({ '*': [] })).toThrow(TypeError('stubHttp: the list of replies of `*` is empty'));
  });

  it('a function may answer later, and what it throws is the failure of the call', async () => {
    const echo = stubHttp({ '*': ({ json }) => ({ json: json ?? null }) });
    expect((await call(echo, 'https://a.example/', { method: 'POST', body: '{"a":[1]}' })).text).toBe('{"a":[1]}');
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

describe('fakeModel', () => {
  it.each<[unknown, string]>([
    [{ kind: 'damage' }, 'What the model answers as JSON is { object: {"kind":"damage"} }'],
    [42, 'must be a text, an Error, a function, or an object'],
    [null, 'must be a text'],
    [['a'], 'must be a text'],
    [{ text: { a: 1 } }, '`text` must be a text; JSON is `object`'],
    [{ toolCalls: { name: 'find' } }, '`toolCalls` must be a list of { name, arguments }'],
    [{ toolCalls: [{ name: 'find', args: {} }] }, 'a call is { name, arguments }'],
    [{ usage: { input: 1 } }, '`usage` must be { inputTokens, outputTokens }'],
  ])(
    'the answer %j is refused with the form that is right, and where a function returns it',
    async (given, problem) => {
      const answer = given as FakeAnswer;
      expect(() => fakeModel(['first', answer])).toThrow(`fakeModel: answer 2 `);
      expect(() => fakeModel(['first', answer])).toThrow(problem);
      const models = { fake: fakeModel([() => answer as string]) };
      const ensembles = ['name: e\nflow:\n  - { agent: a, operation: think, config: { model: m, prompt: hi } }'];
      const { error } = await createTestOrchestrator({ models, ensembles }).execute('e');
      expect(error?.message).toContain('fakeModel: answer 1 ');
      expect(error?.message).toContain(problem);
    },
  );

  it('answers that are no list are refused', () => {
    expect(() => fakeModel('Hello' as never)).toThrow("the answers must be a list, such as fakeModel(['Hello'])");
  });
});

describe('stubPdf', () => {
  const ensembles = [
    'name: e\nflow:\n  - { agent: print, operation: pdf, config: { html: "<p>{{ who }}</p>", format: A5, pageNumbers: true } }',
  ];

  it('keeps the documents, and its PDF is valid, with as many pages in the size of the page', async () => {
    const pdf = stubPdf({ pages: 3 });
    const run = await createTestOrchestrator({ pdf, ensembles }).execute('e', { who: 'A & B' });
    const output = run.agents[0]?.output as { content: string; pages: number };
    expect(output.pages).toBe(3);
    expect(pdf.documents).toMatchObject([{ html: '<p>A &amp; B</p>', pageNumbers: true }]);
    const { getDocument } = await import('pdfjs-dist/legacy/build/pdf.mjs');
    const read = await getDocument({ data: Uint8Array.from(Buffer.from(output.content, 'base64')) }).promise;
    expect(read.numPages).toBe(3);
    const [, , width = 0, height = 0] = (await read.getPage(3)).view;
    expect([Math.round(width), Math.round(height)]).toEqual([420, 595]);
  });

  it('`onRender` can fail a document, which is not kept, and take real time without a jump of the clock', async () => {
    const onRender = async ({ html }: { readonly html: string }) => {
      await new Promise((resolve) => setTimeout(resolve, 30));
      if (html.includes('bad')) throw new Error('no such font');
    };
    const pdf = stubPdf({ onRender });
    const orchestrator = createTestOrchestrator({ pdf, ensembles });
    expect((await orchestrator.execute('e', { who: 'bad' })).status).toBe('failed');
    const good = await orchestrator.execute('e', { who: 'good' });
    expect([good.status, good.duration, pdf.documents.length]).toEqual(['completed', 0, 1]);
  });

  it('refuses options that it does not have', () => {
    expect(() => stubPdf({ page: 2 } as never)).toThrow('did you mean `pages`?');
    expect(() => stubPdf({ pages: 0 })).toThrow('stubPdf: `pages`');
  });
});

describe('seeded stores', () => {
  const read = (type: string, key: string) =>
    `name: e\nflow:\n  - { agent: read, operation: storage, config: { type: ${type}, action: get, key: ${key} } }`;
  const found = async (binding: string, store: unknown, key: string) => {
    const ensembles = [read(binding, key)];
    const orchestrator = createTestOrchestrator({ bindings: { [binding]: store } as never, ensembles });
    return (await orchestrator.execute('e')).agents[0]?.output;
  };

  it('values and objects are there from the beginning', async () => {
    expect(await found('kv', memoryKv({ 'plans/a': { seats: 3 } }), 'plans/a')).toEqual({
      value: { seats: 3 },
      found: true,
    });
    const objects = memoryObjects({
      'a.txt': 'text',
      b: Uint8Array.of(0, 255),
      'c.html': { content: new TextEncoder().encode('<p>'), contentType: 'text/html', updatedAt: 7 },
    });
    const text = 'text/plain; charset=utf-8';
    expect(await found('objects', objects, 'a.txt')).toMatchObject({ content: 'text', contentType: text });
    expect(await found('objects', objects, 'b')).toMatchObject({ content: 'AP8=', size: 2 });
    expect(await found('objects', objects, 'c.html')).toMatchObject({ content: '<p>', contentType: 'text/html' });
  });

  it('another seed, and a key that no store can hold, are refused', () => {
    expect(() => memoryObjects({ a: { json: 1 } as never })).toThrow('the object `a` must be a text, a Uint8Array');
    expect(() => memoryObjects({ '': 'a' })).toThrow('a key must be text of 1 to 512 bytes');
    expect(() => memoryKv({ '': 1 })).toThrow('a key must be text of 1 to 512 bytes');
  });

  it('the clock does not jump while a store of the app is at work: its agent does not run out of time', async () => {
    const kv = memoryKv({ a: 1 });
    const get = async (key: string, now: number) => {
      await new Promise((resolve) => setTimeout(resolve, 30));
      return kv.get(key, now);
    };
    const ensembles = [read('kv', 'a').replace('operation:', 'timeout: 5s, operation:')];
    const orchestrator = createTestOrchestrator({ bindings: { kv: { ...kv, get } }, ensembles });
    expect(await orchestrator.execute('e')).toMatchObject({ status: 'completed', duration: 0 });
  });
});
