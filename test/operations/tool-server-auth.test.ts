/** Credentials of tool servers: bearer tokens, OAuth tokens and signatures. */

import { createHmac } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import type { ToolServerOptions } from '../../src/index.ts';
import { type Answer, type LocalServer, localHttp, reply, startServer } from './tool-server.ts';

let server: LocalServer;
let tokens: LocalServer;
/** The tokens that the token server gave and the tool server takes. */
let valid: Set<string>;

beforeEach(async () => {
  server = await startServer();
  tokens = await startServer();
  valid = new Set();
  tokens.answer = giving({ expires_in: 3600 });
  server.answer = (request, response) =>
    valid.has(request.headers.authorization ?? '') ? { content: 'ok' } : reply(401)(request, response);
});
afterEach(() => Promise.all([server.close(), tokens.close()]));

/** Gives the tokens t1, t2, ... with these fields. */
function giving(fields: object): Answer {
  return () => {
    const token = `token-number-${tokens.requests.length}`;
    valid.add(`Bearer ${token}`);
    return { access_token: token, token_type: 'Bearer', ...fields };
  };
}

const oauth = () => ({
  type: 'oauth' as const,
  clientId: 'client one',
  clientSecret: 'planted:secret/+é',
  tokenUrl: `${tokens.url}/token?tenant=1`,
});

const calls = (count: number) => ({
  foreach: `\${slice(input.all, 0, ${count})}`,
  concurrency: count,
  collect: false,
  steps: [{ agent: 'a', operation: 'tools', config: { mcp: 'crm', tool: 'x' }, input: {} }],
});
const ALL = Array.from({ length: 100 }, (_, i) => i);

function started(options: Partial<ToolServerOptions>, more: object = {}) {
  const one = { agent: 'a', operation: 'tools', config: { mcp: 'crm', tool: 'x' }, input: {} };
  return createTestOrchestrator({
    ensembles: [
      { name: 'one', flow: [one], outputs: { content: '${a.output.content}' } } as never,
      { name: 'retried', flow: [{ ...one, retry: { maxAttempts: 2 } }] } as never,
      { name: 'many', flow: [calls(100)] } as never,
    ],
    mcpServers: { crm: { url: server.url, ...options } },
    http: localHttp(),
    ...more,
  });
}

describe('a bearer token', () => {
  test('is sent as `Authorization: Bearer <token>`, and a 401 is not repeated', async () => {
    valid.add('Bearer fixed-token');
    const orchestrator = started({ auth: { type: 'bearer', token: 'fixed-token' } });
    expect((await orchestrator.execute('one')).output).toEqual({ content: 'ok' });
    valid.clear();
    expect((await orchestrator.execute('retried')).error).toMatchObject({ details: { status: 401 } });
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual(Array(2).fill('Bearer fixed-token'));
    await orchestrator.close();
  });
});

describe('an OAuth token', () => {
  test('is asked for with client credentials, once, and sent with each call', async () => {
    const orchestrator = started({ auth: oauth() });
    for (let i = 0; i < 3; i++) expect((await orchestrator.execute('one')).status).toBe('completed');
    expect(tokens.requests).toHaveLength(1);
    const [request] = tokens.requests;
    expect(request).toMatchObject({ method: 'POST', target: '/token?tenant=1', body: 'grant_type=client_credentials' });
    expect(request?.headers).toMatchObject({
      'content-type': 'application/x-www-form-urlencoded',
      accept: 'application/json',
      // RFC 6749, section 2.3.1: both are form-encoded first.
      authorization: `Basic ${Buffer.from('client+one:planted%3Asecret%2F%2B%C3%A9').toString('base64')}`,
    });
    await orchestrator.close();
  });

  test('100 parallel calls share one request for it', async () => {
    const orchestrator = started({ auth: oauth() });
    expect((await orchestrator.execute('many', { all: ALL })).status).toBe('completed');
    expect(server.requests).toHaveLength(100);
    expect(tokens.requests).toHaveLength(1);
    await orchestrator.close();
  });

  test('a storm of 401 answers to 100 parallel calls gets one renewal, and each call is repeated once', async () => {
    const orchestrator = started({ auth: oauth() });
    await orchestrator.execute('one');
    valid.clear();
    expect((await orchestrator.execute('many', { all: ALL })).status).toBe('completed');
    expect(tokens.requests).toHaveLength(2);
    expect(server.requests).toHaveLength(1 + 200);
    await orchestrator.close();
  });

  test('a call that learns late of its 401 uses the token that another call has obtained', async () => {
    const orchestrator = started({ auth: oauth() });
    await orchestrator.execute('one');
    valid.clear();
    let late: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      late = resolve;
    });
    const check = server.answer;
    let first = true;
    server.answer = async (request, response) => {
      if (first) {
        first = false;
        await held;
        return reply(401)(request, response);
      }
      return check(request, response);
    };
    const slow = orchestrator.execute('one');
    while (server.requests.length < 2) await new Promise((resolve) => setTimeout(resolve, 2));
    await orchestrator.execute('one');
    late();
    expect((await slow).status).toBe('completed');
    expect(tokens.requests).toHaveLength(2);
    await orchestrator.close();
  });

  test('a server that refuses every token gets one repeat, and no loop', async () => {
    server.answer = reply(401, 'who?');
    const orchestrator = started({ auth: oauth() });
    const { error } = await orchestrator.execute('retried');
    expect(error).toMatchObject({ code: 'AGENT_FAILED', details: { status: 401, body: 'who?' } });
    expect(server.requests).toHaveLength(2);
    expect(tokens.requests).toHaveLength(2);
    await orchestrator.close();
  });

  test('the repeat after a 401 has the same Idempotency-Key and a fresh signature', async () => {
    const orchestrator = started({ auth: oauth(), secret: 'planted-signing-secret' });
    await orchestrator.execute('one');
    valid.clear();
    const renewed = giving({ expires_in: 3600 });
    tokens.answer = async (...given) => {
      await orchestrator.clock.advance(5_000);
      return renewed(...given);
    };
    await orchestrator.execute('one');
    const [, refused, repeated] = server.requests.map(({ headers }) => headers);
    expect(refused?.['idempotency-key']).toBe(repeated?.['idempotency-key']);
    expect(Number(repeated?.['x-service-timestamp']) - Number(refused?.['x-service-timestamp'])).toBe(5);
    await orchestrator.close();
  });

  test('is renewed 30 s before it expires', async () => {
    const orchestrator = started({ auth: oauth() });
    await orchestrator.execute('one');
    await orchestrator.clock.advance(3_569_000);
    await orchestrator.execute('one');
    expect(tokens.requests).toHaveLength(1);
    await orchestrator.clock.advance(1_000);
    await orchestrator.execute('one');
    expect(tokens.requests).toHaveLength(2);
    expect(server.requests.at(-1)?.headers.authorization).toBe('Bearer token-number-2');
    await orchestrator.close();
  });

  test('is renewed by the refresh token if there was one, and a new refresh token replaces the old one', async () => {
    tokens.answer = (...given) =>
      giving({ expires_in: 60, ...(tokens.requests.length < 3 && { refresh_token: `r ${tokens.requests.length}` }) })(
        ...given,
      );
    const orchestrator = started({ auth: oauth() });
    for (let i = 0; i < 4; i++) {
      expect((await orchestrator.execute('one')).status).toBe('completed');
      await orchestrator.clock.advance(60_000);
    }
    expect(tokens.requests.map(({ body }) => body)).toEqual([
      'grant_type=client_credentials',
      'grant_type=refresh_token&refresh_token=r+1',
      'grant_type=refresh_token&refresh_token=r+2',
      // The third answer had none: the old one stays.
      'grant_type=refresh_token&refresh_token=r+2',
    ]);
    await orchestrator.close();
  });

  test('a refresh token that is refused is followed by client credentials', async () => {
    const give = giving({ expires_in: 60, refresh_token: 'r' });
    tokens.answer = (request, response) =>
      request.body.includes('refresh_token')
        ? reply(400, '{"error":"invalid_grant"}', { 'content-type': 'application/json' })(request, response)
        : give(request, response);
    const orchestrator = started({ auth: oauth() });
    await orchestrator.execute('one');
    await orchestrator.clock.advance(60_000);
    expect((await orchestrator.execute('one')).status).toBe('completed');
    expect(tokens.requests.map(({ body }) => body.split('&')[0])).toEqual([
      'grant_type=client_credentials',
      'grant_type=refresh_token',
      'grant_type=client_credentials',
    ]);
    await orchestrator.close();
  });

  it.each<[string, unknown, number]>([
    ['missing: an hour', undefined, 3_600_000 - 30_000],
    ['null: an hour', null, 3_600_000 - 30_000],
    ['text that is no number: an hour', 'soon', 3_600_000 - 30_000],
    ['text with a number', '120', 90_000],
    ['20: half of that', 20, 10_000],
    ['1e12: a day', 1e12, 86_400_000 - 30_000],
  ])('expires_in %s', async (_what, seconds, usedForMs) => {
    tokens.answer = giving({ expires_in: seconds });
    const orchestrator = started({ auth: oauth() });
    await orchestrator.execute('one');
    await orchestrator.clock.advance(usedForMs - 1);
    await orchestrator.execute('one');
    expect(tokens.requests).toHaveLength(1);
    await orchestrator.clock.advance(1);
    await orchestrator.execute('one');
    expect(tokens.requests).toHaveLength(2);
    await orchestrator.close();
  });

  it.each([[0], [-1], ['0'], [-1e12]])(
    'expires_in %j: the token serves the calls that asked for it, and no later one',
    async (seconds) => {
      tokens.answer = giving({ expires_in: seconds });
      const orchestrator = started({ auth: oauth() });
      for (let i = 0; i < 2; i++) expect((await orchestrator.execute('one')).status).toBe('completed');
      expect(tokens.requests).toHaveLength(2);
      expect((await orchestrator.execute('many', { all: ALL })).status).toBe('completed');
      await orchestrator.close();
    },
  );

  it.each<[string, Answer, object, string]>([
    [
      'a status',
      reply(400, '{"error":"invalid_client","error_description":"planted echo"}'),
      { status: 400, reason: 'token' },
      'answered 400; the error is invalid_client',
    ],
    [
      'an error code that is none',
      reply(400, '{"error":"planted echo"}'),
      { status: 400, reason: 'token' },
      'answered 400',
    ],
    [
      'a redirect',
      reply(302, '', { location: 'http://169.254.169.254/' }),
      { status: 302, reason: 'token' },
      'redirects are not followed',
    ],
    [
      'a line break in the token',
      () => ({ access_token: 'planted\r\nX: y', token_type: 'bearer' }),
      { reason: 'token' },
      'a header can not carry',
    ],
    [
      'a space in the token',
      () => ({ access_token: 'planted token', token_type: 'bearer' }),
      { reason: 'token' },
      'a header can not carry',
    ],
    ['no token', () => ({ token_type: 'bearer' }), { reason: 'token' }, 'no `access_token`'],
    ['another type', () => ({ access_token: 'planted', token_type: 'mac' }), { reason: 'token' }, '`token_type`'],
    [
      'text',
      reply(200, 'access_token=planted', { 'content-type': 'text/plain' }),
      { reason: 'token' },
      'no `access_token`',
    ],
    [
      '1 GB',
      (_request, response) => void response.end(Buffer.alloc(1024 * 1024, 0x20)),
      { reason: 'too-large' },
      'POST http',
    ],
  ])('%s instead of a token fails the agent, and no call is made', async (_what, answer, details, message) => {
    tokens.answer = answer;
    const orchestrator = started({ auth: oauth() });
    const { error } = await orchestrator.execute('retried');
    expect(error).toMatchObject({ code: 'AGENT_FAILED', details });
    expect(error?.message).toContain(message);
    expect(JSON.stringify(error)).not.toMatch(/planted|tenant=1/);
    expect(server.requests).toEqual([]);
    expect(tokens.requests).toHaveLength(1);
    await orchestrator.close();
  });

  test('a token server that is busy is asked again after its Retry-After', async () => {
    const give = giving({});
    tokens.answer = (request, response) =>
      tokens.requests.length > 1 ? give(request, response) : reply(503, '', { 'retry-after': '90' })(request, response);
    const orchestrator = started({ auth: oauth() });
    const began = orchestrator.clock.now();
    expect((await orchestrator.execute('retried')).status).toBe('completed');
    expect(orchestrator.clock.now() - began).toBeGreaterThanOrEqual(90_000);
    await orchestrator.close();
  });

  test('a tokenUrl at a private address is refused like any other address', async () => {
    const orchestrator = started({ auth: { ...oauth(), tokenUrl: 'http://169.254.169.254/token' } });
    expect((await orchestrator.execute('one')).error).toMatchObject({
      code: 'INVALID_REQUEST',
      details: { reason: 'address' },
    });
    await orchestrator.close();
  });

  test('a cancelled call does not take the token from the calls that wait for the same one', async () => {
    let give: () => void = () => {};
    const given = giving({});
    tokens.answer = async (request, response) => {
      await new Promise<void>((resolve) => {
        give = resolve;
      });
      return given(request, response);
    };
    const orchestrator = started({ auth: oauth() });
    const [first, second] = [await orchestrator.start('one'), await orchestrator.start('one')];
    while (tokens.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 2));
    await first.cancel();
    give();
    expect((await second.result()).status).toBe('completed');
    expect(tokens.requests).toHaveLength(1);
    await orchestrator.close();
  });

  test('the request for a token ends with the last call that waits for it', async () => {
    let closed: () => void = () => {};
    const isClosed = new Promise<void>((resolve) => {
      closed = resolve;
    });
    tokens.answer = (_request, response) => void response.on('close', closed);
    const orchestrator = started({ auth: oauth(), timeout: 1_000 });
    const handle = await orchestrator.start('one');
    while (tokens.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 2));
    await orchestrator.clock.advance(1_000);
    expect((await handle.result()).error?.code).toBe('TIMEOUT');
    await isClosed;
    await orchestrator.close();
  });

  test('two orchestrators share no token', async () => {
    const orchestrators = [started({ auth: oauth() }), started({ auth: oauth() })];
    for (const orchestrator of orchestrators) await orchestrator.execute('one');
    expect(tokens.requests).toHaveLength(2);
    for (const orchestrator of orchestrators) await orchestrator.close();
  });
});

describe('a signature', () => {
  test.each<[string | undefined, string]>([
    [undefined, 'service'],
    ['acme', 'acme'],
  ])(
    'brand %j: HMAC-SHA256 over <timestamp>.<body>, in X-<brand>-Signature and X-<brand>-Timestamp',
    async (brand, word) => {
      server.answer = () => ({ content: 1 });
      const orchestrator = started({ secret: 'planted-signing-secret' }, brand === undefined ? {} : { brand });
      orchestrator.clock.setNow(1_767_225_600_999);
      await orchestrator.execute('one');
      const [request] = server.requests;
      const timestamp = request?.headers[`x-${word}-timestamp`];
      expect(timestamp).toBe('1767225600');
      const expected = createHmac('sha256', 'planted-signing-secret')
        .update(`${timestamp}.${request?.body}`)
        .digest('hex');
      expect(request?.headers[`x-${word}-signature`]).toBe(`sha256=${expected}`);
      await orchestrator.close();
    },
  );

  test('is fresh for each attempt, over the same body', async () => {
    server.answer = reply(503);
    const orchestrator = started({ secret: 'planted-signing-secret' });
    await orchestrator.execute('retried');
    const [first, second] = server.requests;
    expect(first?.body).toBe(second?.body);
    expect(first?.headers['x-service-timestamp']).not.toBe(second?.headers['x-service-timestamp']);
    expect(first?.headers['x-service-signature']).not.toBe(second?.headers['x-service-signature']);
    await orchestrator.close();
  });
});

// The second begins its echo of the token right before the cut of an answer.
test.each([[0], [720]])(
  'no secret is in errors, records, events and logs, when every server echoes what it receives after %i characters',
  async (length) => {
    const echo: Answer = (request, response) =>
      void response
        .writeHead(400, { 'content-type': 'text/plain' })
        .end(`${'x'.repeat(length)} ${JSON.stringify(request.headers)} ${request.body}`);
    server.answer = echo;
    const seen: unknown[] = [];
    const line = (fields: object, message?: string) =>
      void seen.push(fields, message, (fields as { err?: Error }).err?.stack);
    const orchestrator = started(
      { url: `${server.url}/?key=planted-key`, auth: oauth(), secret: 'planted-signing-secret' },
      { logger: { debug: line, info: line, warn: line, error: line } },
    );
    orchestrator.on('*', (event) => void seen.push(event));
    const executions = [await orchestrator.execute('retried')];
    tokens.answer = echo;
    await orchestrator.clock.advance(3_600_000);
    executions.push(await orchestrator.execute('retried'));
    const bearer = started({ auth: { type: 'bearer', token: 'planted-bearer-token' } });
    executions.push(await bearer.execute('retried'));
    expect(executions.map(({ status }) => status)).toEqual(['failed', 'failed', 'failed']);
    const text = JSON.stringify([executions, seen]);
    const signatures = server.requests.flatMap(({ headers }) => headers['x-service-signature']?.slice(-64) ?? []);
    for (const secret of ['planted', 'token-number', Buffer.from('client+one:').toString('base64'), ...signatures]) {
      expect(text).not.toContain(secret);
    }
    expect(signatures.length).toBeGreaterThan(0);
    await orchestrator.close();
    await bearer.close();
  },
);

test('the credentials of servers are masked wherever they appear, as secrets are', async () => {
  const auth = { type: 'bearer', token: 'planted-bearer-token' } as const;
  const lines: unknown[] = [];
  const line = (...given: unknown[]) => void lines.push(...given);
  const orchestrator = createTestOrchestrator({
    ensembles: ['name: leak\nflow:\n  - { agent: a, operation: code, config: { script: leak } }'],
    scripts: {
      leak: ({ logger }) => {
        logger.info({ token: auth.token }, oauth().clientSecret);
        throw new Error(`${auth.token} ${oauth().clientSecret} planted-signing-secret`);
      },
    },
    mcpServers: {
      a: { url: server.url, auth },
      b: { url: server.url, auth: oauth(), secret: 'planted-signing-secret' },
    },
    logger: { debug: line, info: line, warn: line, error: line },
  });
  expect((await orchestrator.execute('leak')).error?.message).toBe('*** *** ***');
  expect(lines.length).toBeGreaterThan(2);
  expect(JSON.stringify(lines)).not.toContain('planted');
  await orchestrator.close();
});
