/** What every response contains, and what no response reveals. */

import { beforeEach, describe, expect, it } from 'vitest';
import type { ErrorCode } from '../../src/engine/base/errors.ts';
import { OrchestratorError } from '../../src/engine/base/errors.ts';
import { STATUS } from '../../src/http-handlers/reply/status.ts';
import { type Ask, HOSTS } from './hosts.ts';
import { createService, post, readResponse, type Service } from './service.ts';

const ECHO = '/api/v1/execute/ensemble/echo';

describe.each(HOSTS)('responses by $host', ({ open }) => {
  let service: Service;
  let ask: Ask;
  let headers: { authorization: string };
  beforeEach(async () => {
    service = createService();
    ask = await open(service.handler);
    headers = await service.bearer('execute:ensembles');
  });

  it('every response, whatever its status, has the security headers and a request id', async () => {
    const responses = await Promise.all([
      ask('/api/v1/health'),
      ask(ECHO, post({}, headers)),
      ask(ECHO, post({ async: true }, headers)),
      ask(ECHO, post('[', headers)),
      ask(ECHO, post({})),
      ask('/api/v1/tokens', { headers }),
      ask('/api/v1/nothing'),
      ask(ECHO, { method: 'PUT' }),
      ask(ECHO, { method: 'POST', headers: { ...headers, 'content-type': 'text/html' }, body: '<b>' }),
      ask('/api/v1/execute/ensemble/failing', post({}, headers)),
    ]);
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 202, 400, 401, 403, 404, 405, 415, 500]);
    for (const response of responses) {
      expect(Object.fromEntries(response.headers)).toMatchObject({
        'content-type': 'application/json; charset=utf-8',
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
        'content-security-policy': 'sandbox',
        'x-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
      });
      expect(response.headers.get('access-control-allow-origin')).toBeNull();
    }
    expect(new Set(responses.map((response) => response.headers.get('x-request-id'))).size).toBe(responses.length);
  });

  it.each([
    ['a', true],
    ['req_01.ABC-xyz', true],
    ['a'.repeat(128), true],
    ['a'.repeat(129), false],
    ['a b', false],
    ['<script>', false],
    ['a,b', false],
    ['a;b', false],
  ])('X-Request-Id `%s` is used: %s', async (id, taken) => {
    const response = await ask('/api/v1/health', { headers: { 'x-request-id': id } });
    expect(response.headers.get('x-request-id') === id).toBe(taken);
  });

  it('an output stays data: markup in it is JSON text that no browser renders', async () => {
    const value = '</script><img src=x onerror=alert(1)>';
    const response = await ask(ECHO, post({ input: { value } }, headers));
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect((await readResponse(response)).body).toMatchObject({ output: { said: { value } } });
  });

  it.each([
    ['an error of the storage', new Error('connect ECONNREFUSED 10.0.0.7:5432 password=hunter2')],
    ['a thrown value that is not an error', { sql: 'SELECT secret' }],
    ['a missing option', new OrchestratorError('NOT_CONFIGURED', 'set hunter2', { details: { secret: 'hunter2' } })],
    [
      "the library's own INTERNAL",
      new OrchestratorError('INTERNAL', 'hunter2 at /srv/app.js', { details: { stack: 'hunter2' } }),
    ],
  ])('%s is shown only in the log, with the request id', async (_what, thrown) => {
    Object.assign(service.orchestrator, { start: () => Promise.reject(thrown) });
    const response = await readResponse(ask(ECHO, post({}, { ...headers, 'x-request-id': 'r-7' })));
    expect(response.status).toBe(500);
    expect(Object.keys(response.body.error)).toEqual(['code', 'message']);
    expect(JSON.stringify(response.body)).not.toMatch(/hunter2|10\.0\.0|SELECT|srv/);
    const shown = thrown instanceof Error ? { name: thrown.name, message: thrown.message } : thrown;
    expect(service.log).toMatchObject([
      { level: 'error', fields: { err: shown, requestId: 'r-7', method: 'POST', path: ECHO } },
    ]);
  });

  it('a failure of the token store is 500, not 401', async () => {
    Object.assign(service.orchestrator.tokens, { verify: () => Promise.reject(new Error('disk full')) });
    expect(await readResponse(ask(ECHO, post({}, headers)))).toMatchObject({
      status: 500,
      body: { error: { code: 'INTERNAL' } },
    });
    expect(service.log).toMatchObject([{ level: 'error', fields: { err: { message: 'disk full' } } }]);
    expect((await ask('/api/v1/health')).status).toBe(200);
  });

  it('an orchestrator that accepts no new executions returns 503 with Retry-After', async () => {
    await service.orchestrator.close();
    const refused = new OrchestratorError('OVERLOADED', 'the orchestrator is closed', { retryable: true });
    Object.assign(service.orchestrator, { start: () => Promise.reject(refused) });
    Object.assign(service.orchestrator.tokens, {
      verify: async () => ({ tokenId: 't', name: 't', scopes: ['admin'], plan: 'free' }),
    });
    const response = await readResponse(ask(ECHO, post({}, headers)));
    expect(response).toMatchObject({ status: 503, body: { error: { code: 'OVERLOADED' } } });
    expect(response.headers.get('retry-after')).toBe('1');
  });

  it("a secret in an agent's message is masked in the response", async () => {
    const keeper = createService(
      {},
      {
        secrets: { API_KEY: 'sesame-open-1234' },
        scripts: {
          boom: () => {
            throw new Error('refused: sesame-open-1234');
          },
        },
      },
    );
    const call = await open(keeper.handler);
    const response = await readResponse(
      call('/api/v1/execute/ensemble/failing', post({}, await keeper.bearer('admin'))),
    );
    expect(response.status).toBe(500);
    expect(response.body.error.message).toMatch(/^refused: /);
    expect(JSON.stringify(response.body)).not.toContain('sesame-open-1234');
  });
});

describe('cross-origin calls', () => {
  const ORIGIN = 'https://app.example';

  it.each([ORIGIN, 'null', 'https://evil.example'])('by default %s gets no CORS header', async (origin) => {
    const { handler } = createService();
    for (const method of ['GET', 'OPTIONS']) {
      const response = await handler.fetch(
        new Request('http://service.test/api/v1/health', { method, headers: { origin } }),
      );
      expect(
        [...response.headers.keys()].filter((name) => name.startsWith('access-control') || name === 'vary'),
      ).toEqual([]);
    }
  });

  it.each(HOSTS)('a listed origin may call, others may not, and never with credentials ($host)', async ({ open }) => {
    const ask = await open(createService({ cors: [ORIGIN] }).handler);
    const allowed = async (origin: string, path = '/api/v1/health') => {
      const response = await ask(path, { headers: { origin } });
      expect(response.headers.get('vary')).toBe('Origin');
      expect(response.headers.get('access-control-allow-credentials')).toBeNull();
      return response.headers.get('access-control-allow-origin');
    };
    expect(await allowed(ORIGIN)).toBe(ORIGIN);
    expect(await allowed(ORIGIN, '/api/v1/tokens')).toBe(ORIGIN);
    for (const other of [
      'null',
      'http://app.example',
      'https://app.example.evil',
      'https://sub.app.example',
      'https://app.example:444',
    ]) {
      expect([other, await allowed(other)]).toEqual([other, null]);
    }
    const preflight = await ask('/api/v1/execute/ensemble/echo', {
      method: 'OPTIONS',
      headers: {
        origin: ORIGIN,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization, content-type',
      },
    });
    expect(preflight.status).toBe(204);
    expect(Object.fromEntries(preflight.headers)).toMatchObject({
      'access-control-allow-origin': ORIGIN,
      'access-control-allow-methods': expect.stringContaining('POST'),
      'access-control-allow-headers': expect.stringMatching(/Authorization.*Content-Type.*x-service-api-key/),
    });
  });

  it.each([
    ['*'],
    ['null'],
    ['app.example'],
    ['https://app.example/'],
    ['https://app.example/path'],
    ['https://*.example'],
    ['HTTPS://app.example'],
    [''],
  ])('`cors: [%j]` is refused', (origin) => {
    expect(() => createService({ cors: [origin] })).toThrow(TypeError);
  });
});

describe('options of a handler', () => {
  it.each([
    [{ basepath: '/x' }, /handler: `basepath` is not an option of this version; did you mean `basePath`/],
    [{ trustProxy: 0 }, /`trustProxy` must be a boolean, the number of proxies/],
    [{ trustProxy: ['10.0.0.0/40'] }, /"10.0.0.0\/40" is not an address or a range/],
    [{ basePath: '/x/' }, /basePath/],
    [{ basePath: 'x' }, /basePath/],
    [{ basePath: '/a/../b' }, /basePath/],
    [{ basePath: '/%61' }, /basePath/],
    [{ maxBodyBytes: 0 }, /maxBodyBytes/],
    [{ maxBodyBytes: Number.NaN }, /maxBodyBytes/],
    [{ syncTimeoutMs: 2 ** 31 }, /syncTimeoutMs/],
    [{ heartbeatMs: -1 }, /heartbeatMs/],
    [{ cors: 'https://app.example' }, /cors/],
  ])('%j is refused with a TypeError that names it', (options, message) => {
    const make = () => createService(options as never);
    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
  });
});

describe('the table of statuses', () => {
  it('gives the error codes their statuses', () => {
    const table: Partial<Record<ErrorCode, number>> = {
      UNAUTHORIZED: 401,
      TOKEN_EXPIRED: 401,
      FORBIDDEN: 403,
      NOT_FOUND: 404,
      METHOD_NOT_ALLOWED: 405,
      CONFLICT: 409,
      EXECUTION_CANCELLED: 409,
      PAYLOAD_TOO_LARGE: 413,
      UNSUPPORTED_MEDIA_TYPE: 415,
      INVALID_REQUEST: 400,
      INVALID_INPUT: 400,
      INVALID_DEFINITION: 400,
      INVALID_CURSOR: 400,
      EXECUTION_FAILED: 500,
      EXECUTION_TIMEOUT: 504,
      NOT_CONFIGURED: 500,
      INTERNAL: 500,
      OVERLOADED: 503,
    };
    expect(STATUS).toMatchObject(table);
  });
});
