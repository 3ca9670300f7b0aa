/** Spans by the real SDK of OpenTelemetry, in memory. */

import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { openTelemetry } from 'ensemble-orchestrator/otel';
import { createTestOrchestrator, fakeModel, stubHttp } from 'ensemble-orchestrator/testing';

const TRACED = `
name: traced
flow:
  - { agent: ask, operation: think, config: { model: m, prompt: Hi } }
  - sleep: 30d
  - { agent: call, operation: api, config: { url: 'http://orders.internal/' } }
`;

/** An execution that waits for 30 virtual days: each span with the name of its parent and of what it is linked to. */
export async function traces() {
  const exporter = new InMemorySpanExporter();
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
  const http = stubHttp({ 'http://orders.internal/': { status: 200 } });
  const orchestrator = createTestOrchestrator({
    telemetry: openTelemetry(),
    models: { fake: fakeModel(['Hello']) },
    ensembles: [TRACED],
    http,
  });
  await orchestrator.execute('traced');
  await orchestrator.close();
  const spans = exporter.getFinishedSpans();
  const spanOf = (id) => spans.find((span) => span.spanContext().spanId === id)?.name ?? null;
  return {
    spans: spans.map(({ name, parentSpanContext, links }) => [
      ...[name, spanOf(parentSpanContext?.spanId)],
      links.map((link) => spanOf(link.context.spanId)),
    ]),
    sent: spanOf(http.calls[0]?.headers.traceparent?.slice(36, 52)),
  };
}
