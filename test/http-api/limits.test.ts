/** The limits of callers and addresses: what is counted, the headers of every response, quotas and usage. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import type { LimitStore } from '../../src/engine/access/limit-store.port.ts';
import type { Plan } from '../../src/engine/access/plan.ts';
import { tokenKey } from '../../src/engine/access/request-log.ts';
import type { TokenScope } from '../../src/engine/access/token.ts';
import type { HandlerOptions } from '../../src/http-handlers/handler-options.ts';
import type { OrchestratorOptions } from '../../src/orchestrator/options/options.ts';
import { createService, post, readResponse } from './service.ts';

const ECHO = {
  name: 'echo',
  flow: [{ agent: 'say', operation: 'code', config: { script: 'echo' }, input: '${input}' }],
};
const SLOW = { name: 'slow', flow: [{ agent: 'wait', operation: 'code', config: { script: 'wait' } }] };
const HOUR = 3_600_000;
const RATE_HEADERS = ['limit', 'remaining', 'reset', 'retry-after'].map((name) => `x-ratelimit-${name}`);

function open(options: HandlerOptions = {}, more: OrchestratorOptions = {}) {
  const service = createService(options, more);
  const tokenOf = async (plan?: Plan, ...scopes: TokenScope[]) => {
    const given = { name: 'test', scopes: scopes.length > 0 ? scopes : (['admin'] as const) };
    const { token } = await service.orchestrator.tokens.create({ ...given, ...(plan !== undefined && { plan }) });
    return { authorization: `Bearer ${token}` };
  };
  const ask = (path: string, init: RequestInit = {}, ip: string | undefined = '192.0.2.1') =>
    readResponse(service.handler.fetch(new Request(`http://localhost/api/v1${path}`, init), ip ? { ip } : {}));
  return { ...service, tokenOf, ask };
}

const ratesOf = ({ headers }: { headers: Headers }) => RATE_HEADERS.map((name) => headers.get(name));
const seconds = (instant: number) => String(Math.ceil(instant / 1000));

describe('the sliding window of a token', () => {
  it('the request after the last one is 429 with the headers and the body of the specification, until the first leaves the window', async () => {
    const { ask, tokenOf, clock } = open();
    const headers = await tokenOf({ requests: 3, window: 60 });
    const start = clock.now();
    for (const left of [2, 1, 0]) {
      const answer = await ask('/usage', { headers });
      expect([answer.status, ratesOf(answer)]).toEqual([200, ['3', String(left), seconds(start + 60_000), null]]);
      await clock.advance(1000);
    }
    const refused = await ask('/usage', { headers });
    expect([refused.status, refused.headers.get('retry-after'), ratesOf(refused)]).toEqual([
      ...[429, '57'],
      ['3', '0', seconds(start + 60_000), '57'],
    ]);
    expect(refused.body).toEqual({
      error: {
        code: 'RATE_LIMIT_EXCEEDED',
        message: 'the limit of 3 requests is reached; send the next one in 57 seconds',
        limit: 3,
        reset: Math.ceil((start + 60_000) / 1000),
        retryAfter: 57,
      },
    });
    await clock.advance(57_000);
    expect((await ask('/usage', { headers })).status).toBe(200);
    expect((await ask('/usage', { headers })).status).toBe(429);
  });

  it.each([
    ['free', 100],
    ['pro', 1_000],
    ['enterprise', Number.MAX_SAFE_INTEGER],
  ] as const)('plan %s has a limit of %d in an hour', async (plan, limit) => {
    const { ask, tokenOf, clock } = open();
    const answer = await ask('/usage', { headers: await tokenOf(plan) });
    expect(ratesOf(answer)).toEqual([String(limit), String(limit - 1), seconds(clock.now() + HOUR), null]);
  });

  it('a client that waits for Retry-After is served, whenever it is refused', async () => {
    const { ask, tokenOf, clock } = open();
    const headers = await tokenOf({ requests: 5, window: 7 });
    let refusals = 0;
    for (let i = 0; i < 200; i++) {
      await clock.advance((i * 37) % 400);
      const answer = await ask('/usage', { headers });
      expect(Number(answer.headers.get('x-ratelimit-remaining'))).toBeGreaterThanOrEqual(0);
      expect(Number(answer.headers.get('x-ratelimit-reset')) * 1000).toBeGreaterThanOrEqual(clock.now());
      if (answer.status === 200) continue;
      refusals += 1;
      await clock.advance(Number(answer.headers.get('retry-after')) * 1000);
      expect((await ask('/usage', { headers })).status).toBe(200);
    }
    expect(refusals).toBeGreaterThan(20);
  });

  it('each token has its own window', async () => {
    const { ask, tokenOf } = open({}, { limits: { perIp: 1_000 } });
    const [one, other] = [await tokenOf({ requests: 1 }), await tokenOf({ requests: 1 })];
    expect((await ask('/usage', { headers: one })).status).toBe(200);
    expect((await ask('/usage', { headers: one })).status).toBe(429);
    expect((await ask('/usage', { headers: other })).status).toBe(200);
  });
});

describe('the window of an address', () => {
  it('many tokens from one address share it, and the tightest limit is reported', async () => {
    const { ask, tokenOf } = open({}, { limits: { perIp: 3 } });
    const tokens = await Promise.all([1, 2, 3, 4].map(() => tokenOf('pro')));
    const answers = [];
    for (const headers of tokens) answers.push(await ask('/usage', { headers }));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429]);
    expect(answers.map((answer) => ratesOf(answer)[0])).toEqual(['3', '3', '3', '3']);
    expect((await ask('/usage', { headers: tokens[3] as { authorization: string } }, '192.0.2.2')).status).toBe(200);
  });

  it.each([
    ['401: no token', '/usage', {}],
    ['401: a wrong token', '/usage', { headers: { authorization: 'Bearer sk-service-no' } }],
    ['404', '/nothing', {}],
    ['405', '/usage', { method: 'DELETE' }],
    ['OPTIONS', '/usage', { method: 'OPTIONS' }],
  ])('a flood that is answered %s is counted by the plan free, and refused', async (_, path, init) => {
    const { ask } = open({}, { limits: { rateLimit: { requests: 5, window: 60 } } });
    const statuses = [];
    for (let i = 0; i < 7; i++) statuses.push((await ask(path, init)).status);
    expect(statuses.slice(5)).toEqual([429, 429]);
    expect(statuses.slice(0, 5)).not.toContain(429);
    expect((await ask(path, init, '192.0.2.9')).status).not.toBe(429);
  });

  it.each([
    ['addresses of one IPv6 network of 56 bits', '2001:db8:1:aa00::1', '2001:DB8:1:aaff:1:2:3:4', true],
    ['addresses of two such networks', '2001:db8:1:aa00::1', '2001:db8:1:ab00::1', false],
    ['an IPv4 address, and the same one written as IPv6', '192.0.2.7', '::ffff:192.0.2.7', true],
    ['two IPv4 addresses written as IPv6', '::ffff:192.0.2.7', '::ffff:192.0.2.8', false],
    ['an address with and without a zone', 'fe80::1', 'fe80::1%eth0', true],
  ])('%s: %s and %s share a window: %s', async (_, one, other, isShared) => {
    const { ask } = open({}, { limits: { perIp: 1 } });
    expect((await ask('/usage', {}, one)).status).toBe(401);
    expect((await ask('/usage', {}, other)).status).toBe(isShared ? 429 : 401);
  });

  it('a token of a small plan is not refused because of a larger one at its address, nor because of requests without a token', async () => {
    const { ask, tokenOf } = open();
    const custom = await tokenOf({ requests: 5_000 });
    for (let i = 0; i < 1_200; i++) await ask('/usage', { headers: custom });
    const pro = await tokenOf('pro');
    for (let i = 0; i < 500; i++) await ask('/usage', { headers: pro });
    for (let i = 0; i < 101; i++) await ask('/usage');
    expect((await ask('/usage')).status).toBe(429);
    const free = await tokenOf('free');
    const answers = [];
    for (let i = 0; i < 101; i++) answers.push(await ask('/usage', { headers: free }));
    expect(answers.map(({ status }) => status)).toEqual([...Array(100).fill(200), 429]);
    expect(ratesOf(answers[100] as (typeof answers)[0])[0]).toBe('100');
  });

  it('the tokens of named plans at one address have the requests of the largest one together', async () => {
    const { ask, tokenOf } = open({}, { limits: { enterprise: { requests: 1_001 } } });
    const statuses = [];
    for (let i = 0; i < 2; i++) {
      const headers = await tokenOf('pro');
      for (let n = 0; n < 501; n++) statuses.push((await ask('/usage', { headers })).status);
    }
    expect(statuses.indexOf(429)).toBe(1_001);
  });

  it('without an address, tokens are counted alone, other requests share a window of ten times the size, and a warning is logged once', async () => {
    const warnings: (string | undefined)[] = [];
    const warn = ({ use }: { use?: string }, message?: string) => void warnings.push(`${message}: ${use}`);
    const logger = { debug() {}, info() {}, error() {}, warn };
    const { ask, tokenOf } = open({}, { limits: { perIp: 1 }, logger });
    const headers = await tokenOf('pro');
    for (let i = 0; i < 3; i++) expect((await ask('/usage', { headers }, '')).status).toBe(200);
    for (let i = 0; i < 9; i++) expect((await ask('/usage', {}, '')).status).toBe(401);
    expect((await ask('/usage', {}, '999.1.1.1')).status).toBe(401);
    const refused = await ask('/usage', {}, 'no address');
    expect([refused.status, refused.body.error.message]).toEqual([
      429,
      'the limit of 10 requests of all clients without a known address is reached; send the next one in 3600 seconds',
    ]);
    expect(warnings).toEqual([
      expect.stringMatching(/^the address of a client is not known.*: .*toNodeListener\(handler\).*getConnInfo/),
    ]);
  });

  it('GET /health is neither limited nor counted, and has no headers of a limit', async () => {
    const { ask } = open({}, { limits: { perIp: 1 } });
    for (let i = 0; i < 3; i++) expect(ratesOf(await ask('/health'))).toEqual([null, null, null, null]);
    expect((await ask('/usage')).status).toBe(401);
  });

  it('the question of a browser before a call of an allowed page is not counted; that of any other page is', async () => {
    const { ask } = open({ cors: ['https://app.example'] }, { limits: { perIp: 1 } });
    const preflight = (origin: string) =>
      ask('/usage', { method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'GET' } });
    for (let i = 0; i < 3; i++) expect((await preflight('https://app.example')).status).toBe(204);
    expect((await preflight('https://other.example')).status).toBe(204);
    expect((await preflight('https://other.example')).status).toBe(429);
  });
});

describe('trustProxy', () => {
  const FORWARDED = { 'x-forwarded-for': '203.0.113.9, 198.51.100.7' };

  it.each([
    ['off', undefined, '192.0.2.1', FORWARDED, '192.0.2.1'],
    ['true: one proxy', true, '192.0.2.1', FORWARDED, '198.51.100.7'],
    ['two proxies', 2, '192.0.2.1', FORWARDED, '203.0.113.9'],
    ['more proxies than entries', 9, '192.0.2.1', FORWARDED, '203.0.113.9'],
    ['a trusted range', ['192.0.2.0/24'], '192.0.2.1', FORWARDED, '198.51.100.7'],
    ['two trusted ranges', ['192.0.2.0/24', '198.51.100.7'], '192.0.2.1', FORWARDED, '203.0.113.9'],
    ['a peer that is not trusted', ['10.0.0.0/8'], '192.0.2.1', FORWARDED, '192.0.2.1'],
    ['a peer written as IPv6', ['192.0.2.0/24'], '::ffff:192.0.2.1', FORWARDED, '198.51.100.7'],
    ['an entry with a port', true, '192.0.2.1', { 'x-forwarded-for': '198.51.100.7:4711' }, '198.51.100.7'],
    ['IPv6 in brackets with a port', true, '192.0.2.1', { 'x-forwarded-for': '[2001:db8::1]:4711' }, '2001:db8::1'],
    ['an entry that is no address', 2, '192.0.2.1', { 'x-forwarded-for': '203.0.113.9, evil' }, '192.0.2.1'],
    [
      'other headers',
      true,
      '192.0.2.1',
      { forwarded: 'for=203.0.113.9', 'cf-connecting-ip': '203.0.113.9' },
      '192.0.2.1',
    ],
  ] as const)('%s: the client is found from the right', async (_, trustProxy, peer, headers, client) => {
    const { ask } = open(trustProxy === undefined ? {} : { trustProxy }, { limits: { perIp: 1 } });
    expect((await ask('/usage', { headers }, peer)).status).toBe(401);
    // The same client, without a proxy, is over its limit.
    const direct = client === peer ? { 'x-forwarded-for': '' } : { 'x-forwarded-for': client };
    expect((await ask('/usage', { headers: trustProxy === undefined ? {} : direct }, peer)).status).toBe(429);
  });
});

describe('quotas', () => {
  const execute = (headers: Record<string, string>, more: Record<string, string> = {}) =>
    post({ input: { who: 'Ada' } }, { ...headers, ...more });

  it('an execution beyond the quota of the month is 429 with limit, used and reset; the next month begins with the whole quota', async () => {
    const { ask, tokenOf, clock, orchestrator } = open();
    const headers = await tokenOf({ executions: 2 });
    for (const more of [{}, { prefer: 'respond-async' }] as Record<string, string>[]) {
      expect((await ask('/execute/ensemble/greet', execute(headers, more))).status).toBeLessThan(300);
    }
    const now = new Date(clock.now());
    const end = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1);
    for (const more of [{}, { prefer: 'respond-async' }] as Record<string, string>[]) {
      const refused = await ask('/execute/ensemble/greet', execute(headers, more));
      const retryAfter = Math.ceil((end - clock.now()) / 1000);
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, String(retryAfter)]);
      expect(refused.body.error).toMatchObject({
        code: 'QUOTA_EXCEEDED',
        limit: 2,
        used: 2,
        reset: end / 1000,
        retryAfter,
      });
    }
    expect((await orchestrator.executions.list()).executions).toHaveLength(2);
    await clock.advance(end - clock.now() - 1);
    expect((await ask('/execute/ensemble/greet', execute(headers))).status).toBe(429);
    await clock.advance(1);
    expect((await ask('/execute/ensemble/greet', execute(headers))).status).toBe(200);
  });

  it('an invalid input, an unknown ensemble and the repetition of a key cost nothing; a retry costs an execution', async () => {
    const { ask, tokenOf } = open();
    const headers = await tokenOf({ executions: 3 });
    const used = async () => (await ask('/usage', { headers })).body.executions.used;
    await ask('/execute/ensemble/greet', post({ input: {} }, headers));
    await ask('/execute/ensemble/nobody', post({}, headers));
    expect(await used()).toBe(0);
    for (let i = 0; i < 3; i++) await ask('/execute/ensemble/greet', execute(headers, { 'idempotency-key': 'k' }));
    expect(await used()).toBe(1);
    const failed = await ask('/execute/ensemble/failing', post({}, headers));
    expect(await used()).toBe(2);
    const retried = await ask(`/executions/${failed.body.error.executionId}/retry`, post({}, headers));
    expect([retried.status, await used()]).toEqual([202, 3]);
    const again = await ask(`/executions/${failed.body.error.executionId}/retry`, post({}, headers));
    expect([again.status, again.body.error.code]).toEqual([429, 'QUOTA_EXCEEDED']);
  });

  it('1,000 twins with one Idempotency-Key give one execution and cost one', async () => {
    const { ask, tokenOf, orchestrator } = open();
    const headers = await tokenOf({ executions: 5 });
    const twins = await Promise.all(
      Array.from({ length: 1000 }, () =>
        ask('/execute/ensemble/greet', execute(headers, { 'idempotency-key': 'twin' })),
      ),
    );
    expect(new Set(twins.map(({ status, body }) => `${status} ${body.executionId}`)).size).toBe(1);
    expect((await orchestrator.executions.list()).executions).toHaveLength(1);
    expect((await ask('/usage', { headers })).body.executions).toEqual({ used: 1, limit: 5, remaining: 4 });
  });

  it('calls in the process without a principal, children and schedules are not charged; a call with a principal is', async () => {
    const { orchestrator, tokenOf } = open();
    const { authorization } = await tokenOf({ executions: 1 });
    const principal = await orchestrator.tokens.verify(authorization.slice(7));
    await orchestrator.execute('greet', { who: 'Ada' });
    await orchestrator.execute('parent', {}, { principal });
    expect((await orchestrator.usage.get(principal)).executions.used).toBe(1);
    await expect(orchestrator.execute('greet', { who: 'Ada' }, { principal })).rejects.toMatchObject({
      code: 'QUOTA_EXCEEDED',
      details: { limit: 1, used: 1 },
    });
    await expect(orchestrator.start('greet', { who: 'Ada' }, { principal })).rejects.toMatchObject({
      code: 'QUOTA_EXCEEDED',
    });
  });
});

describe('concurrent executions', () => {
  const slow = (headers: Record<string, string>, more: Record<string, string> = {}) =>
    post({}, { ...headers, ...more });
  const ASYNC = { prefer: 'respond-async' };

  it('beyond the limit, a synchronous start is 429 and costs nothing; an asynchronous one runs when a slot is free', async () => {
    const { ask, tokenOf, begun, release, orchestrator } = open();
    const headers = await tokenOf({ concurrent: 1 });
    const begin = begun();
    const first = ask('/execute/ensemble/slow', slow(headers));
    await begin;
    for (const path of ['ensemble/greet', 'agent/double']) {
      const refused = await ask(`/execute/${path}`, post({ input: { who: 'Ada', n: 2 } }, headers));
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
      expect(refused.body.error).toMatchObject({
        code: 'CONCURRENT_LIMIT_EXCEEDED',
        limit: 1,
        active: 1,
        retryAfter: 1,
      });
    }
    const queued = await ask('/execute/ensemble/greet', post({ input: { who: 'Ada' } }, { ...headers, ...ASYNC }));
    expect([queued.status, queued.body.status]).toEqual([202, 'queued']);
    expect((await ask('/usage', { headers })).body.executions.used).toBe(2);
    const other = await tokenOf({ concurrent: 1 });
    expect((await ask('/execute/ensemble/greet', post({ input: { who: 'Eve' } }, other))).status).toBe(200);
    release();
    expect((await first).status).toBe(200);
    const { executionId } = queued.body;
    await expect.poll(async () => (await orchestrator.executions.get(executionId)).status).toBe('completed');
    expect((await ask('/execute/ensemble/greet', post({ input: { who: 'Ada' } }, headers))).status).toBe(200);
  });

  it.each(['free', 'pro'] as const)(
    'plan %s has the limit of the specification, and `rateLimit.concurrent` replaces it',
    async (plan) => {
      for (const [more, limit] of [
        [{}, plan === 'free' ? 5 : 50],
        [{ rateLimit: { concurrent: 2 } }, 2],
      ] as const) {
        const { tokenOf, orchestrator, begun, release } = open({}, { limits: more });
        const principal = await orchestrator.tokens.verify((await tokenOf(plan)).authorization.slice(7));
        const begin = begun();
        const handles = await Promise.all(
          Array.from({ length: limit }, () => orchestrator.start('slow', {}, { principal })),
        );
        await begin;
        await expect(orchestrator.execute('slow', {}, { principal })).rejects.toMatchObject({
          code: 'CONCURRENT_LIMIT_EXCEEDED',
          details: { limit, active: limit, retryAfter: 1 },
        });
        release();
        await Promise.all(handles.map((handle) => handle.result()));
      }
    },
  );

  it('an execution that waits holds no slot, needs one to continue, and children take none', async () => {
    const waits = {
      name: 'waits',
      flow: [{ wait: 'go' }, { ensemble: 'echo', input: { from: 'waits' } }],
    };
    const { ask, tokenOf, begun, release, orchestrator } = open({}, { ensembles: [waits, ECHO, SLOW] });
    const headers = await tokenOf({ concurrent: 1 });
    const waiting = await ask('/execute/ensemble/waits', slow(headers, ASYNC));
    const { executionId } = waiting.body;
    const status = async () => (await orchestrator.executions.get(executionId)).status;
    await expect.poll(status).toBe('waiting');
    const begin = begun();
    const other = ask('/execute/ensemble/slow', slow(headers));
    await begin;
    await orchestrator.executions.signal(executionId, 'go');
    expect(await status()).toBe('waiting');
    release();
    expect((await other).status).toBe(200);
    await expect.poll(status).toBe('completed');
  });

  it('an end of every kind gives the slot back, once', async () => {
    const { ask, tokenOf, begun, orchestrator, clock } = open();
    const headers = await tokenOf({ concurrent: 1 });
    const run = async (end: (id: string) => unknown) => {
      const begin = begun();
      const { body } = await ask('/execute/ensemble/hasty', slow(headers, ASYNC));
      await begin;
      await end(body.executionId);
      await expect.poll(async () => (await orchestrator.executions.get(body.executionId)).finishedAt).toBeDefined();
    };
    await run((id) => orchestrator.executions.cancel(id));
    await run(() => clock.advance(6_000));
    expect((await ask('/execute/ensemble/failing', slow(headers))).status).toBe(500);
    await run((id) => orchestrator.executions.cancel(id));
    expect((await ask('/execute/ensemble/greet', post({ input: { who: 'Ada' } }, headers))).status).toBe(200);
  });

  it('the repetition of a key is answered although no slot is free', async () => {
    const { ask, tokenOf, begun, release } = open();
    const headers = await tokenOf({ concurrent: 1 });
    const twin = { 'idempotency-key': 'k' };
    const begin = begun();
    const first = ask('/execute/ensemble/slow', slow(headers, twin));
    await begin;
    const second = ask('/execute/ensemble/slow', slow(headers, twin));
    release();
    const [one, two] = await Promise.all([first, second]);
    expect([one.status, two.status, two.body.executionId]).toEqual([200, 200, one.body.executionId]);
  });

  it('with a limit of 0, nothing starts, also not later', async () => {
    const { ask, tokenOf } = open();
    const headers = await tokenOf({ concurrent: 0 });
    for (const more of [{}, ASYNC]) {
      const { status, body } = await ask(
        '/execute/ensemble/greet',
        post({ input: { who: 'Ada' } }, { ...headers, ...more }),
      );
      expect([status, body.error]).toMatchObject([429, { code: 'CONCURRENT_LIMIT_EXCEEDED', limit: 0, active: 0 }]);
    }
  });

  it('`start` queues by default and `execute` refuses; `overLimit` says otherwise', async () => {
    const { tokenOf, begun, release, orchestrator } = open();
    const principal = await orchestrator.tokens.verify((await tokenOf({ concurrent: 1 })).authorization.slice(7));
    const begin = begun();
    const first = await orchestrator.start('slow', {}, { principal });
    await begin;
    const who = { who: 'Ada' };
    const refused = { code: 'CONCURRENT_LIMIT_EXCEEDED' };
    await expect(orchestrator.start('greet', who, { principal, overLimit: 'refuse' })).rejects.toMatchObject(refused);
    const wrong = { principal, overLimit: 'wait' as never };
    await expect(orchestrator.start('greet', who, wrong)).rejects.toThrow("`overLimit` must be 'queue' or 'refuse'");
    const later = orchestrator.execute('greet', who, { principal, overLimit: 'queue' });
    const queued = await orchestrator.start('greet', who, { principal });
    release();
    expect([(await first.result()).status, (await later).status, (await queued.result()).status]).toEqual([
      ...['completed', 'completed', 'completed'],
    ]);
  });
});

describe('GET /usage', () => {
  it('answers the object of the specification, of the presented token', async () => {
    const { ask, tokenOf, clock } = open();
    const headers = await tokenOf(undefined, 'execute:ensembles');
    await ask('/usage', { headers: await tokenOf() });
    await ask('/execute/ensemble/greet', post({ input: { who: 'Ada' } }, headers));
    const { status, body } = await ask('/usage', { headers });
    const now = new Date(clock.now());
    const month = (more: number) => Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + more, 1);
    expect([status, body]).toEqual([
      200,
      {
        period: { start: month(0), end: month(1) },
        requests: { used: 2, limit: 100, remaining: 98 },
        executions: { used: 1, limit: 1_000, remaining: 999 },
      },
    ]);
  });

  it('reports no limit as the largest safe integer', async () => {
    const { ask, tokenOf } = open();
    const { body } = await ask('/usage', { headers: await tokenOf('enterprise') });
    expect([body.requests.limit, body.executions.limit]).toEqual([Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]);
  });
});

function recordWarnings() {
  const warnings: (string | undefined)[] = [];
  const nothing = () => undefined;
  const warn = (_: object, message?: string) => void warnings.push(message);
  return { warnings, logger: { debug: nothing, info: nothing, warn, error: nothing } };
}

describe('a limit store that is away', () => {
  const away = () => {
    const state = { isAway: true };
    const failing = memoryStorage().rates;
    const ask = <T>(call: () => T): T => {
      if (state.isAway) throw new Error('connect ECONNREFUSED 10.0.0.7:6379');
      return call();
    };
    const store: LimitStore = {
      take: (windows, now) => ask(() => failing.take(windows, now)),
      peek: (windows, now) => ask(() => failing.peek(windows, now)),
    };
    return { state, store };
  };

  it('lets this process count alone, says so once, and counts again when it answers', async () => {
    const { state, store } = away();
    const { warnings, logger } = recordWarnings();
    const { ask, tokenOf, clock } = open({}, { limits: { store }, logger });
    const headers = await tokenOf({ requests: 2, window: 60 });
    const statuses: number[] = [];
    for (let i = 0; i < 5; i++) statuses.push((await ask('/ensembles', { headers })).status);
    expect(statuses).toEqual([200, 200, 429, 429, 429]);
    expect(warnings).toEqual(['the limit store failed; this process counts its requests alone']);
    const usage = await ask('/usage', { headers: await tokenOf() });
    expect([usage.status, usage.body.error.code]).toEqual([503, 'OVERLOADED']);
    state.isAway = false;
    await clock.advance(1_000);
    expect(ratesOf(await ask('/ensembles', { headers }))[1]).toBe('1');
    state.isAway = true;
    await ask('/ensembles', { headers });
    expect(warnings).toHaveLength(2);
  });

  it('`closed`: refuses requests with 503, without a word about the store', async () => {
    const { warnings, logger } = recordWarnings();
    const { ask, tokenOf } = open({}, { limits: { store: away().store, onStoreFailure: 'closed' }, logger });
    const refused = await ask('/ensembles', { headers: await tokenOf() });
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
    expect(JSON.stringify(refused.body)).not.toContain('10.0.0.7');
    expect(warnings).toEqual(['the limit store failed; requests are refused']);
    expect((await ask('/health')).status).toBe(200);
  });

  it('a store that does not answer is away after 2 s', async () => {
    const silent: LimitStore = { take: () => new Promise(() => {}), peek: () => new Promise(() => {}) };
    const { ask, tokenOf, clock } = open({}, { limits: { store: silent } });
    const asked = ask('/ensembles', { headers: await tokenOf() });
    await expect.poll(() => clock.nextIn).toBe(250);
    await clock.advance(2_000);
    expect((await asked).status).toBe(200);
    // One request each second asks the store. The others don't wait for it.
    expect((await ask('/ensembles', { headers: await tokenOf() })).status).toBe(200);
  });

  it('a process that is held up, or a long queue, is no store that is away: exactly the limit passes', async () => {
    const inner = memoryStorage().rates;
    const answers: (() => void)[] = [];
    const slow: LimitStore = {
      take: (windows, now) => new Promise((resolve) => answers.push(() => resolve(inner.take(windows, now) as never))),
      peek: (windows, now) => inner.peek(windows, now),
    };
    const { ask, tokenOf, clock } = open({}, { limits: { store: slow, perIp: 1_000 } });
    const headers = await tokenOf({ requests: 3 });
    const asked = Array.from({ length: 30 }, () => ask('/ensembles', { headers }));
    await expect.poll(() => answers.length).toBe(30);
    // An answer each second: the last one comes after half a minute.
    for (const answer of answers) {
      answer();
      await clock.advance(1_000);
    }
    const passed = (await Promise.all(asked)).filter(({ status }) => status === 200);
    expect(passed).toHaveLength(3);
  });

  it('the requests that passed before count: in one process, a store that is away in between gives no second limit', async () => {
    const { state, store } = away();
    state.isAway = false;
    const late: LimitStore = { take: async (windows, now) => store.take(windows, now), peek: store.peek };
    const { ask, tokenOf } = open({}, { limits: { store: late } });
    const headers = await tokenOf({ requests: 3 });
    const statuses = [(await ask('/ensembles', { headers })).status, (await ask('/ensembles', { headers })).status];
    state.isAway = true;
    for (let i = 0; i < 3; i++) statuses.push((await ask('/ensembles', { headers })).status);
    expect(statuses).toEqual([200, 200, 200, 429, 429]);
  });
});

describe('plans', () => {
  it('the option `limits` sets the plan of new tokens, the figures of enterprise, and the window of every named plan', async () => {
    const limits = {
      plan: 'enterprise',
      enterprise: { executions: 7 },
      rateLimit: { requests: 9, window: 10 },
    } as const;
    const { ask, tokenOf, clock } = open({}, { limits });
    const answer = await ask('/usage', { headers: await tokenOf() });
    expect([answer.body.requests.limit, answer.body.executions.limit]).toEqual([9, 7]);
    expect(ratesOf(answer)).toEqual(['9', '8', seconds(clock.now() + 10_000), null]);
    const own = await ask('/usage', { headers: await tokenOf({ requests: 2, executions: 1 }) }, '192.0.2.2');
    expect([own.body.requests.limit, own.body.executions.limit]).toEqual([2, 1]);
  });

  it('figures of a token are shown in its list, and a wrong plan is refused with 400', async () => {
    const { ask, tokenOf } = open();
    const headers = await tokenOf('enterprise');
    const plan = { requests: 5, window: 60, executions: 10 };
    const made = await ask('/tokens', post({ name: 'a', scopes: ['admin'], plan }, headers));
    expect([made.status, made.body.plan]).toEqual([201, plan]);
    expect((await ask('/tokens', { headers })).body.tokens).toContainEqual(expect.objectContaining({ plan }));
    for (const wrong of [
      'Free',
      { requests: -1 },
      { requests: 1.5 },
      { window: 0 },
      { concurrent: 0.5 },
      { more: 1 },
      [],
      5,
      null,
    ]) {
      const refused = await ask('/tokens', post({ name: 'a', scopes: ['admin'], plan: wrong }, headers));
      expect([refused.status, refused.body.error.code, refused.body.error.issues?.[0]?.path]).toEqual([
        ...[400, 'INVALID_REQUEST', 'plan'],
      ]);
    }
  });

  it.each([
    [{ plan: 'gold' }, /`limits`: `plan` must be one of free, pro, enterprise/],
    [{ plans: 'free' }, /`plans` is not an option of this version; did you mean `plan`/],
    [{ rateLimit: { window: 5 } }, /`rateLimit`: `window` needs `requests`/],
    [{ rateLimit: { executions: 5 } }, /`rateLimit` has `executions`; its keys are requests, window, concurrent/],
    [{ rateLimit: { concurrent: -1 } }, /`rateLimit` has a wrong figure: `concurrent` must be a whole number from 0/],
    [{ rateLimit: { requests: 5, window: 0 } }, /`rateLimit` has a wrong figure: `window` must be 1 to/],
    [{ enterprise: { executions: -1 } }, /`enterprise` has a wrong figure: `executions` must be a whole number from 0/],
    [{ perIp: 1.5 }, /`perIp` must be a whole number of at least 0, not 1.5/],
    [{ store: {} }, /`store` must be a LimitStore/],
    [{ store: { take: () => undefined } }, /`store` must be a LimitStore with take and peek/],
    [{ enterprise: null }, /`enterprise` must be figures/],
    [{ standardHeaders: 1 }, /`standardHeaders` must be true or false/],
    [{ onStoreFailure: 'maybe' }, /`onStoreFailure` must be 'open' or 'closed'/],
  ])('the option %j is a TypeError', (limits, message) => {
    expect(() => createService({}, { limits: limits as never })).toThrow(message);
  });
});

it('`standardHeaders` adds the fields of the IETF, and a refusal says whose limit it is', async () => {
  const { ask, tokenOf } = open({}, { limits: { standardHeaders: true, perIp: 3 } });
  const headers = await tokenOf({ requests: 2, window: 60 });
  const first = await ask('/ensembles', { headers });
  expect(first.headers.get('ratelimit-policy')).toBe('"token";q=2;w=60');
  expect(first.headers.get('ratelimit')).toBe('"token";r=1;t=60');
  await ask('/ensembles', { headers });
  expect((await ask('/ensembles', { headers })).body.error).not.toHaveProperty('of');
  const other = await tokenOf();
  await ask('/ensembles', { headers: other });
  const refused = await ask('/ensembles', { headers: other });
  expect(refused.body.error).toMatchObject({ limit: 3, of: 'address' });
  expect(refused.body.error.message).toContain('the limit of 3 requests of this address is reached');
});

it('`perIp` is one limit for an address, whatever windows its tokens have', async () => {
  const { ask, tokenOf } = open({}, { limits: { perIp: 5 } });
  let passed = 0;
  for (const window of [3_600, 3_599, 60]) {
    const headers = await tokenOf({ requests: 100, window });
    for (let i = 0; i < 4; i++) if ((await ask('/ensembles', { headers })).status === 200) passed += 1;
  }
  expect(passed).toBe(5);
});

it('in memory, no number of other addresses gives a token a fresh window', () => {
  const { rates } = memoryStorage();
  const token = { key: tokenKey('tok_1'), limit: 1, windowMs: 3_600_000 };
  rates.take([token], 0);
  for (let nr = 0; nr < 200_100; nr++) rates.take([{ key: `ip:${nr}`, limit: 1, windowMs: 3_600_000 }], 1);
  expect(rates.take([token], 2)).toMatchObject({ taken: false });
});
