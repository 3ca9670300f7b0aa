/** The metrics, and what the events of executions add to them. Pure. */

import { TRAFFIC } from '../component/component.ts';
import { OPEN_STATUSES, type OpenCounts } from '../execution/execution.ts';
import type { OrchestratorEvent } from './event.ts';

/** The upper bounds of the buckets of durations, in seconds: from 5 ms to a day. */
const DURATION_BOUNDS: readonly number[] = [
  ...[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 3_600, 86_400],
];

export interface Metric {
  /** With dots, as OpenTelemetry names metrics. */
  readonly name: string;
  readonly kind: 'counter' | 'histogram' | 'gauge';
  /** `s`: seconds. */
  readonly unit: 's' | 'token' | '1';
  readonly help: string;
  /** The names of its labels. None of them is an id. */
  readonly labels: readonly string[];
}

/** The upper bounds of the buckets of a histogram. */
export function boundsOf({ unit }: Metric): readonly number[] {
  return unit === 's' ? DURATION_BOUNDS : COUNT_BOUNDS;
}

const COUNT_BOUNDS: readonly number[] = [1, 2, 5, 10, 20, 50, 100, 200, 500];

function metric<K extends Metric['kind']>(kind: K, name: string, unit: Metric['unit'], labels: string, help: string) {
  return { kind, name, unit, labels: labels === '' ? [] : labels.split(' '), help } satisfies Metric;
}

export const METRICS = {
  started: metric('counter', 'ensemble.executions.started', '1', 'ensemble', 'Executions that began.'),
  ended: metric('counter', 'ensemble.executions.ended', '1', 'ensemble status', 'Executions that ended.'),
  dryRuns: metric('counter', 'ensemble.executions.dry', '1', 'ensemble status', 'Dry runs that ended.'),
  duration: metric(
    'histogram',
    'ensemble.execution.duration',
    's',
    'ensemble status',
    'From start to end, waits included.',
  ),
  step: metric(
    'histogram',
    'ensemble.step.duration',
    's',
    'ensemble agent outcome',
    'How long agents took, with their attempts.',
  ),
  retries: metric(
    'counter',
    'ensemble.step.retries',
    '1',
    'ensemble agent',
    'Attempts of agents that failed and are repeated.',
  ),
  takeovers: metric(
    'counter',
    'ensemble.takeovers',
    '1',
    'ensemble',
    'Executions that were continued after the loss of a process.',
  ),
  tokens: metric(
    'counter',
    'ensemble.model.tokens',
    'token',
    'provider model type',
    'Tokens that calls of models used.',
  ),
  model: metric('histogram', 'ensemble.model.duration', 's', 'provider model', 'How long calls of models took.'),
  tool: metric('histogram', 'ensemble.tool.duration', 's', 'tool outcome', 'How long calls of tools took.'),
  deliveries: metric(
    'counter',
    'ensemble.deliveries',
    '1',
    'ensemble outcome',
    'Deliveries of notifications that ended.',
  ),
  paused: metric('counter', 'ensemble.receivers.paused', '1', 'reason', 'Receivers of notifications that were paused.'),
  queueWait: metric(
    'histogram',
    'ensemble.queue.wait',
    's',
    'ensemble',
    'How long executions waited for a process, from their acceptance to their start.',
  ),
  commit: metric('histogram', 'ensemble.commit.duration', 's', '', 'How long commits to the store took.'),
  batch: metric('histogram', 'ensemble.commit.batch', '1', '', 'How many executions one commit to the store wrote of.'),
  storeErrors: metric('counter', 'ensemble.store.errors', '1', 'method code', 'Calls of the store that failed.'),
  scheduleLag: metric(
    'histogram',
    'ensemble.schedule.lag',
    's',
    'ensemble',
    'How much later than their instant schedules started an execution.',
  ),
  deliveryLag: metric(
    'histogram',
    'ensemble.delivery.lag',
    's',
    'ensemble',
    'From an event to its successful delivery.',
  ),
  refused: metric('counter', 'ensemble.limit.refused', '1', 'code', 'Requests that a limit refused.'),
  http: metric('histogram', 'ensemble.http.duration', 's', 'method route status', 'How long requests took.'),
  rollbacks: metric(
    'counter',
    'ensemble.component.rollbacks',
    '1',
    'component environment',
    'Rollouts that a guard rolled back.',
  ),
} as const;

/** What is known of the store when it is asked. */
export const GAUGES = {
  open: metric(
    'gauge',
    'ensemble.executions',
    '1',
    'status',
    'Executions of the store that have not ended. Every process says the same.',
  ),
  unresolved: metric(
    'gauge',
    'ensemble.executions.unresolved',
    '1',
    '',
    'Executions of the store that failed or timed out, and that no other execution retries.',
  ),
  queueAge: metric(
    'gauge',
    'ensemble.queue.age',
    's',
    '',
    'How long the oldest queued execution of the store waits for a process.',
  ),
} as const;

/** The values of the gauges. @param now - Unix ms */
export function gaugesOf(open: OpenCounts, now: number): readonly Measurement[] {
  const { oldestAt = now } = open.queued;
  return [
    ...OPEN_STATUSES.map((status) => ({ metric: GAUGES.open, labels: [status], value: open[status].count })),
    { metric: GAUGES.unresolved, labels: [], value: open.unresolved.count },
    { metric: GAUGES.queueAge, labels: [], value: Math.max(0, now - oldestAt) / 1000 },
  ];
}

/** Takes a value in the metric's unit. @param labels - in the order of the metric's labels */
export type Measure = (metric: Metric, labels: readonly string[], value: number) => void;

export interface Measurement {
  readonly metric: Metric;
  /** In the order of the metric's labels. */
  readonly labels: readonly string[];
  /** In the metric's unit. */
  readonly value: number;
}

const ENDS: Readonly<Record<string, string>> = {
  'execution.completed': 'completed',
  'execution.failed': 'failed',
  'execution.timeout': 'timed_out',
  'execution.cancelled': 'cancelled',
};

/** @returns nothing for an event that no metric counts */
export function measurementsOf({ event, data }: OrchestratorEvent): readonly Measurement[] {
  const { ensemble } = data;
  const one = (given: Metric, labels: readonly string[], value = 1): Measurement => ({ metric: given, labels, value });
  const status = ENDS[event];
  if (status !== undefined) {
    const { duration } = data as { readonly duration: number };
    return [one(METRICS.ended, [ensemble, status]), one(METRICS.duration, [ensemble, status], duration / 1000)];
  }
  switch (event) {
    case 'execution.started':
      return [one(METRICS.started, [ensemble])];
    case 'agent.completed':
    case 'agent.failed':
      return [one(METRICS.step, [ensemble, data.agent, event.slice('agent.'.length)], data.duration / 1000)];
    case 'agent.retrying':
      return [one(METRICS.retries, [ensemble, data.agent])];
    case 'run.resumed':
      return [one(METRICS.takeovers, [ensemble])];
    case 'model.completed': {
      const { provider = '', model, usage, duration } = data;
      return [
        one(METRICS.model, [provider, model], duration / 1000),
        one(METRICS.tokens, [provider, model, 'input'], usage.inputTokens),
        one(METRICS.tokens, [provider, model, 'output'], usage.outputTokens),
      ];
    }
    case 'tool.completed':
      return [one(METRICS.tool, [data.tool, data.isError ? 'failed' : 'completed'], data.duration / 1000)];
    case 'delivery.succeeded':
    case 'delivery.failed':
      return [one(METRICS.deliveries, [ensemble, event.slice('delivery.'.length)])];
    case 'endpoint.paused':
      return [one(METRICS.paused, [data.reason])];
    case 'component.rolledBack':
      return [one(METRICS.rollbacks, [data.component, data.environment])];
    case 'ensemble.rolledBack':
      return [one(METRICS.rollbacks, [ensemble, TRAFFIC])];
    default:
      return [];
  }
}
