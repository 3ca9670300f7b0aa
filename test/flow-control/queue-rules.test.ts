/** What becomes of executions that are too many under a limit, that begin too late, or that begin too often. */

import { describe, expect, it } from 'vitest';
import { describeWaits } from '../../src/cli/progress/describe-waits.ts';
import { createTestOrchestrator, manualClock, stubHttp } from '../../src/entries/testing.ts';
import { createHandler } from '../../src/http-handlers/create-handler.ts';
import { createOrchestrator, embeddedEngine, memoryStorage } from '../../src/index.ts';
import { world } from './world.ts';

const rule = (over: string, more: object = {}) => ({ limit: 1, key: '${input.customer}', over, ...more });
const jobs = (...names: readonly string[]) => names.map((job) => ({ customer: 'acme', job }));

async function startAll({ orchestrator, settle }: ReturnType<typeof world>, ...names: readonly string[]) {
  const handles = [];
  for (const input of jobs(...names)) {
    handles.push(await orchestrator.start('export', input));
    await settle();
  }
  return handles;
}

describe('over', () => {
  it('refuse: a start without a free slot is refused, over HTTP with 429, and nothing is stored', async () => {
    const { orchestrator, settle, running, finish } = world(rule('refuse'));
    await orchestrator.start('export', { customer: 'acme', job: 'a' });
    await settle();
    await expect(orchestrator.start('export', { customer: 'acme', job: 'b' })).rejects.toMatchObject({
      code: 'CONCURRENT_LIMIT_EXCEEDED',
      message: '`export` allows 1 at once for the key "acme"; no more is free now, try again later',
      details: { limit: 1, active: 1, retryAfter: 1 },
    });
    await expect(orchestrator.execute('export', { customer: 'acme', job: 'c' })).rejects.toMatchObject({
      code: 'CONCURRENT_LIMIT_EXCEEDED',
    });
    const { token } = await orchestrator.tokens.create({ name: 'all', scopes: ['execute:ensembles'] });
    const answer = await createHandler(orchestrator).fetch(
      new Request('http://localhost/api/v1/execute/ensemble/export', {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
        body: JSON.stringify({ input: { customer: 'acme', job: 'd' }, async: true }),
      }),
    );
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '1']);
    expect((await orchestrator.executions.list()).executions).toHaveLength(1);
    await orchestrator.start('export', { customer: 'bolt', job: 'e' });
    await finish('a');
    await orchestrator.start('export', { customer: 'acme', job: 'f' });
    await settle();
    expect(running()).toEqual(['e', 'f']);
  });

  it('refuse: a schedule and a parent whose child is refused are not blocked by it', async () => {
    const { orchestrator, settle, running, finish } = world(rule('refuse'));
    await orchestrator.ready();
    await orchestrator.start('export', { customer: 'acme', job: 'a' });
    const parent = await orchestrator.execute('parent', { customer: 'acme', job: 'child' });
    expect(parent).toMatchObject({ status: 'failed', error: { message: expect.stringContaining('allows 1 at once') } });
    await orchestrator.clock.advance(3_600_000);
    await settle();
    expect(running()).toEqual(['a']);
    await finish('a');
    await orchestrator.clock.advance(3_600_000);
    await settle();
    expect(running()).toEqual(['hourly']);
  });

  it('keep-newest: of those that wait, only the newest runs; the others end as cancelled, and say why', async () => {
    const app = world(rule('keep-newest'));
    const handles = await startAll(app, 'a', 'b', 'c', 'd');
    await app.finish('a');
    expect(app.running()).toEqual(['d']);
    const [, b] = handles;
    const ended = await b?.result();
    expect([ended?.status, ended?.error?.message]).toEqual([
      'cancelled',
      'the execution was cancelled: other executions took its place (`over: keep-newest`)',
    ]);
    await app.finish('d');
    const statuses = await Promise.all(handles.map(async (handle) => (await handle.result()).status));
    expect(statuses).toEqual(['completed', 'cancelled', 'cancelled', 'completed']);
  });

  it('keep-oldest: what is started while `queueLimit` wait ends as cancelled', async () => {
    const app = world(rule('keep-oldest', { queueLimit: 2 }));
    const handles = await startAll(app, 'a', 'b', 'c', 'd');
    for (const job of ['a', 'b', 'c']) await app.finish(job);
    const statuses = await Promise.all(handles.map(async (handle) => (await handle.result()).status));
    expect(statuses).toEqual(['completed', 'completed', 'completed', 'cancelled']);
  });

  it('cancel-running: the newest runs at once, and what ran is cancelled', async () => {
    const app = world(rule('cancel-running'));
    const handles = await startAll(app, 'a', 'b');
    await app.orchestrator.clock.advance(20_000);
    await app.settle();
    expect((await handles[0]?.result())?.status).toBe('cancelled');
    await app.settle();
    expect(app.running()).toContain('b');
    await app.finish('b');
    expect((await handles[1]?.result())?.status).toBe('completed');
  });

  it('queue: `queueLimit` bounds how many wait; a further start is refused', async () => {
    const app = world(rule('queue', { queueLimit: 1 }));
    await startAll(app, 'a', 'b');
    await expect(app.orchestrator.start('export', { customer: 'acme', job: 'c' })).rejects.toMatchObject({
      code: 'CONCURRENT_LIMIT_EXCEEDED',
      message: expect.stringContaining('`export` allows 1 at once and 1 queued for the key "acme"'),
    });
  });
});

describe('a start that comes too late', () => {
  it('queueTtl: what could not begin in time ends as timed_out, at that time, without having run', async () => {
    const app = world(rule('queue', { queueTtl: '1m' }));
    const [, second] = await startAll(app, 'a', 'b');
    await app.orchestrator.clock.advance(59_000);
    expect((await app.orchestrator.executions.get(second?.id as string)).status).toBe('queued');
    await app.orchestrator.clock.advance(1_000);
    const ended = await second?.result();
    expect(ended).toMatchObject({ status: 'timed_out', duration: 0, metrics: { agents: 0 } });
    expect(ended?.error).toMatchObject({
      code: 'TIMEOUT',
      message: expect.stringContaining('it had not begun 60000 ms after its start (`startWithin` or `queueTtl`)'),
    });
    expect(app.running()).toEqual(['a']);
  });

  it('startWithin: holds without limits too, when no process had a place', async () => {
    const app = world(null, { rules: { startWithin: '1m' }, engine: embeddedEngine({ concurrency: 1 }) });
    const [, second, third] = await startAll(app, 'a', 'b', 'c');
    await app.orchestrator.clock.advance(30_000);
    await app.finish('a');
    expect(app.running()).toEqual(['b']);
    await app.orchestrator.clock.advance(30_000);
    await app.finish('b');
    expect((await second?.result())?.status).toBe('completed');
    expect((await third?.result())?.status).toBe('timed_out');
  });

  it('a parent gets the end of a child that could not begin', async () => {
    const app = world(rule('queue', { queueTtl: '1m' }));
    await startAll(app, 'a');
    const parent = await app.orchestrator.start('parent', { customer: 'acme', job: 'b' });
    await app.orchestrator.clock.advance(60_000);
    await app.settle();
    expect((await parent.result()).error?.code).toBe('EXECUTION_TIMEOUT');
  });
});

describe('hold', () => {
  it('an execution keeps its slot while it waits, and another one begins after its end', async () => {
    const orchestrator = createTestOrchestrator({
      ensembles: [{ name: 'nap', concurrency: { limit: 1, hold: true }, flow: [{ sleep: '1h' }] }],
    });
    const handles = [await orchestrator.start('nap', {}), await orchestrator.start('nap', {})];
    await orchestrator.clock.advance(1000);
    const status = async (at: number) => (await orchestrator.executions.get(handles[at]?.id as string)).status;
    expect([await status(0), await status(1)]).toEqual(['waiting', 'queued']);
    await orchestrator.clock.advance(3_600_000);
    expect([await status(0), await status(1)]).toEqual(['completed', 'waiting']);
  });
});

describe('rate', () => {
  const rated = (rate: object) => world(null, { rules: { rate } });

  it('no more begin in any period than `limit`, and waits use nothing of it', async () => {
    const begun: number[] = [];
    const orchestrator = createTestOrchestrator({
      ensembles: [
        {
          name: 'send',
          rate: { limit: 2, period: '1m', key: '${input.to}' },
          flow: [{ agent: 'note', operation: 'code', config: { script: 'note' } }, { sleep: '5s' }],
        },
      ],
      scripts: { note: () => void begun.push(orchestrator.clock.now()) },
    });
    const from = orchestrator.clock.now();
    const handles = [];
    for (let i = 0; i < 5; i++) handles.push(await orchestrator.start('send', { to: 'acme' }));
    await orchestrator.start('send', { to: 'bolt' });
    await orchestrator.clock.advance(130_000);
    expect(begun.map((at) => Math.round((at - from) / 1000))).toEqual([0, 0, 0, 60, 60, 120]);
    for (const handle of handles) expect((await handle.result()).status).toBe('completed');
  });

  it('refuse: a start above the rate is refused, and says when to try again', async () => {
    const { orchestrator, settle } = rated({ limit: 1, period: '10s', over: 'refuse' });
    await orchestrator.start('export', { job: 'a' });
    await settle();
    await expect(orchestrator.start('export', { job: 'b' })).rejects.toMatchObject({
      code: 'RATE_LIMIT_EXCEEDED',
      message: '`export` allows 1 in 10000 ms; no more is free now, try again later',
      details: { limit: 1, retryAfter: 10 },
    });
    await orchestrator.clock.advance(10_000);
    await orchestrator.start('export', { job: 'c' });
  });

  it('learn: a 429 with `Retry-After` holds up the executions of that key until then, and no other', async () => {
    const http = stubHttp();
    let isBusy = true;
    http.on('GET https://bank.test/*', () =>
      isBusy ? { status: 429, headers: { 'retry-after': '30' } } : { json: {} },
    );
    const orchestrator = createTestOrchestrator({
      http,
      ensembles: [
        {
          name: 'pay',
          rate: { limit: 100, period: '1m', key: '${input.bank}', learn: true },
          flow: [
            {
              agent: 'ask',
              operation: 'api',
              config: { url: 'https://bank.test/${input.bank}' },
              retry: { maxAttempts: 2, delay: '1s' },
            },
          ],
        } as never,
      ],
    });
    const { clock, executions } = orchestrator;
    const first = await orchestrator.start('pay', { bank: 'a' });
    await clock.advance(0);
    const statuses = async (...ids: string[]) => Promise.all(ids.map(async (id) => (await executions.get(id)).status));
    const second = await orchestrator.start('pay', { bank: 'a' });
    await clock.advance(0);
    expect(await statuses(first.id, second.id)).toEqual(['waiting', 'queued']);
    expect((await executions.get(second.id)).waitingFor).toMatchObject([{ kind: 'limit', name: 'pay', key: 'a' }]);
    isBusy = false;
    const other = await orchestrator.start('pay', { bank: 'b' });
    await clock.advance(29_999);
    expect(await statuses(first.id, second.id, other.id)).toEqual(['waiting', 'queued', 'completed']);
    await clock.advance(1);
    expect(await statuses(first.id, second.id)).toEqual(['completed', 'completed']);
    expect(http.calls.map(({ url }) => url.slice(-1))).toEqual(['a', 'b', 'a', 'a']);
  });

  it('a retry is a start: it waits for the rate too', async () => {
    const app = rated({ limit: 1, period: '1m' });
    const first = await app.orchestrator.start('export', { job: 'a', fail: true });
    await app.settle();
    await app.finish('a');
    expect((await first.result()).status).toBe('failed');
    await app.orchestrator.executions.retry(first.id);
    await app.settle();
    expect(app.running()).toEqual([]);
    await app.orchestrator.clock.advance(60_000);
    await app.settle();
    expect(app.running()).toEqual(['a']);
  });
});

describe('a definition with rules that make no sense is refused at load', () => {
  it.each<[object, string, string]>([
    [{ concurrency: { limit: 1, over: 'drop' } }, 'concurrency[0].over', 'queue'],
    [
      { concurrency: { limit: 1, over: 'refuse', queueLimit: 3 } },
      'concurrency[0].queueLimit',
      'has no effect with `over: refuse`',
    ],
    [
      { concurrency: { limit: 1, over: 'keep-newest', queueLimit: 0 } },
      'concurrency[0].queueLimit',
      'must be 1 or more',
    ],
    [{ concurrency: { limit: 1, queueLimit: 10_001 } }, 'concurrency[0].queueLimit', '10000'],
    [{ concurrency: { limit: 1, queueTtl: 'soon' } }, 'concurrency[0].queueTtl', 'duration'],
    [{ rate: { limit: 1 } }, 'rate[0].period', '`period` is required'],
    [{ rate: { limit: 1, per: '1m' } }, 'rate[0].per', 'period'],
    [{ rate: { limit: 1, period: '32d' } }, 'rate[0].period', '31 days'],
    [{ rate: { limit: 1, period: '1m', over: 'cancel-running' } }, 'rate[0].over', 'a rule of `concurrency`'],
    [{ rate: { limit: '${input.n}', period: '1m', key: '${agent.output}' } }, 'rate[0].key', 'agent'],
    [{ startWithin: 'soon' }, 'startWithin', 'duration'],
    [{ priority: 11 }, 'priority', 'must be at most 10, not 11'],
    [{ priority: 'high' }, 'priority', 'must read the input'],
  ])('%#: %j', async (rules, path, message) => {
    const orchestrator = createTestOrchestrator();
    const create = orchestrator.ensembles.create({ name: 'export', flow: [], ...rules } as never);
    await expect(create).rejects.toMatchObject({
      code: 'INVALID_DEFINITION',
      details: {
        issues: expect.arrayContaining([expect.objectContaining({ message: expect.stringContaining(message) })]),
      },
    });
    const { details } = (await create.catch((error: unknown) => error)) as { details: { issues: { path: string }[] } };
    expect(details.issues.map((issue) => issue.path.replace(/^(concurrency|rate)(?!\[)/, '$1[0]'))).toContain(path);
  });
});

describe('priority', () => {
  const rules = { priority: '${input.urgent ? 5 : 0}' };
  const started = async (app: ReturnType<typeof world>, job: string, urgent: boolean) => {
    const handle = await app.orchestrator.start('export', { customer: 'acme', job, urgent });
    await app.settle();
    return handle;
  };

  it.each<[string, () => ReturnType<typeof world>]>([
    ['in the queue of a limit', () => world({ limit: 1 }, { rules })],
    ['for the places of a process', () => world(null, { rules, engine: embeddedEngine({ concurrency: 1 }) })],
  ])('higher ones begin first, %s, and one level counts as a minute of waiting', async (_, create) => {
    const app = create();
    await started(app, 'first', false);
    await started(app, 'old', false);
    await app.orchestrator.clock.advance(5 * 60_000 + 1);
    await started(app, 'low', false);
    const urgent = await started(app, 'urgent', true);
    const { createdAt } = await app.orchestrator.executions.get(urgent.id);
    const order: string[] = [];
    for (let job = 'first'; job; job = app.running()[0] as string) {
      order.push(job);
      await app.finish(job);
    }
    expect(order).toEqual(['first', 'old', 'urgent', 'low']);
    expect((await urgent.result()).metrics.queued).toBe(app.orchestrator.clock.now() - createdAt);
  });

  it('an input that gives no priority from 0 to 10 is refused', async () => {
    const { orchestrator } = world(null, { rules: { priority: '${input.level}' } });
    await expect(orchestrator.start('export', { level: 11 })).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: '`priority` (${input.level}) must be a whole number from 0 to 10, not 11',
    });
  });
});

describe('what an execution waits for', () => {
  it('waitingFor names the limits without a free slot, with the key and the position; the command line says so', async () => {
    const { orchestrator, settle, running, finish } = world(
      [{ limit: 1, key: '${input.customer}' }, { shared: 'bank' }],
      {
        sharedLimits: { bank: { concurrency: 5 } },
        rules: { rate: { limit: 2, period: '1m' } },
      },
    );
    const handles = [];
    for (const job of ['a', 'b', 'c']) handles.push(await orchestrator.start('export', { customer: 'acme', job }));
    const other = await orchestrator.start('export', { customer: 'bolt', job: 'd' });
    await settle();
    const since = orchestrator.clock.now();
    const waits = async (id: string) => (await orchestrator.executions.get(id)).waitingFor;
    expect(await waits(handles[2]?.id as string)).toEqual([
      { kind: 'limit', name: 'export', key: 'acme', position: 2, since },
      { kind: 'limit', name: 'export', key: '', position: 2, since },
    ]);
    expect(describeWaits(await orchestrator.executions.get(handles[1]?.id as string), since)).toEqual([
      expect.stringMatching(/^ {2}a slot of export for acme, at position 1, since /),
      expect.stringMatching(/^ {2}a slot of export, at position 1, since /),
    ]);
    expect([running(), await waits(other.id)]).toEqual([['a', 'd'], []]);
    await finish('a');
    expect((await waits(handles[1]?.id as string)).map(({ key }) => key)).toEqual(['']);
  });

  it('an execution that waits for a signal, and then for a slot, says both', async () => {
    const orchestrator = createTestOrchestrator({
      ensembles: [
        {
          name: 'nap',
          concurrency: { limit: 1 },
          flow: [
            { if: '${input.waits}', then: [{ wait: 'go' }] },
            { agent: 'stay', operation: 'code', config: { script: 'stay' } },
          ],
        },
      ] as never,
      scripts: { stay: () => new Promise(() => {}) },
    });
    const first = await orchestrator.start('nap', { waits: true });
    await orchestrator.clock.advance(2000);
    await orchestrator.start('nap', { waits: false });
    await orchestrator.clock.advance(2000);
    await orchestrator.executions.signal(first.id, 'go');
    await orchestrator.clock.advance(2000);
    const { waitingFor } = await orchestrator.executions.get(first.id);
    expect(waitingFor.map(({ kind, name }) => `${kind} ${name}`)).toEqual(['limit nap', 'signal go']);
  });
});

describe('a limit that changes', () => {
  const jobs = (orchestrator: { start(name: string, input: object): Promise<unknown> }, ...names: string[]) =>
    Promise.all(names.map((job) => orchestrator.start('export', { job })));
  const flow = [{ agent: 'write', operation: 'code', config: { script: 'write' } }];

  it('counts at once for what is queued: that of a process that starts later', async () => {
    const storage = memoryStorage({ shared: true });
    const clock = manualClock();
    const running: string[] = [];
    const scripts = {
      write: ({ input }: { input: { job: string } }) => {
        running.push(input.job);
        return new Promise<void>(() => {});
      },
    };
    const process = (limit: number) =>
      createOrchestrator({
        ...{ storage, clock, scripts, logger: false },
        ensembles: [{ name: 'export', concurrency: { limit }, flow } as never],
      });
    const old = process(1);
    await jobs(old, 'a', 'b', 'c', 'd');
    await clock.advance(5);
    expect(running).toHaveLength(1);
    const later = process(3);
    await later.ready();
    await clock.advance(10_000);
    expect(running).toHaveLength(3);
    await jobs(old, 'e');
    await clock.advance(10_000);
    expect(running).toHaveLength(3);
  });

  it('counts at once for what is queued: that of a definition that is updated', async () => {
    const { orchestrator, settle, running } = world(null);
    await orchestrator.ensembles.create({ name: 'line', concurrency: { limit: 1 }, flow } as never);
    for (const job of ['a', 'b', 'c']) await orchestrator.start('line', { job });
    await settle();
    expect(running()).toEqual(['a']);
    await orchestrator.clock.advance(10);
    await orchestrator.ensembles.update('line', { name: 'line', concurrency: { limit: 2 }, flow } as never);
    await orchestrator.clock.advance(30_000);
    await settle();
    expect(running()).toEqual(['a', 'b']);
  });
});
