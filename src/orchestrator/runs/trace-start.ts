/** Puts the trace of a start into its trigger: the trigger is stored with the execution, and every run of it reads the trace there. */

import type { ExecutionTrigger } from '../../engine/model/execution.ts';
import type { TraceContext } from '../../engine/model/trace-context.ts';
import type { TracedStart, Tracing } from '../../engine/ports/telemetry.ts';

/** @returns the trigger with its trace; without telemetry, with that of the caller */
export type TraceStart = (start: TracedStart) => ExecutionTrigger;

export function createTraceStart(tracing: Tracing | undefined): TraceStart {
  return (start) => {
    const { trigger, caller } = start;
    const trace = tracing ? tracing.start(start) : caller;
    return trace === undefined ? trigger : { ...trigger, ...trace };
  };
}

/** The trace that a trigger has. */
export function traceOf({ traceparent, tracestate }: ExecutionTrigger): TraceContext | undefined {
  return traceparent === undefined ? undefined : { traceparent, ...(tracestate !== undefined && { tracestate }) };
}
