/** The metrics, as the real SDK collects them. */

import { metrics } from '@opentelemetry/api';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { openTelemetry } from 'ensemble-orchestrator/otel';
import { createTestOrchestrator, fakeModel } from 'ensemble-orchestrator/testing';
import { afterAll, expect, it } from 'vitest';

const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
afterAll(async () => {
  await reader.shutdown();
  metrics.disable();
});

const ASK = 'name: ask\nflow:\n  - { agent: a, operation: think, config: { model: m, prompt: Hi } }\n';
const WAIT = 'name: wait\nflow:\n  - wait: go\n';

async function collect() {
  await reader.forceFlush();
  const all =
    exporter
      .getMetrics()
      .at(-1)
      ?.scopeMetrics.flatMap((scope) => scope.metrics) ?? [];
  return Object.fromEntries(
    all.map(({ descriptor, dataPoints }) => [
      descriptor.name,
      dataPoints.map(({ attributes, value }) => [
        attributes,
        typeof value === 'number' ? value : (value as { readonly sum: number }).sum,
      ]),
    ]),
  );
}

it('without a provider of metrics, nothing listens to events: none is built', async () => {
  let listened = false;
  const { attach } = openTelemetry();
  attach({
    ...{ mask: String, json: JSON.stringify },
    listen: () => (listened = true),
    open: async () => ({}) as never,
  });
  expect(listened).toBe(false);
});

it('are those of the page on metrics, and those of the conventions for GenAI under their names', async () => {
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
  const orchestrator = createTestOrchestrator({
    telemetry: openTelemetry(),
    models: { fake: fakeModel(['Hello']) },
    ensembles: [ASK, WAIT],
  });
  await orchestrator.execute('ask');
  await orchestrator.start('wait');
  await orchestrator.clock.turn();
  const found = await collect();
  expect(found['ensemble.executions.ended']).toEqual([[{ ensemble: 'ask', status: 'completed' }, 1]]);
  const chat = { 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'fake', 'gen_ai.request.model': 'm' };
  expect(found['gen_ai.client.token.usage']).toEqual([
    [{ ...chat, 'gen_ai.token.type': 'input' }, 10],
    [{ ...chat, 'gen_ai.token.type': 'output' }, 5],
  ]);
  expect(found['ensemble.executions']).toContainEqual([{ status: 'waiting' }, 1]);
  expect(Object.keys(found)).toContain('gen_ai.client.operation.duration');
  expect(Object.keys(found)).not.toContain('ensemble.model.tokens');
  await orchestrator.close();
});
