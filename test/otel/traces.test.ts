/** The spans of executions, as the real SDK exports them. */

import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { createHandler, type Logger, memoryStorage, signPayload } from 'ensemble-orchestrator';
import { type OpenTelemetryOptions, openTelemetry } from 'ensemble-orchestrator/otel';
import {
  createTestOrchestrator,
  fakeModel,
  stubHttp,
  type TestOrchestratorOptions,
} from 'ensemble-orchestrator/testing';
import { describe, expect, it } from 'vitest';
import { idOf, linksOf, parentOf, span, spans, traceIdOf, useSdk } from './sdk.ts';

useSdk();

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const TRACEPARENT = `00-${TRACE_ID}-00f067aa0ba902b7-01`;

const ONE = `
name: one
flow:
  - { agent: a, operation: code, config: { script: work } }
`;
const CALLS = `
name: calls
flow:
  - { agent: a, operation: api, config: { url: '\${input.url}' } }
`;
const WAITS = `
name: waits
flow:
  - { agent: before, operation: code, config: { script: work } }
  - sleep: '\${input.for}'
  - { agent: after, operation: code, config: { script: work } }
`;

function traced(options: TestOrchestratorOptions, how: OpenTelemetryOptions = {}) {
  return createTestOrchestrator({ telemetry: openTelemetry(how), scripts: { work: () => 1 }, ...options });
}

describe('the spans of an execution', () => {
  it('are a root `create`, which has ended, and below it a span for the run and one for each attempt', async () => {
    let attempts = 0;
    const work = () => {
      attempts += 1;
      if (attempts === 1) throw new Error('not yet');
      return 1;
    };
    const { id } = await traced({
      ensembles: [ONE.replace('work', 'work },\n      retry: { maxAttempts: 2')],
      scripts: { work },
    }).execute('one');
    const create = span('create one');
    expect(create.kind).toBe(SpanKind.PRODUCER);
    expect(parentOf(create)).toBeUndefined();
    expect(create.attributes).toMatchObject({ 'ensemble.execution.id': id, 'ensemble.trigger': 'call' });
    expect(spans().map((one) => [one.name, one.attributes['ensemble.attempt'], one.status.code])).toEqual([
      ['create one', undefined, SpanStatusCode.UNSET],
      ['agent a', 1, SpanStatusCode.ERROR],
      // Before the next attempt, the run is suspended for a second.
      ['invoke_workflow one', undefined, SpanStatusCode.UNSET],
      ['agent a', 2, SpanStatusCode.UNSET],
      ['invoke_workflow one', undefined, SpanStatusCode.UNSET],
    ]);
    for (const one of spans().slice(1)) expect(parentOf(one)).toBe(idOf(create));
    expect(spans('agent a')[0]?.attributes['error.type']).toBe('AGENT_FAILED');
  });

  it('have no value of an input, an output or a message, unless `capture` is set; then without secrets', async () => {
    const texts = async (capture: boolean) => {
      const work = () => ({ said: 'hush-hush', seen: 'shown' });
      await traced({ ensembles: [ONE], scripts: { work }, secrets: { KEY: 'hush-hush' } }, { capture }).execute('one', {
        n: 'given',
      });
      return JSON.stringify(spans().map(({ name, attributes, status, events }) => [name, attributes, status, events]));
    };
    const without = await texts(false);
    expect(without).not.toMatch(/shown|given|hush/);
    const all = await texts(true);
    expect(all).toContain('shown');
    expect(all).toContain('given');
    expect(all).not.toContain('hush-hush');
  });

  it('say what models and tools did, as the conventions for GenAI name it', async () => {
    const orchestrator = traced({
      models: { acme: fakeModel([{ toolCalls: [{ name: 'look', arguments: {} }] }, { text: 'done', model: 'm-2' }]) },
      agents: [{ name: 'look', operation: 'code', config: { script: 'work' } }],
      ensembles: [
        'name: asks\nflow:\n  - agent: a\n    operation: think\n    config: { model: m, prompt: Hi, tools: [{ agent: look }] }\n',
      ],
    });
    const { status } = await orchestrator.execute('asks');
    expect(status).toBe('completed');
    const agent = span('agent a');
    const [first, second] = spans('chat m');
    expect(second?.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'acme',
      'gen_ai.request.model': 'm',
      'gen_ai.response.model': 'm-2',
      'gen_ai.response.finish_reasons': ['stop'],
      'gen_ai.usage.input_tokens': 10,
      'gen_ai.usage.output_tokens': 5,
    });
    const tool = span('execute_tool look');
    for (const one of [first, second, tool]) expect(parentOf(one)).toBe(idOf(agent));
    expect(span('invoke_workflow asks').attributes).toMatchObject({ 'gen_ai.workflow.name': 'asks' });
  });

  it('are the same for a run that is replayed: what was done before the crash has no second span', async () => {
    let finish = () => {};
    const hangs = () => new Promise<number>((resolve) => (finish = () => resolve(2)));
    const flow = `${ONE}  - { agent: b, operation: code, config: { script: hangs } }\n`;
    const orchestrator = traced({ ensembles: [flow], scripts: { work: () => 1, hangs } });
    const { id } = await orchestrator.start('one');
    await orchestrator.clock.turn();
    const next = await orchestrator.crash();
    await next.clock.turn();
    finish();
    await next.result(id);
    expect(spans('agent').map(({ name }) => name)).toEqual(['agent a', 'agent b']);
    const exported = new Set(spans().map(idOf));
    for (const one of spans()) if (parentOf(one)) expect(exported).toContain(parentOf(one));
    expect(spans('invoke_workflow').at(-1)?.attributes['ensemble.recoveries']).toBe(1);
  });

  it('nothing is exported by an orchestrator without the option', async () => {
    await createTestOrchestrator({ ensembles: [ONE], scripts: { work: () => 1 } }).execute('one');
    expect(spans()).toEqual([]);
  });
});

describe('after a wait', () => {
  const waitFor = async (how: OpenTelemetryOptions, duration: string) => {
    const orchestrator = traced({ ensembles: [WAITS] }, how);
    const { status } = await orchestrator.execute('waits', { for: duration });
    expect(status).toBe('completed');
    return { create: span('create waits'), runs: spans('invoke_workflow'), after: span('agent after') };
  };

  it('of minutes, the next run is in the same trace, and linked to the run before', async () => {
    const { create, runs, after } = await waitFor({}, '10m');
    expect(runs.map(parentOf)).toEqual([idOf(create), idOf(create)]);
    expect(linksOf(runs[1])).toEqual([idOf(runs[0])]);
    expect(runs[0]?.attributes['ensemble.status']).toBe('left');
    expect(parentOf(after)).toBe(idOf(create));
  });

  it('of 30 days, it is in a new trace, whose root has ended and is linked to the start', async () => {
    const { create, runs, after } = await waitFor({}, '30d');
    const resume = span('resume waits');
    expect(traceIdOf(resume)).not.toBe(traceIdOf(create));
    expect(linksOf(resume)).toEqual([idOf(create), idOf(runs[0])]);
    expect(parentOf(runs[1])).toBe(idOf(resume));
    expect(parentOf(after)).toBe(idOf(resume));
    // No span stays open through the wait.
    for (const one of spans()) expect(one.duration[0]).toBeLessThan(60);
  });

  it("of 30 days, it stays in the trace with `waits: 'same-trace'`", async () => {
    const same = await waitFor({ waits: 'same-trace' }, '30d');
    expect(new Set(spans().map(traceIdOf))).toEqual(new Set([traceIdOf(same.create)]));
  });

  it("of minutes, it gets a new trace with `waits: 'new-trace'`", async () => {
    const { create, after } = await waitFor({ waits: 'new-trace' }, '10m');
    expect(traceIdOf(after)).not.toBe(traceIdOf(create));
  });
});

describe('the trace comes in', () => {
  it('by `traceparent` of a start, and by the span that is active', async () => {
    const orchestrator = traced({ ensembles: [ONE] });
    const { id } = await orchestrator.start('one', {}, { traceparent: TRACEPARENT, tracestate: 'acme=1' });
    const { trigger } = await orchestrator.result(id);
    const given = span('create one');
    expect([traceIdOf(given), parentOf(given)]).toEqual([TRACE_ID, '00f067aa0ba902b7']);
    expect(trigger).toMatchObject({ traceparent: `00-${TRACE_ID}-${idOf(given)}-01`, tracestate: 'acme=1' });

    const caller = trace.getTracer('app').startSpan('request');
    await context.with(trace.setSpan(context.active(), caller), () => orchestrator.execute('one'));
    expect(spans('create one').map(parentOf)).toContain(caller.spanContext().spanId);
  });

  it('a `traceparent` that is not one is a TypeError of a start; from a request it is left out', async () => {
    const orchestrator = traced({ ensembles: [ONE] });
    await expect(orchestrator.start('one', {}, { traceparent: '00-1-2-01' })).rejects.toThrow(/traceparent/);
    const { token } = await orchestrator.tokens.create({ name: 't', scopes: ['execute:ensembles'] });
    const headers = { authorization: `Bearer ${token}`, traceparent: '00-zz', 'content-type': 'application/json' };
    const url = 'http://localhost/api/v1/execute/ensemble/one';
    const { status } = await createHandler(orchestrator).fetch(
      new Request(url, { method: 'POST', headers, body: '{}' }),
    );
    expect(status).toBe(200);
  });

  it('by a request that waits; one that does not wait, and a webhook, begin a trace that is linked to it', async () => {
    const hook = ONE.replace(
      'name: one',
      'name: hook\ntrigger: [{ type: webhook, path: /webhooks/hook, auth: { type: signature, secret: s } }]',
    );
    const orchestrator = traced({ ensembles: [ONE, hook] });
    const { fetch } = createHandler(orchestrator);
    const { token } = await orchestrator.tokens.create({ name: 't', scopes: ['execute:ensembles'] });
    const send = (path: string, body: string, headers: Record<string, string>) =>
      fetch(
        new Request(`http://localhost${path}`, {
          ...{ method: 'POST', body },
          headers: { 'content-type': 'application/json', traceparent: TRACEPARENT, ...headers },
        }),
      );
    const authorization = `Bearer ${token}`;
    await send('/api/v1/execute/ensemble/one', '{}', { authorization });
    await send('/api/v1/execute/ensemble/one', '{"async":true}', { authorization });
    const now = orchestrator.clock.now();
    await send('/webhooks/hook', '{}', signPayload({ secret: 's', body: '{}', now }));
    const [waited, queued] = spans('create one');
    expect([traceIdOf(waited), parentOf(waited)]).toEqual([TRACE_ID, '00f067aa0ba902b7']);
    for (const one of [queued, span('create hook')]) {
      expect(traceIdOf(one)).not.toBe(TRACE_ID);
      expect(parentOf(one)).toBeUndefined();
      expect(linksOf(one)).toEqual(['00f067aa0ba902b7']);
    }
  });

  it('is stored without telemetry too, so that a process with telemetry continues it', async () => {
    const storage = memoryStorage();
    const orchestrator = createTestOrchestrator({ ensembles: [ONE], scripts: { work: () => 1 }, storage });
    const { id } = await orchestrator.start('one', {}, { traceparent: TRACEPARENT });
    expect((await orchestrator.result(id)).trigger).toEqual({ type: 'call', traceparent: TRACEPARENT });
  });
});

describe('the trace goes out', () => {
  const send = async (url: string, how: OpenTelemetryOptions = {}) => {
    const http = stubHttp({ [`GET ${url}`]: { status: 200, json: {} } });
    await traced({ ensembles: [CALLS], http }, how).execute('calls', { url });
    return http.calls[0]?.headers?.traceparent;
  };

  it('with an `api` agent to one’s own network, and its span is that of the request', async () => {
    const traceparent = await send('http://orders.internal/list');
    const request = span('GET');
    expect(traceparent).toBe(`00-${traceIdOf(request)}-${idOf(request)}-01`);
    expect(request.kind).toBe(SpanKind.CLIENT);
    expect(parentOf(request)).toBe(idOf(span('agent a')));
    expect(request.attributes).toMatchObject({
      'http.request.method': 'GET',
      'http.response.status_code': 200,
      'server.address': 'orders.internal',
      'server.port': 80,
      'url.full': 'http://orders.internal/list',
    });
  });

  it('without a secret, also where a host begins with it, which the parser writes in lower case', async () => {
    const url = 'https://Tenant-Key-7.example.com/Tenant-Key-7';
    const http = stubHttp({ [`GET ${url}`]: { status: 200, json: {} } });
    await traced({ ensembles: [CALLS], http, secrets: { KEY: 'Tenant-Key-7' } }).execute('calls', { url });
    expect(span('GET').attributes).toMatchObject({
      'server.address': '***.example.com',
      'url.full': 'https://***.example.com/***',
    });
  });

  it.each<[string, OpenTelemetryOptions, boolean]>([
    ['https://api.example.com/a', {}, false],
    ['https://api.example.com/a', { propagate: true }, true],
    ['https://api.example.com/a', { propagate: ['*.example.com'] }, true],
    ['https://api.example.org/a', { propagate: ['*.example.com'] }, false],
    ['http://127.0.0.1:8080/a', {}, true],
    ['http://127.0.0.1:8080/a', { propagate: false }, false],
  ])('to %s with %j: %s', async (url, how, passes) => {
    expect((await send(url, how)) !== undefined).toBe(passes);
  });

  it('to a child, which is in the trace of its parent; a detached one is linked to it', async () => {
    const parent = 'name: parent\nflow:\n  - { ensemble: one }\n  - { ensemble: one, name: other, detached: true }\n';
    const orchestrator = traced({ ensembles: [ONE, parent] });
    await orchestrator.execute('parent');
    const create = span('create parent');
    const [child, detached] = spans('create one');
    expect(parentOf(child)).toBe(idOf(create));
    expect(traceIdOf(detached)).not.toBe(traceIdOf(create));
    expect(linksOf(detached)).toEqual([idOf(create)]);
  });

  it('with a delivery, whose attempts are spans of the trace of their execution', async () => {
    const url = 'http://hooks.internal/in';
    const http = stubHttp({ [`POST ${url}`]: [{ status: 503 }, { status: 200 }] });
    const notes = `notifications:\n  - { type: webhook, url: '${url}', events: [execution.completed] }\n`;
    const orchestrator = traced({ ensembles: [`${ONE}${notes}`], http });
    await orchestrator.execute('one');
    await orchestrator.deliveries.deliverDue();
    await orchestrator.clock.advance(1_000);
    await orchestrator.deliveries.deliverDue();
    const attempts = spans('deliver execution.completed');
    expect(attempts.map((one) => [parentOf(one), one.status.code])).toEqual([
      [idOf(span('create one')), SpanStatusCode.ERROR],
      [idOf(span('create one')), SpanStatusCode.UNSET],
    ]);
    expect(http.calls.map(({ headers }) => headers?.traceparent?.slice(3, 35))).toEqual(attempts.map(traceIdOf));
  });
});

describe('lines of the log', () => {
  it('have the ids of the trace and of the span: that of the attempt in a script, that of the run, that of the start at the end', async () => {
    const lines: [object, string][] = [];
    const add = (fields: object, message: string) => lines.push([fields, message]);
    const logger = { debug: add, info: add, warn: add, error: add } as Logger;
    const work = ({ logger: own }: { readonly logger: Logger }) => {
      own.info({}, 'in the script');
      return 1;
    };
    await traced({ ensembles: [ONE], scripts: { work }, logger }).execute('one');
    const fieldsOf = (message: string) => lines.find(([, said]) => said === message)?.[0];
    const trace_id = traceIdOf(span('create one'));
    expect(fieldsOf('in the script')).toMatchObject({ trace_id, span_id: idOf(span('agent a')) });
    expect(fieldsOf('execution started')).toMatchObject({ trace_id, span_id: idOf(span('invoke_workflow one')) });
    expect(fieldsOf('execution completed')).toMatchObject({ trace_id, span_id: idOf(span('create one')) });
  });
});
