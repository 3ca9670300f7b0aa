/** The metrics of the page on metrics, as instruments of OpenTelemetry. */

import { createNoopMeter, type Attributes, type Meter, metrics } from '@opentelemetry/api';
import { OPEN_STATUSES } from '../../engine/model/execution.ts';
import { boundsOf, type Metric, METRICS } from '../../engine/model/measurement.ts';
import type { TelemetryHost } from '../../engine/ports/telemetry.ts';
import { metricNames, SCOPE } from './names.ts';

type Instrument = (value: number, labels: readonly string[]) => void;

/** Without a provider of metrics it listens to nothing, so that no event is built in vain. */
export function measure({ listen, open }: TelemetryHost): void {
  const meter = metrics.getMeter(SCOPE);
  if (meter === createNoopMeter()) return;
  const instruments = new Map(Object.values(METRICS).map((metric: Metric) => [metric, toInstrument(meter, metric)]));
  listen((metric, labels, value) => instruments.get(metric)?.(value, labels));
  const executions = meter.createObservableGauge('ensemble.executions', {
    description: 'Executions of the store that have not ended. Every process says the same.',
  });
  const age = meter.createObservableGauge('ensemble.queue.age', {
    description: 'How long the oldest queued execution of the store waits for a process.',
    unit: 's',
  });
  meter.addBatchObservableCallback(
    async (result) => {
      const counts = await open();
      for (const status of OPEN_STATUSES) result.observe(executions, counts[status].count, { status });
      const now = Date.now();
      result.observe(age, Math.max(0, now - (counts.queued.oldestAt ?? now)) / 1000);
    },
    [executions, age],
  );
}

function toInstrument(meter: Meter, metric: Metric): Instrument {
  const { kind, unit, help } = metric;
  const { name, labels: names } = metricNames(metric);
  const about = { description: help, unit: unit === 'token' ? '{token}' : unit };
  const attributes = (labels: readonly string[]): Attributes =>
    Object.fromEntries(names.map((label, i) => [label, labels[i] ?? '']));
  // Conventions count tokens by call.
  if (kind === 'counter' && unit !== 'token') {
    const counter = meter.createCounter(name, about);
    return (value, labels) => counter.add(value, attributes(labels));
  }
  const advice = { explicitBucketBoundaries: [...boundsOf(metric)] };
  const histogram = meter.createHistogram(name, { ...about, ...(kind === 'histogram' && { advice }) });
  return (value, labels) => histogram.record(value, attributes(labels));
}
