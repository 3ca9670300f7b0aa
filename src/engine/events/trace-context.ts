/** The W3C trace context: which trace, and which span of it, something belongs to. */

export interface TraceContext {
  /** Such as `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`. */
  readonly traceparent: string;
  /** What tracing systems add, such as `vendor=value`. At most 512 characters. */
  readonly tracestate?: string | undefined;
}

/** The trace that a trigger has. */
export function traceOf({ traceparent, tracestate }: Partial<TraceContext>): TraceContext | undefined {
  return traceparent === undefined ? undefined : { traceparent, ...(tracestate !== undefined && { tracestate }) };
}

/** What the option `traceparent` must be. */
export const TRACEPARENT_RULE =
  '`traceparent` must be as W3C writes it: 00-<32 hex digits>-<16 hex digits>-<2 hex digits>';

/** A later version may have more parts. An id of zeros is none. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-[!-~]*)?$/;
const TRACESTATE = /^[ -~]{1,512}$/;

export function isTraceparent(text: string): boolean {
  return text.length <= 255 && TRACEPARENT.test(text);
}

/** @returns undefined without a trace, or with one that is not written as W3C says: then the sender is as if it had none */
export function toTraceContext(
  traceparent: string | undefined,
  tracestate: string | undefined,
): TraceContext | undefined {
  if (traceparent === undefined || !isTraceparent(traceparent)) return undefined;
  return tracestate !== undefined && TRACESTATE.test(tracestate) ? { traceparent, tracestate } : { traceparent };
}
