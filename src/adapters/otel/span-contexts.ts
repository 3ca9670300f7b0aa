/** W3C trace contexts as text <-> contexts of OpenTelemetry, and which span is active. */

import {
  type Context,
  createContextKey,
  createTraceState,
  isSpanContextValid,
  ProxyTracerProvider,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  trace,
} from '@opentelemetry/api';
import type { TraceContext } from '../../engine/events/trace-context.ts';
import type { LoggedTrace } from '../../engine/host/telemetry.port.ts';

/** Spans that end together with the one that they are in. */
export interface SpanHolder {
  /** @param endTime - Unix ms */
  endLater(span: Span, endTime: number): void;
}

const HOLDER = createContextKey('ensemble-orchestrator: spans that end later');
/** By this key, the packages of OpenTelemetry ask whether what they instrument is traced already. */
const SUPPRESSED = createContextKey('OpenTelemetry SDK Context Key SUPPRESS_TRACING');

/** What takes spans while no SDK is registered. */
const NOBODY = new ProxyTracerProvider().getDelegate();

/** Whether an SDK is registered. It may be registered later than the orchestrator is created. */
export function hasProvider(): boolean {
  const provider = trace.getTracerProvider();
  return !(provider instanceof ProxyTracerProvider && provider.getDelegate() === NOBODY);
}

export function toSpanContext({ traceparent, tracestate }: TraceContext): SpanContext {
  const [, traceId = '', spanId = '', flags = '0'] = traceparent.split('-');
  return {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
    ...(tracestate !== undefined && { traceState: createTraceState(tracestate) }),
  };
}

/** @returns undefined without a provider of traces */
export function toTraceContext(ids: SpanContext): TraceContext | undefined {
  if (!isSpanContextValid(ids)) return undefined;
  const { traceId, spanId, traceFlags, traceState } = ids;
  const traceparent = `00-${traceId}-${spanId}-${(traceFlags & 0xff).toString(16).padStart(2, '0')}`;
  const tracestate = traceState?.serialize();
  return tracestate ? { traceparent, tracestate } : { traceparent };
}

export function toLogged({ traceId, spanId }: SpanContext): LoggedTrace {
  return { trace_id: traceId, span_id: spanId };
}

/** The context in which a span that is known as text is active. */
export function contextOf(known: TraceContext | undefined): Context {
  return known ? trace.setSpanContext(ROOT_CONTEXT, toSpanContext(known)) : ROOT_CONTEXT;
}

/** @param holder - ends the spans that begin in the context */
export function contextWithin(span: Span, holder: SpanHolder): Context {
  return trace.setSpan(ROOT_CONTEXT, span).setValue(HOLDER, holder);
}

export function holderOf(context: Context): SpanHolder | undefined {
  return context.getValue(HOLDER) as SpanHolder | undefined;
}

/** Instrumentations of the platform, such as that of `fetch`, do nothing in this context. */
export function withoutInstrumentation(context: Context): Context {
  return context.setValue(SUPPRESSED, true);
}
