import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fetchHttp } from '../../src/adapters/http/fetch-http.ts';
import { OrchestratorError } from '../../src/engine/base/errors.ts';
import type { Json, JsonObject } from '../../src/engine/base/json/json.ts';
import type { HttpClient, HttpRequest, HttpResponse } from '../../src/engine/host/http.port.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import type { ApiOutput } from '../../src/operations/api/answer.ts';
import { apiOperation } from '../../src/operations/api/api-operation.ts';
import type { ApiConfig } from '../../src/operations/api/config.ts';
import { type BadPeer, startBadPeer } from '../http/bad-peer.ts';
import { operationContext } from './operation-context.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const logger = { debug() {}, info() {}, warn() {}, error() {} };

function answer(status: number, body: string | Uint8Array = '', headers: Record<string, string> = {}): HttpResponse {
  return { status, headers, body: typeof body === 'string' ? new TextEncoder().encode(body) : body };
}

/** Runs the operation with a client that records requests and always returns the same answer. */
function prepared(response: HttpResponse | Error = answer(200)) {
  const requests: HttpRequest[] = [];
  const http: HttpClient = {
    async send(request) {
      requests.push(request);
      if (response instanceof Error) throw response;
      return response;
    },
  };
  return { requests, run: (config: object) => runWith(http, config) };
}

async function runWith(http: HttpClient, config: object, signal = new AbortController().signal): Promise<ApiOutput> {
  const operation = apiOperation({ http, now: () => NOW });
  const context = operationContext({ config: config as ApiConfig, signal, logger });
  return (await operation.run(context)) as ApiOutput;
}

async function sent(config: object): Promise<HttpRequest> {
  const { requests, run } = prepared();
  await run(config);
  expect(requests).toHaveLength(1);
  return requests[0] as HttpRequest;
}

const url = 'https://peer.example/v1/users';

describe('api: the request', () => {
  it('is a GET with a timeout of 30 s, the step signal and the step key by default', async () => {
    const request = await sent({ url });
    expect(request).toMatchObject({ method: 'GET', url, timeoutMs: 30_000 });
    expect({ ...request.headers }).toEqual({ 'Idempotency-Key': 'key-1', 'X-Ensemble-Hops': '1' });
    expect(request.body).toBeUndefined();
    const controller = new AbortController();
    let seen: AbortSignal | undefined;
    const http: HttpClient = {
      async send(sending) {
        seen = sending.signal;
        return answer(200);
      },
    };
    await runWith(http, { url }, controller.signal);
    expect(seen).toBe(controller.signal);
  });

  it('accepts the method in upper and lower case, and a timeout in ms', async () => {
    expect(await sent({ url, method: 'delete', timeout: 1_500 })).toMatchObject({ method: 'DELETE', timeoutMs: 1_500 });
  });

  it.each(['params', 'query'])(
    'appends %s to the query of the url, arrays as repeated keys, without null',
    async (key) => {
      const given = { q: 'a b&c=d/ö+', n: 1, flag: false, tags: ['x', null, 2], none: null };
      const request = await sent({ url: `${url}?own=%7e%20&q=0#frag`, [key]: given });
      expect(request.url).toBe(`${url}?own=%7e%20&q=0&q=a%20b%26c%3Dd%2F%C3%B6%2B&n=1&flag=false&tags=x&tags=2#frag`);
      expect((await sent({ url, [key]: { none: null } })).url).toBe(url);
    },
  );

  it('sends objects and arrays as JSON, text unchanged, and a form if the header says so', async () => {
    const body = { name: 'Zoë', list: [1, null] };
    const json = await sent({ url, method: 'POST', body });
    expect([json.body, json.headers?.['Content-Type']]).toEqual(['{"name":"Zoë","list":[1,null]}', 'application/json']);
    const own = await sent({ url, method: 'POST', body: [1], headers: { 'content-type': 'application/vnd.api+json' } });
    expect([own.body, { ...own.headers }]).toEqual([
      '[1]',
      { 'content-type': 'application/vnd.api+json', 'Idempotency-Key': 'key-1', 'X-Ensemble-Hops': '1' },
    ]);
    const text = await sent({ url, method: 'POST', body: 'plain' });
    expect([text.body, text.headers?.['Content-Type']]).toEqual(['plain', undefined]);
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
    expect((await sent({ url, method: 'POST', headers, body: { a: 'x y', b: [1, 2], c: null } })).body).toBe(
      'a=x%20y&b=1&b=2',
    );
    expect((await sent({ url, method: 'POST', body: null })).body).toBeUndefined();
    expect((await sent({ url, method: 'POST', body: false })).body).toBe('false');
  });

  it('sends the idempotency key of the step on every call, unless the config sets that header, in any case', async () => {
    expect((await sent({ url, method: 'POST', body: {} })).headers?.['Idempotency-Key']).toBe('key-1');
    expect({ ...(await sent({ url, headers: { 'idempotency-key': 'mine' } })).headers }).toEqual({
      'idempotency-key': 'mine',
      'X-Ensemble-Hops': '1',
    });
  });

  it('sends numbers in headers as text, and leaves out null headers', async () => {
    const { headers } = await sent({ url, headers: { 'X-N': 7, 'X-None': null, 'X-T': 't' } });
    expect({ ...headers }).toEqual({ 'X-N': '7', 'X-T': 't', 'Idempotency-Key': 'key-1', 'X-Ensemble-Hops': '1' });
  });

  it('sends bearer and basic credentials, with UTF-8 in base64', async () => {
    const bearer = await sent({ url, auth: { type: 'bearer', token: 't0ken' } });
    expect(bearer.headers?.Authorization).toBe('Bearer t0ken');
    const basic = await sent({ url, auth: { type: 'basic', username: 'zoë', password: 'a:b' } });
    expect(basic.headers?.Authorization).toBe(`Basic ${Buffer.from('zoë:a:b').toString('base64')}`);
  });

  it('an invalid url fails the agent without a call', async () => {
    const { requests, run } = prepared();
    await expect(run({ url: 'users/1' })).rejects.toMatchObject({ code: 'INVALID_REQUEST', retryable: false });
    expect(requests).toEqual([]);
  });
});

describe('api: the output', () => {
  const bodyOf = async (body: string | Uint8Array, contentType?: string): Promise<Json> =>
    (await prepared(answer(200, body, contentType === undefined ? {} : { 'content-type': contentType })).run({ url }))
      .body;

  it('is status, headers and body', async () => {
    const { run } = prepared(answer(201, '{"id":1}', { 'content-type': 'application/json; charset=utf-8', etag: 'x' }));
    expect(await run({ url })).toEqual({
      status: 201,
      headers: { 'content-type': 'application/json; charset=utf-8', etag: 'x' },
      body: { id: 1 },
    });
  });

  it.each<[string, string | Uint8Array, string | undefined, Json]>([
    ['JSON', '{"a":[1]}', 'application/json', { a: [1] }],
    ['+json', '"x"', 'Application/Problem+JSON;x=y', 'x'],
    ['JSON with a byte-order mark', new Uint8Array([0xef, 0xbb, 0xbf, 0x31]), 'application/json', 1],
    ['text', '{"a":1}', 'text/plain', '{"a":1}'],
    ['html', '<p>é</p>', 'text/html; charset=utf-8', '<p>é</p>'],
    ['xml', '<a/>', 'application/xml', '<a/>'],
    ['svg', '<svg/>', 'image/svg+xml', '<svg/>'],
    ['a form', 'a=1', 'application/x-www-form-urlencoded', 'a=1'],
    ['Latin-1 text', new Uint8Array([0x5a, 0xeb]), 'text/plain; charset="ISO-8859-1"', 'Zë'],
    ['no type', 'hello', undefined, 'hello'],
    ['nothing', '', 'application/json', null],
    ['an image', 'GIF89a', 'image/gif', { content: 'R0lGODlh', contentType: 'image/gif', encoding: 'base64' }],
    [
      'bytes that are no text',
      new Uint8Array([0xff, 0]),
      'text/plain',
      { content: '/wA=', contentType: 'text/plain', encoding: 'base64' },
    ],
    [
      'no type, no text',
      new Uint8Array([0xff]),
      undefined,
      { content: '/w==', contentType: 'application/octet-stream', encoding: 'base64' },
    ],
    [
      'a charset nobody knows',
      'x',
      'text/plain; charset=klingon',
      { content: 'eA==', contentType: 'text/plain', encoding: 'base64' },
    ],
  ])('reads %s', async (_what, body, contentType, expected) =>
    expect(await bodyOf(body, contentType)).toEqual(expected),
  );

  it('does not cut a large binary body', async () => {
    const bytes = Uint8Array.from({ length: 300_000 }, (_, i) => i % 251);
    const body = (await bodyOf(bytes, 'application/pdf')) as { content: string };
    expect(Buffer.from(body.content, 'base64').equals(Buffer.from(bytes))).toBe(true);
  });

  it.each([
    ['invalid JSON', '{"a":', 'invalid-json', 'a JSON content type and a body that is not JSON'],
    ['an HTML page called JSON', '<html>', 'invalid-json', 'a body that is not JSON'],
    ['invalid UTF-8', new Uint8Array([0x22, 0xff, 0x22]), 'invalid-json', 'not valid UTF-8'],
    ['65 levels', `${'['.repeat(65)}${']'.repeat(65)}`, 'unsafe-json', 'deeper than 64 levels'],
    ['a prototype key', '{"a":{"__proto__":{"admin":true}}}', 'unsafe-json', 'a key that is never allowed'],
    [
      'a value past the step limit',
      JSON.stringify('x'.repeat(4 * 1024 * 1024 + 1)),
      'unsafe-json',
      'larger than the limit',
    ],
  ])('%s fails this agent, not retryable, without the body in the message', async (_what, body, reason, message) => {
    await expect(bodyOf(body, 'application/json')).rejects.toMatchObject({
      code: 'AGENT_FAILED',
      retryable: false,
      details: { status: 200, reason },
      message: expect.stringMatching(new RegExp(`^GET https://peer\\.example/v1/users answered 200 with .*${message}`)),
    });
  });

  it('accepts 64 levels, and brackets in strings are not levels', async () => {
    expect(JSON.stringify(await bodyOf(`${'['.repeat(64)}${']'.repeat(64)}`, 'application/json'))).toHaveLength(128);
    const text = `\\"${'['.repeat(100)}\\\\`;
    expect(await bodyOf(`{"a":"${text}"}`, 'application/json')).toEqual({ a: JSON.parse(`"${text}"`) });
  });

  it('refuses 10 MiB of brackets at once, without parsing them', async () => {
    const hostile = '['.repeat(5 * 1024 * 1024) + ']'.repeat(5 * 1024 * 1024);
    const parse = JSON.parse;
    let parsed = 0;
    JSON.parse = (...parameters) => {
      parsed++;
      return parse(...parameters);
    };
    try {
      await expect(bodyOf(hostile, 'application/json')).rejects.toMatchObject({ details: { reason: 'unsafe-json' } });
    } finally {
      JSON.parse = parse;
    }
    expect(parsed).toBe(0);
  });
});

describe('api: statuses', () => {
  const failure = async (status: number, headers = {}, body = '', config = {}): Promise<OrchestratorError> => {
    const outcome = await prepared(answer(status, body, headers))
      .run({ url: `${url}?token=planted`, ...config })
      .catch((e) => e);
    expect(outcome).toBeInstanceOf(OrchestratorError);
    return outcome;
  };

  it.each([
    [100, false],
    [301, false],
    [302, false],
    [304, false],
    [400, false],
    [401, false],
    [404, false],
    [408, true],
    [409, false],
    [425, true],
    [429, true],
    [500, true],
    [503, true],
    [599, true],
  ])('%d fails the agent, retryable: %s', async (status, retryable) => {
    const error = await failure(status);
    expect(error).toMatchObject({ code: 'AGENT_FAILED', retryable, details: { status } });
    const hint = status >= 300 && status < 400 ? '; redirects are not followed' : '';
    expect(error.message).toBe(`GET https://peer.example/v1/users answered ${status}${hint}`);
  });

  it.each<[ApiConfig['expect'], number[], number[]]>([
    [undefined, [200, 204, 299], [199, 300, 404]],
    [404, [404], [200, 400]],
    [[200, 404], [200, 404], [201]],
    ['3xx', [301, 399], [200, 404]],
    [['2XX', 404], [200, 201, 404], [400]],
    [null, [200], [404]],
  ])('expect %j accepts %j and none of %j', async (expected, good, bad) => {
    for (const status of good)
      expect((await prepared(answer(status)).run({ url, expect: expected })).status).toBe(status);
    for (const status of bad) expect((await failure(status, {}, '', { expect: expected })).details.status).toBe(status);
  });

  it.each<[string, number | undefined]>([
    ['0', 0],
    ['120', 120_000],
    [' 7 ', 7_000],
    ['86401', 86_400_000],
    ['999999999999999', 86_400_000],
    ['Thu, 01 Jan 2026 00:00:30 GMT', 30_000],
    ['Wed, 31 Dec 2025 23:59:00 GMT', 0],
    ['Fri, 01 Jan 2027 00:00:00 GMT', 86_400_000],
    ['-1', undefined],
    ['1.5', undefined],
    ['1e3', undefined],
    ['soon', undefined],
    ['tomorrow at some time', undefined],
    ['', undefined],
  ])('Retry-After %j is %j ms', async (value, expected) => {
    expect((await failure(429, { 'retry-after': value })).details.retryAfterMs).toBe(expected);
  });

  it('the text of the peer, cut to 1,000 characters, is in `details` and not in the message', async () => {
    const short = await failure(422, { 'content-type': 'application/json' }, '{"error":"no such name"}');
    expect(short.details.body).toBe('{"error":"no such name"}');
    expect(short.message).not.toContain('no such name');
    expect((await failure(500, { 'content-type': 'text/html' }, 'x'.repeat(50_000))).details.body).toBe(
      `${'x'.repeat(1000)}...`,
    );
    expect((await failure(500, { 'content-type': 'image/png' }, 'png')).details).toEqual({ status: 500 });
  });

  it('echoed credentials are masked before the cut, at any position', async () => {
    const secret = 'planted-secret-token';
    const body = `${'x'.repeat(960)}${secret} Bearer ${secret} application/json`;
    const config = {
      auth: { type: 'bearer', token: secret },
      headers: { 'X-Api-Key': 'planted-api-key', Accept: 'application/json' },
    };
    const error = await failure(
      401,
      { 'content-type': 'text/plain' },
      `planted-api-key application/json ${body}`,
      config,
    );
    expect(JSON.stringify(error.details)).not.toContain('plan');
    expect(error.details.body).toMatch(/^\*\*\* application\/json xxx/);
  });

  it('an OrchestratorError of the HTTP port is passed on unchanged', async () => {
    const timeout = new OrchestratorError('TIMEOUT', 'late', { retryable: true });
    await expect(prepared(timeout).run({ url })).rejects.toBe(timeout);
  });
});

describe('api: checks at load', () => {
  const operation = apiOperation({ http: { send: () => Promise.reject(new Error('not at load')) } });
  const check = (config: JsonObject) =>
    operation.check?.(config).map((issue) => `${issue.path.join('.')}: ${issue.message}`);

  it.each<[string, JsonObject, RegExp]>([
    ['user info', { url: 'https://user:pw@peer.example/' }, /^url: holds a user name or password/],
    ['user info before an expression', { url: 'https://user:pw@peer.example/${input.id}' }, /^url: holds a user name/],
    ['a file', { url: 'file:///etc/passwd' }, /^url: has the scheme 'file'; expected http or https$/],
    ['another scheme before an expression', { url: 'FTP://${input.host}/' }, /^url: has the scheme 'ftp'/],
    ['a relative url', { url: '/users' }, /^url: is not an absolute URL/],
    ['params and query', { url, params: { a: 1 }, query: { b: 1 } }, /^query: is set in addition to 'params'/],
    ['a body on GET', { url, body: { a: 1 } }, /^body: can't be sent with GET/],
    ['a body on head', { url, method: 'head', body: 'x' }, /^body: can't be sent with HEAD/],
    [
      'a framing header',
      { url, headers: { 'Transfer-Encoding': 'chunked' } },
      /^headers.Transfer-Encoding: .*set by the HTTP client/,
    ],
    [
      'Host, even from an expression',
      { url, headers: { host: '${input.host}' } },
      /^headers.host: .*set by the HTTP client/,
    ],
    ['a header name that is no token', { url, headers: { 'X A': 'b' } }, /^headers.X A: .*not a token/],
    ['a line break in a header', { url, headers: { 'X-A': 'b\r\nC: d' } }, /^headers.X-A: .*control character/],
    ['a snowman in a header', { url, headers: { 'X-A': '☃' } }, /^headers.X-A: .*urlEncode/],
    ['a header twice', { url, headers: { 'X-A': 'b', 'x-a': 'c' } }, /^headers.x-a: .*given twice/],
    [
      'two credentials',
      { url, headers: { authorization: 'x' }, auth: { type: 'bearer', token: 't' } },
      /^headers.authorization: .*in addition to 'auth'/,
    ],
  ])('%s', (_what, config, message) => {
    expect(check(config)).toEqual([expect.stringMatching(message)]);
  });

  it('values with expressions are not checked at load, and valid configs have no issue', () => {
    expect(
      check({ url: '${input.url}', method: '${input.method}', headers: { 'X-A': '${input.a}☃' }, body: { a: 1 } }),
    ).toEqual([]);
    expect(check({ url: 'https://${input.host}/a@b', auth: { type: 'bearer', token: '${env.T}' } })).toEqual([]);
    expect(check({ url: 'https://peer.example/a@b', method: 'post', body: {}, params: {}, query: null })).toEqual([]);
  });

  const issuesOf = async (config: unknown): Promise<string[]> => {
    const result = await operation.config?.['~standard'].validate(config);
    return (result?.issues ?? []).map((issue) => `${issue.path?.join('.')}: ${issue.message}`);
  };

  it.each<[string, object, RegExp]>([
    ['an unknown key', { url, metod: 'GET' }, /metod/],
    ['no url', {}, /^url: /],
    ['an unknown method', { url, method: 'BREW' }, /^method: expected one of GET, POST/],
    ['a nested parameter', { url, query: { a: { b: 1 } } }, /^query\.a: expected a string, number/],
    ['a header object', { url, headers: { a: {} } }, /^headers\.a: expected text or a number/],
    ['a timeout of 0', { url, timeout: 0 }, /^timeout: must be a duration such as `30s` or `5m`/],
    ['a status that is none', { url, expect: [200, 99] }, /^expect\.1: expected a status from 100 to 599/],
    ['a class that is none', { url, expect: '2x' }, /^expect: expected a status/],
    ['an empty list of statuses', { url, expect: [] }, /^expect: expected a status/],
    ['an auth of no type', { url, auth: { token: 'x' } }, /^auth(\.type)?: expected \{ type: 'bearer', token \}/],
    ['an empty token', { url, auth: { type: 'bearer', token: '' } }, /^auth\.token: expected a token/],
    [
      'a user name with a colon',
      { url, auth: { type: 'basic', username: 'a:b', password: '' } },
      /^auth\.username: .*without a colon/,
    ],
    ['auth with a stray key', { url, auth: { type: 'bearer', token: 'x', user: 'y' } }, /^auth: .*user/],
  ])('the schema refuses %s', async (_what, config, message) => {
    expect(await issuesOf(config)).toEqual([expect.stringMatching(message)]);
  });

  it('the schema accepts every option, and null for absent ones, and changes nothing', async () => {
    const full = {
      url,
      method: 'Post',
      query: { a: [1, null, 'x', true] },
      headers: { a: 'b', c: 1 },
      body: { x: [1] },
      timeout: 5,
      auth: null,
      expect: ['2xx', 404],
    };
    const result = await operation.config?.['~standard'].validate(full);
    expect(result).toEqual({ value: full });
    const absent = {
      url,
      method: null,
      params: null,
      query: null,
      headers: null,
      body: null,
      timeout: null,
      auth: null,
      expect: null,
    };
    expect(await issuesOf(absent)).toEqual([]);
    await prepared().run(absent);
  });
});

describe('api with a real client', () => {
  let peer: BadPeer;
  beforeAll(async () => {
    peer = await startBadPeer();
  });
  afterAll(() => peer.close());
  const http = fetchHttp({ allow: ['127.0.0.1'] });

  it('makes the call that the config describes', async () => {
    const output = await runWith(http, {
      url: `${peer.baseUrl}/echo`,
      method: 'POST',
      query: { q: 'ö' },
      body: { a: 1 },
    });
    expect(output.body).toMatchObject({
      method: 'POST',
      url: '/echo?q=%C3%B6',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'key-1', 'content-length': '7' },
      body: Buffer.from('{"a":1}').toString('base64'),
    });
  });

  it('an error page and a redirect fail the agent', async () => {
    await expect(runWith(http, { url: `${peer.baseUrl}/status/503` })).rejects.toMatchObject({
      retryable: true,
      details: { status: 503 },
    });
    await expect(runWith(http, { url: `${peer.baseUrl}/redirect` })).rejects.toMatchObject({
      retryable: false,
      details: { status: 302 },
    });
  });

  it('a header with a line break from an expression fails the agent', async () => {
    await expect(
      runWith(http, { url: `${peer.baseUrl}/echo`, headers: { 'X-A': 'b\r\nX-C: d' } }),
    ).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      retryable: false,
    });
  });

  it('a private address in an evaluated url fails the agent, not retryable', async () => {
    await expect(runWith(http, { url: 'http://169.254.169.254/latest/meta-data' })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      retryable: false,
    });
  });
});

describe('api: errors of another HTTP client', () => {
  const text = 'connect ECONNREFUSED 10.1.2.3:443 user=app password=hunter2';
  const failing = (thrown: unknown) => ({ send: () => Promise.reject(thrown) });

  it('are logged, and callers receive the message of the operation', async () => {
    const lines: unknown[] = [];
    const orchestrator = createTestOrchestrator({
      errors: { stack: false },
      ensembles: [{ name: 'e', flow: [{ agent: 'a', operation: 'api', config: { url: `${url}?token=planted` } }] }],
      http: failing(new Error(text)) as never,
      logger: { ...logger, error: (fields) => void lines.push(fields) },
    });
    const { id, error } = await orchestrator.execute('e');
    expect(error).toEqual({
      agent: 'a',
      code: 'AGENT_FAILED',
      message: `GET ${url} failed in the HTTP client; the log has its error`,
    });
    expect(lines).toMatchObject([{ err: { message: text }, executionId: id, agent: 'a' }]);
  });

  it("an OrchestratorError is passed on, and so is the reason of the step's signal", async () => {
    const own = new OrchestratorError('TIMEOUT', 'took too long', { retryable: true });
    await expect(runWith(failing(own), { url })).rejects.toBe(own);
    const reason = new Error('the run was cancelled');
    await expect(runWith(failing(reason), { url }, AbortSignal.abort(reason))).rejects.toBe(reason);
  });
});
