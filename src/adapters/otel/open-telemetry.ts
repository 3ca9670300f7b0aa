/** `openTelemetry()`: traces and metrics of what an orchestrator does, for any backend. */

import { type Attributes, createNoopMeter, type Meter, metrics, trace } from '@opentelemetry/api';
import type { Json } from '../../engine/base/json/json.ts';
import { flag, oneOf, optional, readOptions } from '../../engine/base/read-options.ts';
import { boundsOf, GAUGES, gaugesOf, METRICS, type Metric } from '../../engine/events/measurement.ts';
import type { Telemetry, TelemetryHost } from '../../engine/host/telemetry.port.ts';
import { createPropagates, tracedHttp } from './http-spans.ts';
import { metricNames, SCOPE } from './names.ts';
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

type Instrument = (value: number, labels: readonly string[]) => void;

/** Without a provider of metrics it listens to nothing, so that no event is built in vain. */
function measure({ listen, open }: TelemetryHost): void {
  const meter = metrics.getMeter(SCOPE);
  if (meter === createNoopMeter()) return;
  const instruments = new Map(Object.values(METRICS).map((metric: Metric) => [metric, toInstrument(meter, metric)]));
  listen((metric, labels, value) => instruments.get(metric)?.(value, labels));
  const gauges = new Map(
    Object.values(GAUGES).map((gauge: Metric) => [
      gauge,
      // A gauge of the unit 1 would be a ratio.
      meter.createObservableGauge(gauge.name, {
        description: gauge.help,
        ...(gauge.unit !== '1' && { unit: gauge.unit }),
      }),
    ]),
  );
  meter.addBatchObservableCallback(
    async (result) => {
      for (const { metric, labels, value } of gaugesOf(await open(), Date.now())) {
        const gauge = gauges.get(metric);
        if (gauge) result.observe(gauge, value, attributesOf(metric.labels, labels));
      }
    },
    [...gauges.values()],
  );
}

function attributesOf(names: readonly string[], labels: readonly string[], fixed?: Attributes): Attributes {
  return { ...fixed, ...Object.fromEntries(names.map((name, i) => [name, labels[i] ?? ''])) };
}

function toInstrument(meter: Meter, metric: Metric): Instrument {
  const { kind, unit, help } = metric;
  const { name, labels: names, fixed } = metricNames(metric);
  const about = { description: help, unit: unit === 'token' ? '{token}' : unit };
  // Conventions count tokens by call.
  if (kind === 'counter' && unit !== 'token') {
    const counter = meter.createCounter(name, about);
    return (value, labels) => counter.add(value, attributesOf(names, labels, fixed));
  }
  const advice = { explicitBucketBoundaries: [...boundsOf(metric)] };
  const histogram = meter.createHistogram(name, { ...about, ...(kind === 'histogram' && { advice }) });
  return (value, labels) => histogram.record(value, attributesOf(names, labels, fixed));
}
