/** A dry run: what an execution would do, without an effect. */

import { afterEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { manualClock } from '../../src/adapters/clock/manual-clock.ts';
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import { embeddedEngine } from '../../src/adapters/embedded-engine/embedded-engine.ts';
import { memoryMail } from '../../src/adapters/mail/memory-mail.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { MASKING, type ServedDependencies } from '../../src/engine/host/masking.port.ts';
import { sqliteStorage } from '../../src/entries/sqlite.ts';
import { stubHttp } from '../../src/entries/testing.ts';
import {
  createOrchestrator,
  defineOperation,
  defineScript,
  type Orchestrator,
  type OrchestratorOptions,
} from '../../src/index.ts';

const open: Orchestrator[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close({ grace: 0 });
});

const CHARGED = z.object({
  ok: z.boolean(),
  kind: z.enum(['card', 'cash']),
  cents: z.number(),
  tags: z.array(z.string()),
});

/** An app in which everything that reaches outside is noted. */
function app(ensembles: readonly string[], more: Partial<OrchestratorOptions> = {}) {
  const effects: string[] = [];
  const effect = <R>(what: string, result: R): R => {
    effects.push(what);
    return result;
  };
  const mail = memoryMail();
  const clock = manualClock({ now: Date.UTC(2026, 0, 5) });
  const orchestrator = createOrchestrator({
    ensembles,
    scripts: {
      charge: defineScript({ output: CHARGED, run: () => effect('charge', { ok: false } as never) }),
      double: ({ input }) => effect('double', (input as number) * 2),
    },
    operations: [defineOperation({ name: 'shout', run: async () => effect('shout', { loud: 1 }) })],
    mail: { smtp: mail },
    http: stubHttp({ '*': () => effect('http', { json: {} }) }),
    secrets: { KEY: 'a-very-secret-key' },
    clock,
    ...more,
  });
  open.push(orchestrator);
  const start = orchestrator.start as (
    name: string,
    input: unknown,
    options: object,
  ) => ReturnType<Orchestrator['startAgent']>;
  const dry = async (name: string, input?: unknown, how: object | true = true, options: object = {}) =>
    (await start(name, input, { ...options, dryRun: how })).result();
  return { orchestrator, effects, mail, clock, dry };
}

const EVERYTHING = `
name: everything
state: { initial: { runs: 0 } }
notifications: [{ type: webhook, events: [execution.completed], url: 'https://partner.example/' }]
flow:
  - { agent: charge, operation: code, config: { script: charge }, setState: { runs: "\${state.runs + 1}" } }
  - { agent: call, operation: api, config: { url: 'https://x.example/\${charge.output.kind}', headers: { Authorization: 'Bearer \${env.KEY}' } } }
  - { agent: tell, operation: email, config: { provider: smtp, to: a@b.example, from: c@d.example, subject: s, body: 'run \${state.runs}' } }
  - { agent: keep, operation: storage, config: { type: kv, action: put, key: k, value: '\${charge.output.cents}' } }
  - { agent: loud, operation: shout, input: { key: "\${env.KEY}" } }
outputs: { kind: "\${charge.output.kind}", tags: "\${charge.output.tags}", kept: "\${keep.output.success}", loud: "\${loud.output}" }
`;

describe('a dry run', () => {
  it('runs no operation, and its plan has what each would get and gives what its types say', async () => {
    const { effects, mail, dry } = app([EVERYTHING]);
    const { status, output, plan = [], dryRun } = await dry('everything', { a: 1 });
    expect({ status, output, dryRun }).toEqual({
      status: 'completed',
      output: { kind: 'card', tags: ['tags'], kept: true, loud: null },
      dryRun: true,
    });
    expect(effects).toEqual([]);
    expect(mail.messages).toEqual([]);
    expect(plan.map(({ key, name, operation, from }) => [key, name, operation, from])).toEqual([
      ['flow[0]', 'charge', 'code', 'types'],
      ['flow[1]', 'call', 'api', 'types'],
      ['flow[2]', 'tell', 'email', 'types'],
      ['flow[3]', 'keep', 'storage', 'types'],
      ['flow[4]', 'loud', 'shout', 'types'],
    ]);
    expect(plan[0]).toMatchObject({ input: { a: 1 }, config: { script: 'charge' }, output: { cents: 1 } });
    expect(plan[1]).toMatchObject({ config: { url: 'https://x.example/card' }, unknown: ['output.body'] });
    expect(plan[3]).toMatchObject({ config: { action: 'put', value: 1 } });
    expect(plan[4]).toMatchObject({ output: null, unknown: ['output'] });
  });

  it('shows no secret', async () => {
    const { dry } = app([EVERYTHING]);
    const { plan } = await dry('everything');
    expect(plan?.[1]?.config).toMatchObject({ headers: { Authorization: 'Bearer ***' } });
    expect(JSON.stringify(plan)).not.toContain('a-very-secret-key');
  });

  it('changes no state, charges nobody, notifies nobody, and its steps read the state as it would be', async () => {
    const storage = sqliteStorage({ path: ':memory:' });
    const { orchestrator, dry } = app([EVERYTHING], { storage, limits: { plan: 'free' } });
    const events: string[] = [];
    orchestrator.on('*', ({ event }) => events.push(event));
    await orchestrator.state.set('everything', { runs: 41 });
    const principal = await orchestrator.tokens.verify(
      (await orchestrator.tokens.create({ name: 't', scopes: ['execute:ensembles'] })).token,
    );
    const { plan } = await dry('everything', {}, true, { principal });
    expect(plan?.[2]?.config).toMatchObject({ body: 'run 42' });
    expect((await orchestrator.state.get('everything')).state).toEqual({ runs: 41 });
    expect((await orchestrator.usage.get(principal)).executions).toMatchObject({ used: 0 });
    expect(events).toEqual([]);
    expect((await orchestrator.deliveries.list()).deliveries).toEqual([]);
    expect(await storage.kv.get('k', 0)).toBeUndefined();
  });

  it('is marked in its record and in lists, and counts in a metric of its own alone', async () => {
    const { orchestrator, dry } = app([EVERYTHING]);
    const { events } = (orchestrator as unknown as { [MASKING]: ServedDependencies })[MASKING];
    const measured: unknown[] = [];
    events.onMeasured((metric, labels, value) => measured.push([metric.name, ...labels, value]));
    const { id } = await dry('everything');
    const record = await orchestrator.executions.get(id);
    expect([record.dryRun, record.trigger, record.plan?.length]).toEqual([true, { type: 'call', dryRun: {} }, 5]);
    const { executions } = await orchestrator.executions.list();
    expect(executions.map((one) => [one.id, one.dryRun, one.plan])).toEqual([[id, true, undefined]]);
    expect(measured).toContainEqual(['ensemble.executions.dry', 'everything', 'completed', 1]);
    expect(measured.filter((one) => /executions\.(started|ended)/.test(String(one)))).toEqual([]);
  });

  it('passes waits in no time, and takes the payload of a signal from its fields', async () => {
    const flow = `
name: slow
timeout: 10d
flow:
  - { sleep: 3d }
  - { wait: approved, name: approval, timeout: 1h, fields: { type: object, required: [by], properties: { by: { type: string } } } }
  - { wait: other, name: other }
  - { agent: one, operation: code, config: { script: double }, input: 2 }
outputs: { by: "\${approval.output.by}", other: "\${other.output}" }`;
    const { dry } = app([flow]);
    const { output, plan, createdAt } = await dry('slow');
    expect(output).toEqual({ by: 'by', other: null });
    expect(plan?.map(({ kind, at, until, unknown }) => ({ kind, at, until, unknown }))).toEqual([
      { kind: 'sleep', at: 0, until: createdAt + 259_200_000 },
      { kind: 'wait', at: 259_200_000 },
      { kind: 'wait', at: 259_200_000, unknown: ['output'] },
      { kind: 'agent', at: 259_200_000, unknown: ['output'] },
    ]);
  });

  it('ends as the timeout of its ensemble would end it', async () => {
    const { dry } = app(['name: late\ntimeout: 1h\nflow: [{ sleep: 2h }]']);
    expect((await dry('late')).status).toBe('timed_out');
  });

  it('shows skipped steps, and the steps of children, which run dry too', async () => {
    const child = `
name: child
inputs: { x: { type: number, required: true } }
flow: [{ agent: inner, operation: code, config: { script: double }, input: "\${input.x}" }]
outputs: { y: "\${input.x + 1}" }`;
    const parent = `
name: parent
flow:
  - { agent: no, operation: code, condition: "\${1 > 2}", config: { script: double } }
  - { ensemble: child, name: kid, input: { x: 3 } }
  - { ensemble: child, name: apart, input: { x: 5 }, detached: true }
outputs: { y: "\${kid.output.y}" }`;
    const { orchestrator, effects, dry } = app([parent, child]);
    const { output, plan } = await dry('parent');
    expect(output).toEqual({ y: 4 });
    expect(plan?.map(({ within, key, name, skipped, input }) => ({ within, key, name, skipped, input }))).toEqual([
      { key: 'flow[0]', name: 'no', skipped: true },
      { key: 'flow[1]', name: 'child', input: { x: 3 } },
      { within: 'flow[1]', key: 'flow[0]', name: 'inner', input: 3 },
      { key: 'flow[2]', name: 'child', input: { x: 5 } },
      { within: 'flow[2]', key: 'flow[0]', name: 'inner', input: 5 },
    ]);
    expect(effects).toEqual([]);
    expect((await orchestrator.executions.list()).executions).toHaveLength(1);
  });

  it('takes the next of several values each time, and leaves a loop that made-up results never end', async () => {
    const flow = `
name: loops
flow:
  - while: \${poll.output.state != 'done'}
    steps:
      - { agent: poll, operation: code, config: { script: double }, output: { type: object, required: [state], properties: { state: { enum: [busy, done] } } } }
  - while: \${ask.output != 'yes'}
    steps: [{ agent: ask, operation: code, config: { script: double } }]
  - { agent: after, operation: code, config: { script: double } }`;
    const { dry } = app([flow]);
    const { status, plan } = await dry('loops');
    expect(status).toBe('completed');
    expect(plan?.map(({ name, kind }) => name || kind)).toEqual([
      'poll',
      'poll',
      'ask',
      'ask',
      'ask',
      'while',
      'after',
    ]);
  });

  it('fails where an execution would fail, is not unresolved, and is not retried', async () => {
    const flow = `
name: broken
flow:
  - { agent: first, operation: code, config: { script: double }, output: { type: string } }
  - { agent: second, operation: code, config: { script: double }, input: "\${first.output * 2}" }`;
    for (const storage of [undefined, sqliteStorage({ path: ':memory:' })]) {
      const { orchestrator, dry } = app([flow.replace('{ type: string }', '{ type: [string, number] }')], { storage });
      const { id, status, error, plan } = await dry('broken');
      expect([status, error?.code, error?.agent]).toEqual(['failed', 'EXPRESSION_ERROR', 'second']);
      expect(plan?.[1]).toMatchObject({ key: 'flow[1]', error: { code: 'EXPRESSION_ERROR' } });
      expect((await orchestrator.executions.open()).unresolved).toEqual({ count: 0 });
      await expect(orchestrator.executions.retry(id)).rejects.toMatchObject({ code: 'CONFLICT' });
    }
  });

  it('`like`: its steps give what they gave in an execution, whose input is the default', async () => {
    const flow = `
name: order
inputs: { n: { type: number, required: true } }
flow:
  - { agent: one, operation: code, config: { script: double }, input: "\${input.n}" }
  - { wait: go, name: go }
  - { agent: bad, operation: api, config: { url: 'https://x.example/' }, continueOnError: true }
  - { agent: two, operation: code, config: { script: double }, input: "\${one.output}" }
outputs: { two: "\${two.output}", go: "\${go.output}", bad: "\${bad.error.code}" }`;
    const http = stubHttp({ '*': { status: 404 } });
    const { orchestrator, effects, dry } = app([flow, flow.replace('name: order', 'name: other')], { http });
    const real = await orchestrator.start('order', { n: 5 });
    await orchestrator.executions.signal(real.id, 'go', { by: 'Ada' });
    const { output } = await real.result();
    expect(output).toEqual({ two: 20, go: { by: 'Ada' }, bad: 'AGENT_FAILED' });
    effects.length = 0;
    const again = await dry('order', undefined, { like: real.id });
    expect([again.input, again.output]).toEqual([{ n: 5 }, output]);
    expect(again.plan?.map(({ from }) => from)).toEqual(['execution', 'execution', 'execution', 'execution']);
    expect(effects).toEqual([]);
    expect((await dry('order', { n: 6 }, { like: real.id })).plan?.[0]?.input).toBe(6);
    await expect(dry('order', {}, { like: 'exec_none' })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(dry('other', {}, { like: real.id })).rejects.toThrow(/is of `order`, not of `other`/);
  });

  it('`runScripts`: scripts and operations of the app run, and nothing of the library that reaches outside', async () => {
    const flow = `
name: some
flow:
  - { agent: one, operation: code, config: { script: double }, input: 4 }
  - { agent: call, operation: api, config: { url: 'https://x.example/' } }
  - { agent: loud, operation: shout }
outputs: { one: "\${one.output}", loud: "\${loud.output}", status: "\${call.output.status}" }`;
    const { effects, dry } = app([flow]);
    const { output, plan } = await dry('some', {}, { runScripts: true });
    expect(output).toEqual({ one: 8, loud: { loud: 1 }, status: 200 });
    expect(plan?.map(({ from }) => from)).toEqual(['operation', 'types', 'operation']);
    expect(effects).toEqual(['double', 'shout']);
  });

  it('refuses an id and a key, which the real start needs, and wrong options', async () => {
    const { dry } = app(['name: none\nflow: []']);
    await expect(dry('none', {}, true, { id: 'order-1' })).rejects.toThrow(/a dry run takes no `id`/);
    await expect(dry('none', {}, true, { idempotencyKey: 'k' })).rejects.toThrow(/no `idempotencyKey`/);
    await expect(dry('none', {}, { runScript: true })).rejects.toThrow(/runScript/);
    await expect(dry('none', {}, { like: 7 })).rejects.toThrow(/like/);
  });

  it('runs no operation in another process either, where a queue passes it on', async () => {
    const storage = sqliteStorage({ path: ':memory:' });
    const queues = app([EVERYTHING], { storage, engine: embeddedEngine({ concurrency: 0 }) });
    const started = (await queues.orchestrator.start('everything', {}, { dryRun: true })).id;
    expect((await queues.orchestrator.executions.status(started)).status).toBe('queued');
    const runs = app([EVERYTHING], { storage, clock: queues.clock });
    await runs.orchestrator.runDue();
    const record = await runs.orchestrator.executions.get(started);
    expect([record.status, record.dryRun, record.plan?.length]).toEqual(['completed', true, 5]);
    expect(runs.effects).toEqual([]);
    expect((await runs.orchestrator.deliveries.list()).deliveries).toEqual([]);
  });

  it('of an agent alone shows what it would get', async () => {
    const agents = [{ name: 'alone', operation: 'shout', input: { text: '${input.text}' } }];
    const { orchestrator, effects } = app([], { agents } as never);
    const { plan } = await orchestrator.executeAgent('alone', { text: 'hi' }, { dryRun: true });
    expect(plan).toMatchObject([{ name: 'alone', operation: 'shout', input: { text: 'hi' }, output: null }]);
    expect(effects).toEqual([]);
  });

  it('keeps at most 1,000 steps of a plan, and leaves out values beyond 1 MiB', async () => {
    const flow = `
name: many
flow:
  - foreach: \${input.items}
    steps: [{ agent: one, operation: code, config: { script: double }, input: "\${item}" }]`;
    const { dry } = app([flow]);
    const { plan } = await dry('many', { items: Array.from({ length: 1_200 }, () => 'x'.repeat(1_500)) });
    expect(plan).toHaveLength(1_000);
    expect(plan?.[0]?.input).toHaveLength(1_500);
    expect(plan?.at(-1)).toMatchObject({ omitted: true, name: 'one' });
    expect(plan?.at(-1)).not.toHaveProperty('input');
  });

  it('`like`: a step that has moved gets its own result, a new one none, and a child its recorded end', async () => {
    const step = (name: string) => `  - { agent: ${name}, operation: code, config: { script: double }, input: 4 }\n`;
    const child = `name: child\nflow:\n${step('inner')}outputs: { y: "\${inner.output}" }`;
    const before = `name: order\nflow:\n${step('old')}  - { ensemble: child, name: kid }\n`;
    const storage = memoryStorage({ shared: true });
    const real = app([before, child], { storage });
    const { id } = await real.orchestrator.execute('order', {});
    const after = `name: order\nflow:\n${step('fresh')}${step('old')}  - { ensemble: child, name: kid }\noutputs: { old: "\${old.output}", fresh: "\${fresh.output}" }`;
    const { output, plan } = await app([after, child], { storage, clock: real.clock }).dry('order', {}, { like: id });
    expect(output).toEqual({ old: 8, fresh: null });
    expect(plan?.map(({ name, from }) => [name, from])).toEqual([
      ['fresh', 'types'],
      ['old', 'execution'],
      ['child', undefined],
      ['inner', 'types'],
    ]);
    const same = await app([before, child], { storage, clock: real.clock }).dry('order', {}, { like: id });
    expect(same.plan?.map(({ name, from, output: gave }) => [name, from, gave])).toEqual([
      ['old', 'execution', 8],
      ['child', 'execution', { y: 8 }],
    ]);
  });

  it('`runScripts`: timeouts and races end a script as they would, and what it charges is charged', async () => {
    const never = { never: () => new Promise(() => {}), double: () => 1 };
    const timed = `name: timed
flow:
  - { agent: slow, operation: code, timeout: 50ms, config: { script: never }, continueOnError: true }
  - parallel: [{ agent: fast, operation: code, config: { script: double } }, { agent: lost, operation: code, config: { script: never } }]
    waitFor: any
  - { sleep: 5h }
  - { agent: last, operation: code, config: { script: double } }`;
    const { dry, orchestrator } = app([timed], { scripts: never as never, clock: systemClock() });
    const { token } = await orchestrator.tokens.create({ name: 't', scopes: ['execute:ensembles'] });
    const principal = await orchestrator.tokens.verify(token);
    const { status, plan } = await dry('timed', {}, { runScripts: true }, { principal });
    expect([status, plan?.[0]?.error?.code, plan?.at(-1)?.name]).toEqual(['completed', 'TIMEOUT', 'last']);
    expect((await orchestrator.usage.get(principal)).executions).toMatchObject({ used: 1 });
  });

  it('is cancelled by the signal of its caller', async () => {
    const flow = 'name: long\nflow: [{ agent: slow, operation: code, config: { script: never } }]';
    const scripts = { never: () => new Promise(() => {}) };
    const { dry } = app([flow], { scripts: scripts as never, clock: systemClock() });
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 50);
    expect((await dry('long', {}, { runScripts: true }, { signal: controller.signal })).status).toBe('cancelled');
    expect((await dry('long', {}, true, { signal: AbortSignal.abort() })).status).toBe('cancelled');
  });

  it('makes up values that their schemas accept', async () => {
    const made = `
name: made
flow:
  - agent: a
    operation: code
    config: { script: double }
    output:
      type: object
      required: [n, odd, mail, day, code, size]
      properties:
        n: { type: integer, minimum: 10 }
        odd: { type: integer, exclusiveMinimum: 1, multipleOf: 3, maximum: 9 }
        mail: { type: string, format: email }
        day: { type: string, format: date }
        code: { type: string, minLength: 5 }
        size: { enum: [small, large] }
  - { ensemble: taken, input: "\${a.output}" }
  - { wait: form, name: form, fields: { type: object, required: [n], properties: { n: { type: integer, minimum: 5, default: 7 } } } }
outputs: { n: "\${form.output.n}" }`;
    const taken = `name: taken
inputs: { type: object, required: [n, mail, day, code], properties: { n: { type: integer, minimum: 10 }, odd: { type: integer, multipleOf: 3 }, mail: { type: string, format: email }, day: { type: string, format: date }, code: { type: string, minLength: 5 }, size: { enum: [small, large] } } }
flow: []`;
    const { status, error, plan, output } = await app([made, taken]).dry('made');
    expect([status, error, output]).toEqual(['completed', undefined, { n: 7 }]);
    expect(plan?.[0]?.output).toEqual({
      n: 10,
      odd: 3,
      mail: 'ada@example.com',
      day: '2026-01-31',
      code: 'xxxxx',
      size: 'small',
    });
    const list = 'output: { type: array, minItems: 5000000, items: { type: string } }';
    const many = `name: many\nflow: [{ agent: a, operation: code, config: { script: double }, ${list} }]`;
    expect((await app([many]).dry('many')).agents[0]?.output).toHaveLength(1_999);
  });

  it('shows a child that is refused, cancels one that loses a race, and has one state of each ensemble', async () => {
    const child = (more: string) => `name: child\n${more}`;
    const count =
      'state: { initial: { c: 0 } }\nflow: [{ agent: a, operation: code, config: { script: double }, setState: { c: "${state.c + 1}" } }]\noutputs: { c: "${state.c}" }';
    const twice =
      'name: twice\nflow: [{ ensemble: child, name: one }, { ensemble: child, name: two }]\noutputs: { c: "${two.output.c}" }';
    expect((await app([twice, child(count)]).dry('twice')).output).toEqual({ c: 2 });
    const refused = 'name: parent\nflow: [{ ensemble: child, input: { n: "${input.n}" }, continueOnError: true }]';
    const needy = child('inputs: { n: { type: number, required: true } }\nflow: []');
    const { plan } = await app([refused, needy]).dry('parent', { n: 'x' });
    expect(plan).toMatchObject([{ key: 'flow[0]', kind: 'ensemble', error: { code: 'INVALID_INPUT' } }]);
    const race =
      'name: race\nflow: [{ parallel: [{ ensemble: child }, { agent: z, operation: code, config: { script: double } }], waitFor: any }, { sleep: 5h }]';
    const late = child('flow: [{ sleep: 2h }, { agent: late, operation: code, config: { script: double } }]');
    const names = (await app([race, late]).dry('race')).plan?.map(({ name, kind }) => name || kind);
    expect(names).not.toContain('late');
  });

  it('hides what an expression has made of a secret', async () => {
    const flow = `name: loud
flow:
  - { agent: a, operation: api, config: { url: 'https://x.example/', headers: { Y: "\${upper(env.KEY)}", Z: "k \${env.KEY}" } } }
  - { agent: b, operation: shout, input: { key: "\${upper(env.KEY)}", n: 1 } }`;
    const { plan } = await app([flow]).dry('loud');
    expect(plan?.[0]?.config).toMatchObject({ headers: { Y: '***', Z: 'k ***' } });
    expect(plan?.[1]?.input).toEqual({ key: '***', n: 1 });
  });

  it('holds no more than its plan keeps, however often a large input is passed on', async () => {
    const flow =
      'name: mem\nflow:\n  - foreach: ${input.items}\n    steps: [{ agent: f, operation: code, config: { script: double } }]';
    const { dry } = app([flow], { clock: systemClock() });
    const input = { items: Array.from({ length: 3_000 }, (_, i) => i), big: 'x'.repeat(900_000) };
    const before = process.memoryUsage().rss;
    const { status, plan, metrics } = await dry('mem', input);
    expect([status, plan?.length, metrics.agents]).toEqual(['completed', 1_000, 3_000]);
    expect(process.memoryUsage().rss - before).toBeLessThan(600_000_000);
  });

  it('of an agent alone, and of a member of a route, gives a value of its type', async () => {
    const declared = {
      operation: 'shout',
      output: { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } },
    };
    const flow = 'name: routed\nflow: [{ agent: choose, routes: [{ default: true, member: alone }] }]';
    const { orchestrator, dry } = app([flow], { agents: [{ name: 'alone', ...declared }] } as never);
    expect((await orchestrator.executeAgent('alone', {}, { dryRun: true })).output).toEqual({ n: 1 });
    expect((await dry('routed')).plan).toMatchObject([{ key: 'flow[0].alone', output: { n: 1 } }]);
  });
});
