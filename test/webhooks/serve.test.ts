/** Inbound webhooks over HTTP: which requests they take, what an execution can read of one, and what the sender gets (contract 6). */

import { describe, expect, it } from 'vitest';
import { hostTurn } from '../../src/adapters/clock/manual-clock.ts';
import { embeddedEngine } from '../../src/adapters/embedded-engine/embedded-engine.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { createWebhookHandler } from '../../src/http-handlers/create-webhook-handler.ts';
import { createOrchestrator } from '../../src/orchestrator/create-orchestrator.ts';
import { changeStorage } from '../../src/testing-kit/processes/change-storage.ts';
import { echo, openWebhooks } from './world.ts';

const OPEN = { public: true };
const ID = expect.stringMatching(/^exec_/);

describe('a webhook', () => {
  it('starts its ensemble with the body as input, and answers with the result', async () => {
    const { post, runs } = openWebhooks([echo(OPEN)]);
    const { status, body } = await post('/webhooks/echo', { order: 7 });
    expect([status, body]).toEqual([
      200,
      {
        received: true,
        executionId: ID,
        status: 'completed',
        output: { said: { order: 7 } },
        metrics: { totalDuration: 0, agents: 1 },
      },
    ]);
    const [run] = await runs();
    expect([run?.id, run?.trigger]).toEqual([
      body.executionId,
      { type: 'webhook', method: 'POST', path: '/webhooks/echo' },
    ]);
  });

  it('with `async: true`, is answered 202 when the execution is stored', async () => {
    const { post, orchestrator, clock } = openWebhooks([
      echo({ ...OPEN, async: true }, { flow: [{ sleep: '1h' }], outputs: {} }),
    ]);
    const { status, body } = await post('/webhooks/echo', {});
    expect([status, body]).toEqual([202, { received: true, queued: true, executionId: ID }]);
    await clock.advance(0);
    expect((await orchestrator.executions.get(body.executionId)).status).toBe('waiting');
  });

  it('whose execution waits is answered 202, and the execution continues', async () => {
    const { post, orchestrator, clock } = openWebhooks([
      echo(OPEN, { flow: [{ sleep: '1h' }], outputs: { done: '${1}' } }),
    ]);
    const { status, body } = await post('/webhooks/echo', {});
    expect([status, body.queued]).toEqual([202, true]);
    await clock.advance(3_600_000);
    expect((await orchestrator.executions.get(body.executionId)).output).toEqual({ done: 1 });
  });

  it('whose execution fails is answered 500 with its id alone: the reason is for the record', async () => {
    const failing = echo(OPEN, { flow: [{ agent: 'a', operation: 'code', config: { script: 'boom' } }], outputs: {} });
    const { post, runs } = openWebhooks([failing]);
    const { status, body } = await post('/webhooks/echo', {});
    const [run] = await runs();
    expect([status, body]).toEqual([500, { error: `execution ${run?.id} failed` }]);
    expect(run?.error?.message).toContain('4242');
  });

  it('answers an unknown path 404, and a method that it does not take 405 with `Allow`', async () => {
    const { post, call } = openWebhooks([echo({ ...OPEN, methods: ['POST', 'PUT'] })]);
    const unknown = await post('/webhooks/ech', {});
    expect([unknown.status, unknown.body]).toEqual([404, { error: 'there is no webhook at this path' }]);
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'PATCH', 'DELETE']) {
      const { status, headers } = await call('/webhooks/echo', {
        method,
        headers: { 'x-http-method-override': 'POST' },
      });
      expect([method, status, headers.get('allow')]).toEqual([method, 405, 'POST, PUT']);
    }
  });

  it.each(['/webhooks/echo/', '/webhooks/%65cho', '/x/../webhooks/echo'])('is found under %s', async (path) => {
    expect((await openWebhooks([echo(OPEN)]).post(path, {})).status).toBe(200);
  });

  it.each([
    '/webhooks//echo',
    '/webhooks/%2565cho',
    '/webhooks/echo%2F',
    '/webhooks/ECHO',
    '/webhooks/%E0%A4%A',
    '/webhooks/%00',
  ])('is not found under %s', async (path) => {
    expect((await openWebhooks([echo(OPEN)]).post(path, {})).status).toBe(404);
  });

  it('may have any path that is not of the service', async () => {
    const { post } = openWebhooks([echo({ ...OPEN, path: '/hooks/café' })]);
    expect((await post('/hooks/caf%c3%a9', 1)).body.output).toEqual({ said: 1 });
  });

  it('that gets no valid input starts nothing and is answered 400', async () => {
    const { post, runs } = openWebhooks([echo(OPEN, { inputs: { id: { type: 'integer', required: true } } })]);
    const { status, body } = await post('/webhooks/echo', { id: 'x' });
    expect([status, body.error]).toEqual([400, expect.stringContaining('id')]);
    expect(await runs()).toEqual([]);
  });

  it('answers nothing that a browser runs', async () => {
    const { headers } = await openWebhooks([echo(OPEN)]).post('/webhooks/echo', { html: '</script><img onerror=1>' });
    expect(
      ['content-type', 'x-content-type-options', 'content-security-policy'].map((name) => headers.get(name)),
    ).toEqual([...['application/json; charset=utf-8', 'nosniff', 'sandbox']]);
  });
});

describe('the body', () => {
  it.each([
    ['{', 'application/json', 400],
    ['\xff\xfe', 'application/json', 400],
    ['{}', 'application/json; charset=latin1', 415],
    ['{}', 'text/plain', 415],
    ['a=1', 'application/x-www-form-urlencoded', 415],
    ['{}', 'multipart/form-data; boundary=x', 415],
    ['{}', '', 415],
    [`{"a":"${'x'.repeat(150)}"}`, 'application/json', 413],
    [`${'['.repeat(70)}${']'.repeat(70)}`, 'application/json', 400],
    [`${'['.repeat(40)}${']'.repeat(40)}`, 'application/json', 200],
    ['{}', 'application/vnd.github+json; charset=UTF-8', 200],
    ['\ufeff{}', 'application/json', 200],
  ])('%j as %j is answered %i', async (text, type, expected) => {
    const { call, runs } = openWebhooks([echo({ ...OPEN, maxBodyBytes: 150 })]);
    const body = text === '\xff\xfe' ? new Uint8Array([0xff, 0xfe]) : new TextEncoder().encode(text);
    const { status, body: answer } = await call('/webhooks/echo', {
      method: 'POST',
      headers: { 'content-type': type },
      body,
    });
    expect(status).toBe(expected);
    if (expected === 200) return;
    expect(answer).toEqual({ error: expect.any(String) });
    expect(await runs()).toEqual([]);
  });

  it('of a form is an object, and of a text is a text, if the trigger accepts them', async () => {
    const { call } = openWebhooks([echo({ ...OPEN, accept: ['form', 'text'] })]);
    const send = async (type: string, body: string) =>
      (await call('/webhooks/echo', { method: 'POST', headers: { 'content-type': type }, body })).body;
    expect((await send('application/x-www-form-urlencoded', 'a=1&b=x+y&a=2')).output.said).toEqual({
      a: ['1', '2'],
      b: 'x y',
    });
    expect((await send('text/csv', 'a,b')).output.said).toBe('a,b');
    expect((await send('application/json', '{}')).error).toContain('text/plain');
  });

  it('may be compressed never, because the signature is over the bytes', async () => {
    const { post } = openWebhooks([echo(OPEN)]);
    expect((await post('/webhooks/echo', {}, { 'content-encoding': 'gzip' })).status).toBe(415);
  });

  it('that is empty is an empty input; GET and HEAD give the query', async () => {
    const { call } = openWebhooks([echo({ ...OPEN, methods: ['GET', 'HEAD', 'POST'] })]);
    expect((await call('/webhooks/echo', { method: 'POST' })).body.output.said).toEqual({});
    expect((await call('/webhooks/echo?a=1&b=2&b=3')).body.output.said).toEqual({ a: '1', b: ['2', '3'] });
    const { status, body } = await call('/webhooks/echo?a=1', { method: 'HEAD' });
    expect([status, body]).toEqual([200, '']);
  });
});

describe('what an execution reads of its request', () => {
  const READS = {
    outputs: {
      method: '${trigger.method}',
      path: '${trigger.path}',
      query: '${trigger.query.a}',
      type: "${trigger.headers['Content-Type']}",
      older: "${headers['X-Custom']}",
      body: '${trigger.body.n}',
      raw: '${trigger.rawBody}',
      cookie: '${headers.cookie}',
      authorization: '${headers.authorization}',
    },
  };

  it('is all of it, in the current and the older form, except credentials; and a retry reads the same', async () => {
    let broken = true;
    const flow = [{ agent: 'a', operation: 'code', config: { script: 'once' } }];
    const scripts = {
      once: () => {
        if (broken) throw new Error('no');
        return 1;
      },
    };
    const { post, orchestrator } = openWebhooks([echo(OPEN, { ...READS, flow })], { scripts });
    const raw = '{"n": 1, "html": "<b>"}\n';
    const given = { 'x-custom': 'yes', cookie: 'a=b', authorization: 'Bearer x' };
    expect((await post('/webhooks/echo?a=q', raw, given)).status).toBe(500);
    broken = false;
    const [failed] = (await orchestrator.executions.list()).executions;
    const handle = await orchestrator.executions.retry(failed?.id as string);
    const { output } = await handle.result();
    expect(output).toEqual({
      ...{ method: 'POST', path: '/webhooks/echo', query: 'q', type: 'application/json', older: 'yes' },
      ...{ body: 1, raw, cookie: null, authorization: null },
    });
  });

  it('is kept only as far as the definition reads it, and no listing of steps or events shows it', async () => {
    const { post, orchestrator } = openWebhooks([
      echo(OPEN),
      echo({ ...OPEN, path: '/webhooks/reads' }, { ...READS, name: 'reads' }),
    ]);
    for (const path of ['/webhooks/echo', '/webhooks/reads']) {
      const { body } = await post(path, { secret: 'in the body' });
      const steps = await orchestrator.executions.steps(body.executionId);
      expect(steps.steps.map(({ key }) => key)).toEqual(['flow[0]']);
    }
  });
});

describe('`createWebhookHandler`', () => {
  it('serves webhooks alone, below its `basePath`, and leaves other paths to the host', async () => {
    const orchestrator = createOrchestrator({
      ensembles: [echo({ ...OPEN, path: '/in' }) as never],
      scripts: { echo: ({ input }) => input },
    });
    const handler = createWebhookHandler(orchestrator, { basePath: '/service' });
    const request = (path: string) => new Request(`http://localhost${path}`, { method: 'POST' });
    for (const path of ['/service/api/v1/health', '/in', '/webhooks/x', '/service/webhooks/x', '/service']) {
      expect(await handler.handle(request(path))).toEqual({ matched: false });
      expect(await (await handler.fetch(request(path))).json()).toEqual({ error: 'there is no webhook at this path' });
    }
    expect((await handler.fetch(request('/service/in'))).status).toBe(200);
  });
});

it('202 is answered only after the execution is stored, and a full queue is 503', async () => {
  const inner = memoryStorage();
  let store: () => void = () => {};
  const held = new Promise<void>((resolve) => {
    store = resolve;
  });
  const storage = changeStorage(inner, {
    async commit(...given) {
      await held;
      return inner.commit(...given);
    },
  });
  const { post } = openWebhooks([echo({ public: true, async: true })], { storage });
  let status = 0;
  const answer = post('/webhooks/echo', {}).then((sent) => {
    status = sent.status;
  });
  for (let turn = 0; turn < 10; turn++) await hostTurn();
  expect(status).toBe(0);
  store();
  await answer;
  expect(status).toBe(202);

  const engine = embeddedEngine({ concurrency: 1, queueLimit: 1 });
  const flow = [{ agent: 'a', operation: 'code', config: { script: 'never' } }];
  const full = openWebhooks([echo({ public: true, async: true }, { flow, outputs: {} })], {
    engine,
    scripts: { never: () => new Promise(() => {}) },
  });
  const statuses: number[] = [];
  for (let nr = 0; nr < 4; nr++) statuses.push((await full.post('/webhooks/echo', { nr })).status);
  expect(statuses.at(-1)).toBe(503);
  expect(new Set(statuses)).toEqual(new Set([202, 503]));
});

it('a form of more than 10,000 fields is refused before it is read', async () => {
  const { post } = openWebhooks([echo({ public: true, accept: ['form'] })]);
  const form = (fields: number) =>
    post('/webhooks/echo', Array.from({ length: fields }, (_, nr) => `k${nr}`).join('&'), {
      'content-type': 'application/x-www-form-urlencoded',
    });
  expect((await form(10_000)).status).toBe(200);
  expect(await form(10_001)).toMatchObject({ status: 400, body: { error: 'more than 10000 fields' } });
});
