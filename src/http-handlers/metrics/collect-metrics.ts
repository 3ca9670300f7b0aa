/** Counts what the executions of this process do, and writes it as Prometheus reads it (text format 0.0.4). */

import {
  boundsOf,
  GAUGES,
  gaugesOf,
  METRICS,
  type Measure,
  type Metric,
  measurementsOf,
} from '../../engine/events/measurement.ts';
import type { OpenCounts } from '../../engine/execution/execution.ts';
import type { Measured } from '../../engine/host/masking.port.ts';
import type { Orchestrator } from '../../orchestrator/create-orchestrator.ts';

/** How many combinations of labels are counted apart. Later ones are counted together, as `other`. */
const MAX_SERIES = 2_000;
const OTHER = 'other';

interface Series {
  readonly labels: readonly string[];
  sum: number;
  count: number;
  /** Of a histogram: how many values are in each bucket, and above all bounds. */
  readonly buckets: number[];
}

export interface Metrics {
  /** Everything that was counted since `collectMetrics`, and how many executions of the store have not ended. */
  text(): Promise<string>;
}

/** @param measured - of the orchestrator; undefined for one that does not come from `createOrchestrator`: then its events are counted */
export function collectMetrics(
  { on, executions }: Orchestrator,
  measured: Measured | undefined,
  now: () => number = Date.now,
): Metrics {
  const all = new Map<Metric, Map<string, Series>>(Object.values(METRICS).map((metric) => [metric, new Map()]));
  let size = 0;
  const seriesOf = (metric: Metric, labels: readonly string[]): Series => {
    const own = all.get(metric) as Map<string, Series>;
    const key = labels.join('\n');
    const known = own.get(key);
    if (known) return known;
    const isFull = size >= MAX_SERIES && labels.some((label) => label !== OTHER);
    if (isFull)
      return seriesOf(
        metric,
        labels.map(() => OTHER),
      );
    const made: Series = { labels, sum: 0, count: 0, buckets: metric.kind === 'histogram' ? emptyBuckets(metric) : [] };
    own.set(key, made);
    size += 1;
    return made;
  };
  const count: Measure = (metric, labels, value) => {
    const series = seriesOf(metric, labels);
    series.sum += value;
    series.count += 1;
    if (metric.kind === 'histogram') addToBucket(metric, series.buckets, value);
  };
  if (measured) measured.onMeasured(count);
  else {
    on('*', (event) => {
      for (const { metric, labels, value } of measurementsOf(event)) count(metric, labels, value);
    });
  }
  return {
    async text() {
      const counted = [...all].flatMap(([metric, own]) => linesOf(metric, [...own.values()]));
      return [...counted, ...gauges(await executions.open(), now())].join('');
    },
  };
}

/** What the store has: every process that uses it says the same. */
function gauges(open: OpenCounts, now: number): readonly string[] {
  const measured = gaugesOf(open, now);
  return Object.values(GAUGES).flatMap((gauge) => {
    const own = measured.filter(({ metric }) => metric === gauge);
    return linesOf(
      gauge,
      own.map(({ labels, value }) => ({ labels, sum: value, count: 0, buckets: [] })),
    );
  });
}

function emptyBuckets(metric: Metric): number[] {
  return Array.from({ length: boundsOf(metric).length + 1 }, () => 0);
}

function addToBucket(metric: Metric, buckets: number[], value: number): void {
  const bounds = boundsOf(metric);
  const found = bounds.findIndex((bound) => value <= bound);
  const i = found < 0 ? bounds.length : found;
  buckets[i] = (buckets[i] ?? 0) + 1;
}

/** The lines of one metric; none if nothing of it was counted. */
function linesOf(metric: Metric, series: readonly Series[]): readonly string[] {
  if (series.length === 0) return [];
  const name = nameOf(metric);
  const head = [`# HELP ${name} ${metric.help}\n`, `# TYPE ${name} ${metric.kind}\n`];
  return [
    ...head,
    ...series.flatMap((one) => (metric.kind === 'histogram' ? histogram(name, metric, one) : plain(name, metric, one))),
  ];
}

function plain(name: string, metric: Metric, { labels, sum }: Series): readonly string[] {
  return [`${name}${labelText(metric, labels)} ${sum}\n`];
}

function histogram(name: string, metric: Metric, { labels, sum, count, buckets }: Series): readonly string[] {
  let below = 0;
  const lines = boundsOf(metric).map((bound, i) => {
    below += buckets[i] ?? 0;
    return `${name}_bucket${labelText(metric, labels, `le="${bound}"`)} ${below}\n`;
  });
  const [own, end] = [labelText(metric, labels), labelText(metric, labels, 'le="+Inf"')];
  return [...lines, `${name}_bucket${end} ${count}\n`, `${name}_sum${own} ${sum}\n`, `${name}_count${own} ${count}\n`];
}

/** As Prometheus names it: `ensemble_executions_started_total`, `ensemble_execution_duration_seconds`. */
function nameOf({ name, kind, unit }: Metric): string {
  const base = name.replaceAll('.', '_');
  return `${base}${unit === 's' ? '_seconds' : ''}${kind === 'counter' ? '_total' : ''}`;
}

function labelText({ labels: names }: Metric, values: readonly string[], more?: string): string {
  const own = names.map((name, i) => `${name}="${escapeLabel(values[i] ?? '')}"`);
  const all = more === undefined ? own : [...own, more];
  return all.length === 0 ? '' : `{${all.join(',')}}`;
}

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
