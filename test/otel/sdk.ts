/** The real SDK of OpenTelemetry, which exports spans into a list. */

import { context, metrics, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterAll, beforeAll, beforeEach } from 'vitest';

const exporter = new InMemorySpanExporter();

/** Registers the SDK for the tests of a file. */
export function useSdk(): void {
  beforeAll(() => {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
  });
  beforeEach(() => exporter.reset());
  afterAll(() => {
    trace.disable();
    context.disable();
    metrics.disable();
  });
}

/** The exported spans, in the order in which they ended. @param name - the beginning of the name */
export function spans(name = ''): readonly ReadableSpan[] {
  return exporter.getFinishedSpans().filter((span) => span.name.startsWith(name));
}

export function span(name: string): ReadableSpan {
  const [found, second] = spans(name);
  if (!found || second) throw new Error(`not one span ${name}, but ${spans().map((one) => one.name)}`);
  return found;
}

type Maybe = ReadableSpan | undefined;
export const idOf = (one: Maybe) => one?.spanContext().spanId;
export const traceIdOf = (one: Maybe) => one?.spanContext().traceId;
export const parentOf = (one: Maybe) => one?.parentSpanContext?.spanId;
/** The ids of the spans that one is linked to. */
export const linksOf = (one: Maybe) => one?.links.map((link) => link.context.spanId);
