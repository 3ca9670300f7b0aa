/** The metrics of the page on metrics, as instruments of OpenTelemetry. */

import { type Attributes, createNoopMeter, type Meter, metrics } from '@opentelemetry/api';
import { boundsOf, GAUGES, gaugesOf, METRICS, type Metric } from '../../engine/events/measurement.ts';
import type { TelemetryHost } from '../../engine/host/telemetry.port.ts';
import { metricNames, SCOPE } from './names.ts';

type Instrument = (value: number, labels: readonly string[]) => void;

/** Without a provider of metrics it listens to nothing, so that no event is built in vain. */
export function measure({ listen, open }: TelemetryHost): void {
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
