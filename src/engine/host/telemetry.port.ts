/**
 * The telemetry port: who measures and traces what an orchestrator does. An orchestrator without it calls nothing.
 *
 * No method may throw, and none waits: telemetry never delays or fails an execution.
 */

import type { Json } from '../base/json/json.ts';
import type { Measure } from '../events/measurement.ts';
import type { TraceContext } from '../events/trace-context.ts';
import type { ExecutionError, ExecutionTrigger, OpenCounts } from '../execution/execution.ts';
import type { OperationPart } from '../operation/operation.port.ts';
import type { HttpClient } from './http.port.ts';

/** What `createOrchestrator` gives to its telemetry. */
export interface TelemetryHost {
  /** Removes secrets from a text. */
  mask(text: string): string;
  /** A value as JSON text without its secrets. */
  json(value: unknown): string | undefined;
  /** Calls the listener for each value that is measured in this process. From then on, events are built. */
  listen(listener: Measure): void;
  /** How many executions of the storage have not ended. */
  open(): Promise<OpenCounts>;
}

/** The option `telemetry`, such as `openTelemetry()` of `ensemble-orchestrator/otel`. */
export interface Telemetry {
  attach(host: TelemetryHost): Tracing;
}

/** The fields that lines of the log get, so that they are found from a trace. */
export interface LoggedTrace {
  readonly trace_id: string;
  readonly span_id: string;
}

/** An execution that is accepted. */
export interface TracedStart {
  readonly executionId: string;
  readonly ensemble: string;
  readonly trigger: ExecutionTrigger;
  /** Of the caller. Absent: the span that is active, if there is one. */
  readonly caller?: TraceContext | undefined;
  /** Nobody waits for its end: it gets a trace of its own, which is linked to the caller. */
  readonly isDetached: boolean;
}

/** A run: one pass over an execution, in this process. */
export interface TracedRun {
  readonly executionId: string;
  readonly ensemble: string;
  /** Its `traceparent` is what {@link Tracing.start} returned when the execution was accepted. */
  readonly trigger: ExecutionTrigger;
  readonly worker?: string | undefined;
  readonly input: Json;
  /** The last run that left the execution. */
  readonly previous?: TraceContext | undefined;
  /** ms that the execution waited between that run and this one. 0 if it did not wait. */
  readonly waited: number;
  /** How often the execution was continued after the death of a process. */
  readonly recoveries: number;
}

export interface Tracing {
  /** An execution is accepted. @returns what is stored with it, and passed on to its runs */
  start(start: TracedStart): TraceContext | undefined;
  /** A run begins. @returns undefined if nothing records it */
  run(run: TracedRun): RunSpan | undefined;
  /** A client whose requests are traced, and pass the trace on. */
  http(client: HttpClient): HttpClient;
  /** Sends a delivery of an execution. @param send - its result says whether the attempt succeeded */
  deliver<T extends { readonly result: string; readonly error?: string }>(
    delivery: TracedDelivery,
    send: () => Promise<T>,
  ): Promise<T>;
}

export interface TracedDelivery {
  readonly id: string;
  readonly executionId: string;
  readonly ensemble: string;
  readonly event: string;
  /** 1 for the first. */
  readonly attempt: number;
  readonly trigger: ExecutionTrigger | undefined;
}

/** How a run ended here. */
export interface EndOfRun {
  /** `left`: the execution continues later, or in another process. */
  readonly status: 'completed' | 'failed' | 'timed_out' | 'cancelled' | 'left';
  readonly output: Json;
  readonly error?: ExecutionError | undefined;
}

export interface RunSpan {
  /** What the next run is linked to. */
  readonly trace: TraceContext | undefined;
  /** Under which the attempts and the children of the run are. Its span has ended. */
  readonly parent: TraceContext | undefined;
  readonly logged: LoggedTrace;
  attempt(attempt: TracedAttempt): AttemptSpan;
  /** Only the first call counts. */
  end(end: EndOfRun): void;
}

export interface TracedAttempt {
  readonly agent: string;
  readonly operation: string;
  readonly key: string;
  /** 1 for the first. */
  readonly number: number;
}

/** How an attempt ended: undefined if it was stopped, and nothing of it is stored. */
export type EndOfAttempt = { readonly output: Json; readonly error?: ExecutionError | undefined } | undefined;

export interface AttemptSpan {
  readonly logged: LoggedTrace;
  /** Runs a function in which the attempt is the active span. */
  within<T>(run: () => T): T;
  /** Runs a part of the attempt as a span of its own. */
  part<T>(part: OperationPart, run: () => T | PromiseLike<T>): Promise<T>;
  /** Only the first call counts. */
  end(end: EndOfAttempt): void;
}
