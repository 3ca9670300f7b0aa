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
  isSpanContextValid,
  type Link,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { OrchestratorError } from '../../engine/base/errors.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import { partFacts } from '../../engine/ensemble/step-event.ts';
import { type TraceContext, traceOf } from '../../engine/events/trace-context.ts';
import type {
  AttemptSpan,
  EndOfAttempt,
  EndOfRun,
  LoggedTrace,
  RunSpan,
  TracedDelivery,
  TracedRun,
  TracedStart,
} from '../../engine/host/telemetry.port.ts';
import type { OperationPart } from '../../engine/operation/operation.port.ts';
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

/** @returns undefined without a provider of traces */
export function runSpan(parts: SpanParts, run: TracedRun): RunSpan | undefined {
  const { tracer, capture } = parts;
  const { ensemble, previous, input } = run;
  const attributes = { ...runAttributes(run), ...capturedValue(INPUT, input, capture) };
  const links = previous ? [{ context: toSpanContext(previous) }] : [];
  const anchor = anchorOf(parts, run, links);
  const span = tracer.startSpan(`invoke_workflow ${ensemble}`, { attributes, links }, anchor);
  const ids = span.spanContext();
  if (!isSpanContextValid(ids)) return undefined;
  let callsModels = false;
  const onModel = () => {
    if (callsModels) return;
    callsModels = true;
    span.setAttributes(workflowAttributes(run));
  };
  return {
    get trace() {
      return toTraceContext(ids);
    },
    get parent() {
      const parent = trace.getSpanContext(anchor);
      return parent && toTraceContext(parent);
    },
    logged: toLogged(ids),
    attempt(attempt) {
      const options = { attributes: attemptAttributes(run, attempt) };
      return new OpenAttempt(parts, tracer.startSpan(`agent ${attempt.agent}`, options, anchor), onModel);
    },
    end({ status, output, error }: EndOfRun) {
      span.setAttributes({ [STATUS]: status, ...(status !== 'left' && capturedValue(OUTPUT, output, capture)) });
      if (error) fail(span, error.code, error.message);
      span.end();
    },
  };
}

/** The context in which the spans of a run begin: that of a span which has ended. */
function anchorOf({ tracer, waits }: SpanParts, run: TracedRun, links: readonly Link[]): Context {
  const { trigger, ensemble, waited } = run;
  const stored = traceOf(trigger);
  const isNew = waited > 0 && (waits === 'new-trace' || (waits === undefined && waited > LONG_WAIT_MS));
  if (stored && !isNew) return contextOf(stored);
  const all = stored ? [{ context: toSpanContext(stored) }, ...links] : [...links];
  const options = { attributes: runAttributes(run), links: all, root: true };
  const span = tracer.startSpan(`resume ${ensemble}`, options, ROOT_CONTEXT);
  span.end();
  return trace.setSpan(ROOT_CONTEXT, span);
}

/** One for each attempt, so it makes nothing before it is needed. */
class OpenAttempt implements AttemptSpan {
  readonly #parts: SpanParts;
  readonly #span: Span;
  readonly #held = new HeldSpans();
  readonly #onModel: () => void;
  #isOver = false;

  constructor(parts: SpanParts, span: Span, onModel: () => void) {
    this.#parts = parts;
    this.#span = span;
    this.#onModel = onModel;
  }

  get logged(): LoggedTrace {
    return toLogged(this.#span.spanContext());
  }

  get #inside(): Context {
    return contextWithin(this.#span, this.#held);
  }

  within<T>(run: () => T): T {
    return context.with(this.#inside, run);
  }

  part<T>(part: OperationPart, run: () => T | PromiseLike<T>): Promise<T> {
    if (part.kind === 'model') this.#onModel();
    return partSpan(this.#parts.tracer, part, { inside: this.#inside, holder: this.#held }, run);
  }

  end(end: EndOfAttempt): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#held.endAll();
    const span = this.#span;
    const { capture } = this.#parts;
    if (!end) span.setAttribute(STATUS, 'stopped');
    else if (end.error) fail(span, end.error.code, end.error.message);
    else if (capture) span.setAttributes(capturedValue(OUTPUT, end.output, capture));
    span.end();
  }
}

/** @param inside - the context of the attempt @param holder - ends the span together with the attempt */
function partSpan<T>(
  tracer: Tracer,
  part: OperationPart,
  { inside, holder }: { readonly inside: Context; readonly holder: SpanHolder },
  run: () => T | PromiseLike<T>,
): Promise<T> {
  const kind = part.kind === 'tool' ? SpanKind.INTERNAL : SpanKind.CLIENT;
  const begin = { name: partName(part), kind, attributes: partAttributes(part), outside: inside, holder };
  return inSpan(tracer, begin, run, (span, result) => {
    const { isError, finishReason, usage } = partFacts(result as Json);
    const { model, error } = (result ?? {}) as JsonObject;
    if (part.kind === 'model') span.setAttributes(answerAttributes(model, finishReason, usage));
    else if (isError || error !== undefined) fail(span, `${part.kind}_error`);
  });
}

export interface SpanBeginning {
  readonly name: string;
  readonly kind: SpanKind;
  readonly attributes: Attributes;
  /** The context with the parent. */
  readonly outside: Context;
  /** Ends the span later. Without it, the span ends when the function has. */
  readonly holder: SpanHolder | undefined;
}

/** Runs a function in a span. */
export async function inSpan<T>(
  tracer: Tracer,
  { name, kind, attributes, outside, holder }: SpanBeginning,
  run: (span: Span, context: Context) => T | PromiseLike<T>,
  onResult: (span: Span, result: T) => void,
): Promise<T> {
  const startTime = Date.now();
  const began = performance.now();
  const span = tracer.startSpan(name, { kind, attributes, startTime }, outside);
  const within = trace.setSpan(outside, span);
  try {
    const value = await context.with(within, () => run(span, within));
    onResult(span, value);
    return value;
  } catch (thrown) {
    fail(span, codeOf(thrown));
    throw thrown;
  } finally {
    const endTime = startTime + performance.now() - began;
    if (holder) holder.endLater(span, endTime);
    else span.end(endTime);
  }
}

export async function deliverySpan<T extends { readonly result: string; readonly error?: string }>(
  { tracer }: SpanParts,
  delivery: TracedDelivery,
  send: () => Promise<T>,
): Promise<T> {
  const parent = contextOf(delivery.trigger && traceOf(delivery.trigger));
  const attributes = deliveryAttributes(delivery);
  const span = tracer.startSpan(`deliver ${delivery.event}`, { kind: SpanKind.PRODUCER, attributes }, parent);
  const held = new HeldSpans();
  try {
    const outcome = await context.with(contextWithin(span, held), send);
    if (outcome.result !== 'succeeded') fail(span, 'delivery_failed', outcome.error);
    return outcome;
  } finally {
    held.endAll();
    span.end();
  }
}

class HeldSpans implements SpanHolder {
  #held: { readonly span: Span; readonly endTime: number }[] | undefined;
  #isOver = false;

  endLater(span: Span, endTime: number): void {
    this.#held ??= [];
    if (this.#isOver || this.#held.length >= MAX_HELD) span.end(endTime);
    else this.#held.push({ span, endTime });
  }

  endAll(): void {
    this.#isOver = true;
    if (this.#held) for (const { span, endTime } of this.#held.splice(0)) span.end(endTime);
  }
}

function capturedValue(name: string, value: Json, capture: SpanParts['capture']): Attributes {
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
