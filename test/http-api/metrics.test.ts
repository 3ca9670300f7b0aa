/** `GET /metrics`: what the executions of this process do, as Prometheus reads it. */

import { describe, expect, it } from 'vitest';
import { createTestOrchestrator, fakeModel } from '../../src/entries/testing.ts';
import { createHandler, type HttpHandler, type Orchestrator } from '../../src/index.ts';

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
        'ensemble_model_tokens_total{model="small",type="input"} 10',
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
