/** The option `telemetry`: outbound requests pass through it, and the trigger of each execution keeps the trace of its start. */

import type { Emitter } from '../engine/events/rules/emitter.ts';
import type { ExecutionTrigger, OpenCounts } from '../engine/execution/execution.ts';
import type { Masking } from '../engine/host/masking.port.ts';
import type { TracedStart, Tracing } from '../engine/host/telemetry.port.ts';
import type { ConnectedOptions } from './options/options.ts';

export interface ConnectedTelemetry {
  readonly tracing: Tracing | undefined;
  /** With the client for all outbound requests. */
  readonly options: ConnectedOptions;
}

/** @param open - see `executions.open()` */
export function connectTelemetry(
  options: ConnectedOptions,
  { text: mask, json }: Masking,
  events: Emitter,
  open: () => Promise<OpenCounts>,
): ConnectedTelemetry {
  const { telemetry, http } = options;
  if (!telemetry) return { tracing: undefined, options };
  const tracing = telemetry.attach({ mask, json, listen: events.onMeasured, open });
  return { tracing, options: { ...options, http: tracing.http(http) } };
}

/**
 * Puts the trace of a start into its trigger: the trigger is stored with the execution, and every run of it reads the trace there.
 *
 * @returns the trigger with its trace; without telemetry, with that of the caller
 */
export function traceStart(tracing: Tracing | undefined, start: TracedStart): ExecutionTrigger {
  const { trigger, caller } = start;
  const trace = tracing ? tracing.start(start) : caller;
  return trace === undefined ? trigger : { ...trigger, ...trace };
}
