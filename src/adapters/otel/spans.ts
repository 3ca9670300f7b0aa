/**
 * The spans of executions.
 *
 * ```text
 * create <ensemble>                 when the execution is accepted; ends at once
 *   invoke_workflow <ensemble>      one for each run, linked to the run before
 *   agent <name>                    one for each attempt
 *     chat <model>, execute_tool <tool>, GET
 *   create <child>
 *   deliver <event>
 * ```
 *
 * A span is exported when it ends, and a process may die before. So everything is under `create`, which has ended, and what is inside
 * of an attempt ends together with it: no exported span lacks its parent.
 */

import {
  type Attributes,
  type Context,
  context,
  type Link,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
} from '@opentelemetry/api';
import { OrchestratorError } from '../../engine/base/errors.ts';
import type { Json, JsonObject } from '../../engine/base/json.ts';
import { partFacts } from '../../engine/model/step-event.ts';
import type { TraceContext } from '../../engine/model/trace-context.ts';
import type { OperationPart } from '../../engine/ports/operation.ts';
import type {
  AttemptSpan,
  EndOfAttempt,
  EndOfRun,
  RunSpan,
  TracedAttempt,
  TracedDelivery,
  TracedRun,
  TracedStart,
} from '../../engine/ports/telemetry.ts';
import {
  answerAttributes,
  attemptAttributes,
  deliveryAttributes,
  ERROR_TYPE,
  INPUT,
  OUTPUT,
  partAttributes,
  partName,
  runAttributes,
  STATUS,
  startAttributes,
  workflowAttributes,
} from './names.ts';
import { contextOf, contextWithin, type SpanHolder, toLogged, toSpanContext, toTraceContext } from './span-contexts.ts';

/** After a longer wait a run begins a new trace, unless the option says otherwise: a sampler that looks at whole traces has decided before that. */
const LONG_WAIT_MS = 3_600_000;
/** An attempt that makes more calls ends the spans of the later ones at once. */
const MAX_HELD = 1_000;

export interface SpanParts {
  readonly tracer: Tracer;
  readonly waits: 'same-trace' | 'new-trace' | undefined;
  /** A value as an attribute. Undefined if values are not captured. */
  readonly capture: ((value: Json) => string | undefined) | undefined;
}

/** @returns the trace that is stored with the execution */
export function startSpan({ tracer }: SpanParts, start: TracedStart): TraceContext | undefined {
  const { ensemble, caller, isDetached } = start;
  const parent = caller ? contextOf(caller) : context.active();
  const from = trace.getSpanContext(parent);
  const links = isDetached && from ? [{ context: from }] : [];
  const options = { kind: SpanKind.PRODUCER, attributes: startAttributes(start), links, root: isDetached };
  const span = tracer.startSpan(`create ${ensemble}`, options, parent);
  span.end();
  return toTraceContext(span.spanContext()) ?? caller;
}

export function runSpan(parts: SpanParts, run: TracedRun): RunSpan {
  const { tracer, capture } = parts;
  const { ensemble, previous, input } = run;
  const attributes = { ...runAttributes(run), ...captured(INPUT, input, capture) };
  const links = previous ? [{ context: toSpanContext(previous) }] : [];
  const anchor = anchorOf(parts, run, links);
  const span = tracer.startSpan(`invoke_workflow ${ensemble}`, { attributes, links }, anchor);
  let callsModels = false;
  const onModel = () => {
    if (callsModels) return;
    callsModels = true;
    span.setAttributes(workflowAttributes(run));
  };
  const parentContext = trace.getSpanContext(anchor);
  return {
    trace: toTraceContext(span.spanContext()),
    parent: parentContext && toTraceContext(parentContext),
    logged: toLogged(span.spanContext()),
    attempt: (attempt) => attemptSpan(parts, run, attempt, anchor, onModel),
    end({ status, output, error }: EndOfRun) {
      span.setAttributes({ [STATUS]: status, ...(status !== 'left' && captured(OUTPUT, output, capture)) });
      if (error) fail(span, error.code, error.message);
      span.end();
    },
  };
}

/** The context in which the spans of a run begin: that of a span which has ended. */
function anchorOf({ tracer, waits }: SpanParts, run: TracedRun, links: readonly Link[]): Context {
  const { trigger, ensemble, waited } = run;
  const { traceparent, tracestate } = trigger;
  const stored = traceparent === undefined ? undefined : { traceparent, tracestate };
  const isNew = waited > 0 && (waits === 'new-trace' || (waits === undefined && waited > LONG_WAIT_MS));
  if (stored && !isNew) return contextOf(stored);
  const all = stored ? [{ context: toSpanContext(stored) }, ...links] : [...links];
  const options = { attributes: runAttributes(run), links: all, root: true };
  const span = tracer.startSpan(`resume ${ensemble}`, options, ROOT_CONTEXT);
  span.end();
  return trace.setSpan(ROOT_CONTEXT, span);
}

function attemptSpan(
  { tracer, capture }: SpanParts,
  run: TracedRun,
  attempt: TracedAttempt,
  anchor: Context,
  onModel: () => void,
): AttemptSpan {
  const span = tracer.startSpan(`agent ${attempt.agent}`, { attributes: attemptAttributes(run, attempt) }, anchor);
  const held = holdSpans();
  const inside = contextWithin(span, held);
  let isOver = false;
  return {
    logged: toLogged(span.spanContext()),
    within: (run) => context.with(inside, run),
    part(part, run) {
      if (part.kind === 'model') onModel();
      return partSpan(tracer, part, inside, held, run);
    },
    end(end: EndOfAttempt) {
      if (isOver) return;
      isOver = true;
      held.endAll();
      if (end?.error) fail(span, end.error.code, end.error.message);
      else if (end) span.setAttributes(captured(OUTPUT, end.output, capture));
      else span.setAttribute(STATUS, 'stopped');
      span.end();
    },
  };
}

async function partSpan<T>(
  tracer: Tracer,
  part: OperationPart,
  inside: Context,
  holder: SpanHolder,
  run: () => T | PromiseLike<T>,
): Promise<T> {
  const kind = part.kind === 'tool' ? SpanKind.INTERNAL : SpanKind.CLIENT;
  const onResult = (span: Span, result: T) => {
    const { isError, finishReason, usage } = partFacts(result as Json);
    const { model, error } = (result ?? {}) as JsonObject;
    if (part.kind === 'model') span.setAttributes(answerAttributes(model, finishReason, usage));
    else if (isError || error !== undefined) fail(span, `${part.kind}_error`);
  };
  return inSpan(tracer, partName(part), { kind, attributes: partAttributes(part) }, inside, run, onResult, holder);
}

/** Runs a function in a span, which ends with what it is in. */
export async function inSpan<T>(
  tracer: Tracer,
  name: string,
  { kind, attributes }: { readonly kind: SpanKind; readonly attributes: Attributes },
  outside: Context,
  run: (span: Span, context: Context) => T | PromiseLike<T>,
  onResult: (span: Span, result: T) => void,
  holder: SpanHolder | undefined = undefined,
): Promise<T> {
  const startTime = Date.now();
  const began = performance.now();
  const span = tracer.startSpan(name, { kind, attributes, startTime }, outside);
  const within = trace.setSpan(outside, span);
  const end = () => {
    const endTime = startTime + performance.now() - began;
    if (holder) holder.endLater(span, endTime);
    else span.end(endTime);
  };
  try {
    const value = await context.with(within, () => run(span, within));
    onResult(span, value);
    return value;
  } catch (thrown) {
    fail(span, codeOf(thrown));
    throw thrown;
  } finally {
    end();
  }
}

export async function deliverySpan<T extends { readonly result: string; readonly error?: string }>(
  { tracer }: SpanParts,
  delivery: TracedDelivery,
  send: () => Promise<T>,
): Promise<T> {
  const { traceparent, tracestate } = delivery.trigger ?? {};
  const parent = contextOf(traceparent === undefined ? undefined : { traceparent, tracestate });
  const attributes = deliveryAttributes(delivery);
  const span = tracer.startSpan(`deliver ${delivery.event}`, { kind: SpanKind.PRODUCER, attributes }, parent);
  const held = holdSpans();
  try {
    const outcome = await context.with(contextWithin(span, held), send);
    if (outcome.result !== 'succeeded') fail(span, 'delivery_failed', outcome.error);
    return outcome;
  } finally {
    held.endAll();
    span.end();
  }
}

function holdSpans(): SpanHolder & { endAll(): void } {
  let held: { readonly span: Span; readonly endTime: number }[] | undefined = [];
  return {
    endLater(span, endTime) {
      if (held && held.length < MAX_HELD) held.push({ span, endTime });
      else span.end(endTime);
    },
    endAll() {
      for (const { span, endTime } of held ?? []) span.end(endTime);
      held = undefined;
    },
  };
}

function captured(name: string, value: Json, capture: SpanParts['capture']): Attributes {
  const text = capture?.(value);
  return text === undefined ? {} : { [name]: text };
}

/** @param message - with its secrets masked */
export function fail(span: Span, type: string, message?: string): void {
  span.setAttribute(ERROR_TYPE, type);
  span.setStatus({ code: SpanStatusCode.ERROR, ...(message !== undefined && { message }) });
}

/** Messages of what is thrown may have secrets in them: only the code is exported. */
function codeOf(thrown: unknown): string {
  if (thrown instanceof OrchestratorError) return thrown.code;
  return thrown instanceof Error ? thrown.name : 'unknown';
}
