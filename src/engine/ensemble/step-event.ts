/** The event that a stored record stands for. A listener and the stream of stored events get the same data from it. */

import type { Json, JsonObject } from '../base/json/json.ts';
import type { EventDetails, EventKind } from '../events/event.ts';
import type { ChildEnd } from '../execution/child.ts';
import type { TokenUsage } from '../execution/execution.ts';
import { toEventError } from '../execution/execution-error.ts';
import type { StepRecord } from '../execution/stored-execution.ts';
import { markKey, roleOf, type StepKind } from './step-kind.ts';

/** What a mark or a decision holds. All parts are optional here, because the key says which of them there are. */
interface Facts {
  readonly name?: string;
  readonly id?: string;
  readonly items?: number;
  readonly retryAt?: number;
  readonly at?: number;
  readonly until?: number;
  readonly signal?: string | null;
  readonly payload?: Json;
  readonly continues?: boolean;
  readonly ensemble?: string;
  readonly childId?: string;
  readonly detached?: boolean;
  readonly recoveries?: number;
  readonly agent?: string;
  readonly provider?: string;
  readonly value?: Json;
}

/** An event before it has a time and the name of its execution. */
export type StepEvent = {
  readonly [K in EventKind]: { readonly event: K; readonly details: EventDetails[K] };
}[EventKind];

/**
 * The key of the other record that {@link toStepEvent} needs. Of an agent that was retried, the mark of its end gives the event: the
 * record of the agent was stored at its first attempt, long before its result.
 */
export function otherRecord(record: StepRecord): string | undefined {
  const role = roleOf(record);
  if (!role) return undefined;
  const { step, kind, fact } = role;
  if (fact === 'result') return !record.note && record.attempts > 1 ? markKey(step, 'agent', 'ended') : undefined;
  if (kind === 'agent' && fact === 'ended') return step;
  return kind === 'ensemble' && fact === 'ended' ? markKey(step, 'ensemble', 'started') : undefined;
}

/**
 * @param other - the record under the key of {@link otherRecord}, if it is stored
 * @returns undefined for a record that is not an event
 */
export function toStepEvent(record: StepRecord, other?: StepRecord): StepEvent | undefined {
  const role = roleOf(record);
  if (!role) return undefined;
  const { step: key, kind, fact } = role;
  const facts = factsOf(record);
  const about = { key };
  switch (fact) {
    case 'result':
      if (record.note) return partEvent(kind, facts, record);
      return record.retryAt === undefined && !other ? resultEvent(record) : undefined;
    case 'retry': {
      const { name: agent = '', retryAt = 0 } = facts;
      const error = toEventError(record.error ?? { code: 'AGENT_FAILED', message: '' });
      const failed = { error, attempt: record.attempts, retryAt };
      return { event: 'agent.retrying', details: { agent, key, ...failed } };
    }
    case 'skipped':
      if (facts.name === undefined) return undefined;
      return { event: 'agent.skipped', details: { agent: facts.name, key } };
    case 'begun':
      return beginEvent(kind, facts, record, about);
    case 'started': {
      const { ensemble = '', childId = '' } = facts;
      return { event: 'child.started', details: { ...about, childEnsemble: ensemble, childId } };
    }
    case 'ended':
      if (kind === 'agent') return other && resultEvent(other);
      return endEvent(kind, facts, record, about, other);
    case 'resumed':
      return { event: 'run.resumed', details: { recoveries: facts.recoveries ?? 1 } };
    default:
      return undefined;
  }
}

interface About {
  readonly key: string;
}

function beginEvent(kind: StepKind, facts: Facts, { startedAt }: StepRecord, about: About): StepEvent | undefined {
  const { items = 0, at = startedAt, until } = facts;
  if (kind === 'foreach') return { event: 'foreach.started', details: { ...about, items } };
  if (kind === 'sleep') {
    // A sleep that had nothing to wait for.
    return until !== undefined && until > at ? { event: 'step.waiting', details: { ...about, until } } : undefined;
  }
  if (kind !== 'wait') return undefined;
  const signal = facts.signal ?? '';
  return { event: 'step.waiting', details: { ...about, signal, ...(until !== undefined && { until }) } };
}

function endEvent(
  kind: StepKind,
  { signal = null, payload = null, continues = false }: Facts,
  { name }: StepRecord,
  about: About,
  other: StepRecord | undefined,
): StepEvent | undefined {
  if (kind === 'sleep') return { event: 'step.continued', details: { ...about, timedOut: false, failed: false } };
  if (kind === 'wait') {
    if (signal === null) {
      return { event: 'step.continued', details: { ...about, signal: name, timedOut: true, failed: !continues } };
    }
    return { event: 'signal.taken', details: { ...about, signal: name, id: signal, payload } };
  }
  if (kind !== 'ensemble' || !other) return undefined;
  const { ensemble = '', childId = '', detached } = factsOf(other);
  // A child that the parent does not wait for has not ended.
  if (detached) return undefined;
  const { status } = payload as unknown as ChildEnd;
  return { event: 'child.ended', details: { ...about, childEnsemble: ensemble, childId, status } };
}

function resultEvent(record: StepRecord): StepEvent {
  const { key, name: agent, output, duration, attempts, error } = record;
  if (!error) return { event: 'agent.completed', details: { agent, key, output, duration } };
  return { event: 'agent.failed', details: { agent, key, error: toEventError(error), attempts, duration } };
}

/** A part of an attempt. What an operation of the host stores may have any form. */
function partEvent(kind: StepKind, facts: Facts, record: StepRecord): StepEvent {
  const { key, name, duration } = record;
  const about = { agent: facts.agent ?? '', key, duration };
  const { isError, finishReason, usage = NO_USAGE } = partFacts(facts.value);
  if (kind === 'tool') return { event: 'tool.completed', details: { ...about, tool: name, isError } };
  if (kind === 'send') return { event: 'send.completed', details: { ...about, to: name, isError } };
  const { provider } = facts;
  const model = { model: name, ...(provider !== undefined && { provider }), usage, finishReason };
  return { event: 'model.completed', details: { ...about, ...model } };
}

/** What the result of a part says about it, whatever its form is. */
export function partFacts(value: Json | undefined): {
  readonly isError: boolean;
  readonly finishReason: string;
  readonly usage: TokenUsage | undefined;
} {
  const { isError, finishReason, usage } = mapOf(value);
  const { inputTokens, outputTokens, cost } = mapOf(usage);
  const isUsage = typeof inputTokens === 'number' && typeof outputTokens === 'number';
  return {
    isError: isError === true,
    finishReason: typeof finishReason === 'string' ? finishReason : 'other',
    usage: isUsage ? { inputTokens, outputTokens, ...(typeof cost === 'number' && { cost }) } : undefined,
  };
}

/** What a stored call of a model used; undefined for any other record, and if the operation did not say it. */
export function usageOf(record: StepRecord): TokenUsage | undefined {
  if (!record.note || !record.key.includes('.model[')) return undefined;
  return partFacts(factsOf(record).value).usage;
}

const NO_USAGE: TokenUsage = Object.freeze({ inputTokens: 0, outputTokens: 0 });

/** The output of a note as facts. */
export function factsOf({ output }: StepRecord): Facts {
  return mapOf(output);
}

/** An empty map for a value that is not a map. */
function mapOf(value: Json | undefined): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}
