/**
 * The names of spans, attributes and metrics. Those of HTTP are stable conventions of OpenTelemetry. Those of `gen_ai` are in
 * development there, so they may change: this file alone holds them.
 */

import type { Attributes } from '@opentelemetry/api';
import { METRICS, type Metric } from '../../engine/events/measurement.ts';
import type { TokenUsage } from '../../engine/execution/execution.ts';
import type { TracedAttempt, TracedDelivery, TracedRun, TracedStart } from '../../engine/host/telemetry.port.ts';
import type { OperationPart } from '../../engine/operation/operation.port.ts';
import { portOf } from '../http/address-rules.ts';

/** The name of the tracer and of the meter. */
export const SCOPE = 'ensemble-orchestrator';
export const ERROR_TYPE = 'error.type';
export const INPUT = 'ensemble.input';
export const OUTPUT = 'ensemble.output';
export const STATUS = 'ensemble.status';

export function startAttributes({ executionId, ensemble, trigger }: TracedStart): Attributes {
  return { 'ensemble.execution.id': executionId, 'ensemble.name': ensemble, 'ensemble.trigger': trigger.type };
}

export function runAttributes({ executionId, ensemble, worker, recoveries }: TracedRun): Attributes {
  return {
    'ensemble.execution.id': executionId,
    'ensemble.name': ensemble,
    ...(worker !== undefined && { 'ensemble.worker': worker }),
    ...(recoveries > 0 && { 'ensemble.recoveries': recoveries }),
  };
}

/** Of a run that calls models. */
export function workflowAttributes({ ensemble }: TracedRun): Attributes {
  return { 'gen_ai.operation.name': 'invoke_workflow', 'gen_ai.workflow.name': ensemble };
}

export function attemptAttributes(
  { executionId, ensemble }: TracedRun,
  { agent, operation, key, number }: TracedAttempt,
): Attributes {
  return {
    'ensemble.execution.id': executionId,
    'ensemble.name': ensemble,
    'ensemble.agent': agent,
    'ensemble.operation': operation,
    'ensemble.step': key,
    'ensemble.attempt': number,
  };
}

export function deliveryAttributes({ id, executionId, ensemble, event, attempt }: TracedDelivery): Attributes {
  return {
    'ensemble.execution.id': executionId,
    'ensemble.name': ensemble,
    'ensemble.delivery.id': id,
    'ensemble.event': event,
    'ensemble.attempt': attempt,
  };
}

export function partName({ kind, name }: OperationPart): string {
  return kind === 'model' ? `chat ${name}` : kind === 'tool' ? `execute_tool ${name}` : 'send';
}

/** The address of a recipient is not an attribute. */
export function partAttributes({ kind, name, provider }: OperationPart): Attributes {
  if (kind === 'send') return {};
  if (kind === 'tool') return { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': name };
  return {
    'gen_ai.operation.name': 'chat',
    'gen_ai.request.model': name,
    ...(provider !== undefined && { 'gen_ai.provider.name': provider }),
  };
}

export function answerAttributes(model: unknown, finishReason: string, usage: TokenUsage | undefined): Attributes {
  return {
    ...(typeof model === 'string' && { 'gen_ai.response.model': model }),
    'gen_ai.response.finish_reasons': [finishReason],
    ...(usage && {
      'gen_ai.usage.input_tokens': usage.inputTokens,
      'gen_ai.usage.output_tokens': usage.outputTokens,
    }),
    ...(usage?.cost !== undefined && { 'ensemble.model.cost': usage.cost }),
  };
}

/** The query is left out: it may hold keys. @param mask - masks secrets */
export function requestAttributes(method: string, url: URL, mask: (text: string) => string): Attributes {
  return {
    'http.request.method': method,
    'url.full': mask(`${url.protocol}//${url.host}${url.pathname}`),
    'server.address': mask(url.hostname),
    'server.port': portOf(url),
  };
}

export const HTTP_STATUS = 'http.response.status_code';

/** The metrics that OpenTelemetry names, and their labels. All others keep the names of the page on metrics. */
const OF_MODEL = ['gen_ai.provider.name', 'gen_ai.request.model'];
const CHAT: Attributes = { 'gen_ai.operation.name': 'chat' };
const CONVENTIONS: ReadonlyMap<Metric, MetricNames> = new Map([
  [METRICS.tokens, { name: 'gen_ai.client.token.usage', labels: [...OF_MODEL, 'gen_ai.token.type'], fixed: CHAT }],
  [METRICS.model, { name: 'gen_ai.client.operation.duration', labels: OF_MODEL, fixed: CHAT }],
]);

interface MetricNames {
  readonly name: string;
  readonly labels: readonly string[];
  /** What is the same for every value. */
  readonly fixed?: Attributes;
}

export function metricNames(metric: Metric): MetricNames {
  return CONVENTIONS.get(metric) ?? metric;
}
