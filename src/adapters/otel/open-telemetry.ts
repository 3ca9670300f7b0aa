/** `openTelemetry()`: traces and metrics of what an orchestrator does, for any backend. */

import { trace } from '@opentelemetry/api';
import type { Json } from '../../engine/base/json/json.ts';
import { flag, oneOf, optional, readOptions } from '../../engine/base/read-options.ts';
import type { Telemetry } from '../../engine/host/telemetry.port.ts';
import { createPropagates, tracedHttp } from './http-spans.ts';
import { measure } from './meters.ts';
import { SCOPE } from './names.ts';
import { hasProvider } from './span-contexts.ts';
import { deliverySpan, runSpan, type SpanParts, startSpan } from './spans.ts';

export interface OpenTelemetryOptions {
  /**
   * To which trace a run belongs that continues an execution after a wait: always to that of its start, or to a new one, which is
   * linked to it. Default: to a new one if the wait was longer than an hour, because a sampler that looks at
   * whole traces has decided before that.
   */
  readonly waits?: 'same-trace' | 'new-trace' | undefined;
  /** Whether spans have the inputs and outputs of executions and agents, with secrets masked, up to 4 KiB of each. Default false. */
  readonly capture?: boolean | undefined;
  /**
   * To which hosts requests pass the trace on: true for all, false for none, or a list as in the `allow` of `fetchHttp`, such as
   * `['*.example.com']`. Default: hosts with a private address or name. A list adds to them.
   */
  readonly propagate?: boolean | readonly string[] | undefined;
}

const MAX_TEXT = 4_096;

/**
 * Traces and metrics by the API of OpenTelemetry, for the option `telemetry`. Register the SDK before the orchestrator is created.
 * Without an SDK it does nothing.
 *
 * @throws TypeError for a wrong option
 *
 * @example
 * ```ts
 * import { createOrchestrator } from 'ensemble-orchestrator';
 * import { openTelemetry } from 'ensemble-orchestrator/otel';
 *
 * const orchestrator = createOrchestrator({ telemetry: openTelemetry() });
 * ```
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Telemetry {
  const { waits, capture, propagate } = readOptions('openTelemetry', options, {
    waits: oneOf('same-trace', 'new-trace'),
    capture: flag,
    propagate: optional(
      "true, false, or a list of hosts such as ['*.example.com']",
      (given) => typeof given === 'boolean' || Array.isArray(given),
    ),
  });
  const propagates = createPropagates(propagate);
  return {
    attach(host) {
      const tracer = trace.getTracer(SCOPE);
      const toText = (value: Json) => host.json(value)?.slice(0, MAX_TEXT);
      const parts: SpanParts = { tracer, waits, capture: capture ? toText : undefined };
      measure(host);
      return {
        start: (start) => (hasProvider() ? startSpan(parts, start) : start.caller),
        run: (run) => (hasProvider() ? runSpan(parts, run) : undefined),
        http: (client) => tracedHttp(client, tracer, propagates, host.mask),
        deliver: (delivery, send) => deliverySpan(parts, delivery, send),
      };
    },
  };
}
