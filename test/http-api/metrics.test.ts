/** `GET /metrics`: what the executions of this process do, as Prometheus reads it. */

import { describe, expect, it } from 'vitest';
import { createTestOrchestrator, fakeModel, stubHttp } from '../../src/entries/testing.ts';
import { createHandler, type HttpHandler, memoryStorage, type Orchestrator } from '../../src/index.ts';

const FLOW = `
name: order
flow:
  - { agent: price, operation: code, config: { script: price } }
  - { agent: letter, operation: think, config: { model: small, prompt: hello } }
  - { agent: charge, operation: code, config: { script: charge }, retry: { maxAttempts: 2, delay: 40ms } }
`;

function open(options: object = {}) {
  const { orchestrator, clock } = createTestOrchestrator({
    ensembles: [FLOW],
    models: { small: fakeModel(['Hello', 'Hello']) },
    scripts: {
      price: () => 1,
      charge: ({ execution }: { readonly execution: { readonly attempt: number } }) => {
        if (execution.attempt === 1) throw new Error('not yet');
        return 'paid';
      },
    },
    ...options,
  } as never);
  const handler = createHandler(orchestrator as Orchestrator<never>, { metrics: true, logger: false });
  return { orchestrator: orchestrator as unknown as Orchestrator, clock, handler };
}

async function scrape(handler: HttpHandler, orchestrator: Orchestrator): Promise<string> {
  const { token } = await orchestrator.tokens.create({
    name: 'prometheus',
    scopes: ['read:metrics'],
    plan: 'enterprise',
  });
  const headers = { authorization: `Bearer ${token}` };
  const response = await handler.fetch(new Request('http://localhost/metrics', { headers }));
  expect([response.status, response.headers.get('content-type')]).toEqual([
    200,
    'text/plain; version=0.0.4; charset=utf-8',
  ]);
  return response.text();
}

describe('GET /metrics', () => {
  it('has counters and histograms with a help and a type each: executions, steps, retries, models', async () => {
    const { orchestrator, handler } = open();
    await orchestrator.execute('order', {});
    const lines = (await scrape(handler, orchestrator)).split('\n');
    expect(lines).toEqual(
      expect.arrayContaining([
        '# HELP ensemble_executions_started_total Executions that began.',
        '# TYPE ensemble_executions_started_total counter',
        'ensemble_executions_started_total{ensemble="order"} 1',
        'ensemble_executions_ended_total{ensemble="order",status="completed"} 1',
        '# TYPE ensemble_execution_duration_seconds histogram',
        'ensemble_execution_duration_seconds_count{ensemble="order",status="completed"} 1',
        'ensemble_step_retries_total{ensemble="order",agent="charge"} 1',
        'ensemble_step_duration_seconds_bucket{ensemble="order",agent="charge",outcome="completed",le="0.025"} 0',
        'ensemble_step_duration_seconds_bucket{ensemble="order",agent="charge",outcome="completed",le="0.05"} 1',
        'ensemble_step_duration_seconds_bucket{ensemble="order",agent="charge",outcome="completed",le="+Inf"} 1',
        'ensemble_step_duration_seconds_sum{ensemble="order",agent="charge",outcome="completed"} 0.04',
        'ensemble_model_tokens_total{provider="small",model="small",type="input"} 10',
      ]),
    );
  });

  it('says how many executions of the store have not ended, and how long the oldest one is queued', async () => {
    const { orchestrator, handler } = open({ ensembles: [{ name: 'w', flow: [{ wait: 'go' }] }] });
    expect(await scrape(handler, orchestrator)).toContain('ensemble_executions{status="waiting"} 0\n');
    await orchestrator.start('w', {});
    await expect.poll(() => scrape(handler, orchestrator)).toContain('ensemble_executions{status="waiting"} 1\n');
    expect(await scrape(handler, orchestrator)).toContain('ensemble_queue_age_seconds 0\n');
  });

  it('is in the text format: each line is a comment or a sample, and a metric is described once', async () => {
    const { orchestrator, handler } = open();
    for (let i = 0; i < 2; i++) await orchestrator.execute('order', {});
    const lines = (await scrape(handler, orchestrator)).trimEnd().split('\n');
    const wrong = lines.filter(
      (line) =>
        !/^# (HELP|TYPE) [a-z_]+ .+$/.test(line) &&
        !/^[a-z_]+ [0-9.]+$/.test(line) &&
        !/^[a-z_]+\{([a-z]+="([^"\\\n]|\\.)*",?)+\} [0-9.e+-]+$/.test(line),
    );
    expect(wrong).toEqual([]);
    const described = lines.filter((line) => line.startsWith('# TYPE'));
    expect(new Set(described).size).toBe(described.length);
  });

  it('counts at most 2,000 combinations of labels apart, and the others together', async () => {
    const ensembles = Array.from({ length: 1_100 }, (_, i) => ({ name: `e${i}`, flow: [] }));
    const { orchestrator, handler } = open({ ensembles });
    for (const { name } of ensembles) await orchestrator.execute(name, {});
    const lines = (await scrape(handler, orchestrator)).split('\n');
    const ofEnds = lines.filter((line) => line.startsWith('ensemble_executions_ended_total{'));
    const sum = ofEnds.reduce((all, line) => all + Number(line.split(' ')[1]), 0);
    expect(sum).toBe(1_100);
    expect(ofEnds.at(-1)).toMatch(/^ensemble_executions_ended_total\{ensemble="other",status="other"\} \d{3}$/);
  });

  it('needs the scope `read:metrics`, and the option: without it, there is nothing', async () => {
    const { orchestrator, handler } = open();
    const { token } = await orchestrator.tokens.create({ name: 'x', scopes: ['read:executions'] });
    const ask = (to: HttpHandler, headers: Record<string, string> = {}) =>
      to.fetch(new Request('http://localhost/metrics', { headers }));
    expect((await ask(handler)).status).toBe(401);
    expect((await ask(handler, { authorization: `Bearer ${token}` })).status).toBe(403);
    expect((await ask(createHandler(orchestrator, { logger: false }))).status).toBe(404);
  });
});

describe('what no event reports is measured too', () => {
  it('waits in the queue, commits, requests by route and status, and what a limit refused', async () => {
    const { orchestrator, handler } = open();
    await orchestrator.execute('order', {});
    const { token } = await orchestrator.tokens.create({
      name: 't',
      scopes: ['admin'],
      plan: { requests: 1, window: 3_600 },
    });
    const headers = { authorization: `Bearer ${token}` };
    for (const path of ['/api/v1/executions', '/api/v1/executions'])
      await handler.fetch(new Request(`http://localhost${path}`, { headers }));
    const lines = (await scrape(handler, orchestrator)).split('\n');
    expect(lines).toEqual(
      expect.arrayContaining([
        'ensemble_queue_wait_seconds_count{ensemble="order"} 1',
        expect.stringMatching(/^ensemble_commit_duration_seconds_count [1-9]/),
        expect.stringMatching(/^ensemble_commit_batch_bucket\{le="1"\} [1-9]/),
        'ensemble_http_duration_seconds_count{method="GET",route="/api/v1/executions",status="200"} 1',
        'ensemble_http_duration_seconds_count{method="GET",route="/api/v1/executions",status="429"} 1',
        'ensemble_limit_refused_total{code="RATE_LIMIT_EXCEEDED"} 1',
      ]),
    );
  });

  it('how late a schedule started, and a delivery came', async () => {
    const storage = memoryStorage();
    const http = stubHttp({ 'POST https://hooks.example.com/': [{ status: 503 }, { status: 200 }] });
    const flow = `
name: nightly
trigger: [{ type: schedule, cron: '0 3 * * *' }]
notifications: [{ type: webhook, url: 'https://hooks.example.com/', events: [execution.completed] }]
flow: []
`;
    const { orchestrator, clock, handler } = open({ ensembles: [flow], storage, http });
    await orchestrator.runDue();
    await clock.advance(3 * 3_600_000 + 2_000);
    await orchestrator.runDue();
    await clock.advance(1_000);
    await orchestrator.runDue();
    const text = await scrape(handler, orchestrator);
    expect(text).toMatch(/ensemble_schedule_lag_seconds_count\{ensemble="nightly"\} 1/);
    expect(text).toMatch(/ensemble_delivery_lag_seconds_bucket\{ensemble="nightly",le="0.5"\} 0/);
    expect(text).toMatch(/ensemble_delivery_lag_seconds_count\{ensemble="nightly"\} 1/);
  });

  it('calls of the store that failed, by method and code', async () => {
    const inner = memoryStorage();
    const failing = () => Promise.reject(new Error('disk full'));
    const storage = { ...inner, executions: { ...inner.executions, list: failing } };
    const { orchestrator, handler } = open({ storage });
    await expect(orchestrator.executions.list()).rejects.toThrow();
    const text = await scrape(handler, orchestrator);
    expect(text).toContain('ensemble_store_errors_total{method="executions.list",code="other"} 1');
  });
});
