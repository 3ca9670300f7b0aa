/** The steps of an execution as a listing returns them: what is stored of each, put together. Pure. */

import type { Json } from '../base/json/json.ts';
import type { ChildEnd } from '../execution/child.ts';
import type { ExecutionError } from '../execution/execution.ts';
import type { StepRecord } from '../execution/stored-execution.ts';
import { factsOf } from './step-event.ts';
import { markKey, roleOf, type StepKind } from './step-kind.ts';

/**
 * | status | meaning |
 * |---|---|
 * | completed, failed | it has ended |
 * | running | it contains steps, and has not ended |
 * | waiting | it waits for an instant, a signal or a child execution |
 * | retrying | an attempt failed, and another one follows |
 * | skipped | its condition did not hold |
 * | cancelled | it had not ended when its execution, or the block around it, ended |
 */
export type StepStatus = 'completed' | 'failed' | 'running' | 'waiting' | 'retrying' | 'skipped' | 'cancelled';

/** One step of an execution, of any kind. */
export interface ExecutionStep {
  /** Its position in the flow, such as `flow[3]` or `flow[2].foreach[7].steps[0]`. Unique in the execution. */
  readonly key: string;
  readonly kind: StepKind;
  /** The name of its result; of a `wait` without a name, the name of its signal. Empty for another step without a name, and for a child that a retry kept. */
  readonly name: string;
  readonly status: StepStatus;
  /** Attempts made. 0 for a step that did not begin, and 1 for a step that is not an agent. */
  readonly attempts: number;
  /** Unix ms. */
  readonly startedAt: number;
  /** Milliseconds from its start to its end, waits included; up to now for a step that has not ended. */
  readonly duration: number;
  /** Of an `ensemble` step, the id of the child execution; absent if the child was refused. */
  readonly executionId?: string;
  readonly error?: ExecutionError;
  /**
   * What it returned: of an agent, a child or a `wait`, its output; of a `sleep`, the instant of its end (Unix ms). Of a block, what it
   * did: `{ chose }`, `{ route, target }`, `{ items }`, `{ rounds }` or `{ winner }`. Absent for other steps, and without a result.
   */
  readonly output?: Json;
  /** Its output is larger than the listing was asked to show. */
  readonly outputOmitted?: true;
}

/** What is known of the execution of a step. */
export interface StepContext {
  /** Whether the execution, or the block around the step, has ended. */
  readonly isOver: boolean;
  /** Unix ms of that end, or now. */
  readonly at: number;
}

/**
 * What {@link toExecutionStep} needs besides a record.
 * @returns the key of another record; null if none is needed; undefined if the record does not stand for a step in the listing
 */
export function recordOfEnd(record: StepRecord): string | null | undefined {
  const role = roleOf(record);
  if (!role) return undefined;
  const { step, kind, fact } = role;
  switch (fact) {
    case 'result':
    case 'skipped':
    case 'failed':
    case 'chose':
      return null;
    case 'begun':
      return isFailed(record) ? null : FORMS[kind]?.endKey(step);
    case 'until':
      return isFailed(record) ? null : undefined;
    case 'ended':
      // A `wait` that did not have to wait has no begin, and neither has a child whose result a retry kept.
      if (kind === 'wait') return markKey(step, 'wait', 'begun');
      return kind === 'ensemble' ? `${step}.ensemble.begun` : undefined;
    default:
      return undefined;
  }
}

/**
 * @param other - the record under the key of {@link recordOfEnd}, if it is stored
 * @returns undefined if another record stands for the step
 */
export function toExecutionStep(
  record: StepRecord,
  other: StepRecord | undefined,
  { isOver, at }: StepContext,
): ExecutionStep | undefined {
  const role = roleOf(record);
  if (!role) return undefined;
  const { step: key, kind, fact } = role;
  const { startedAt } = record;
  if (fact === 'result' && !record.note) return agentStep(record, isOver);
  const facts = factsOf(record);
  if (fact === 'result') return partStep(record, kind, facts.value);
  const attempts = fact === 'skipped' || fact === 'failed' ? 0 : 1;
  const about = { key, kind, name: nameOf(record, kind), attempts, ...childOf(record, kind, other) };
  const ended = (until: number, error: ExecutionError | undefined, output?: Json): ExecutionStep => {
    const times = { startedAt, duration: Math.max(0, until - startedAt) };
    if (error) return { ...about, status: 'failed', ...times, error };
    return { ...about, status: 'completed', ...times, ...(output !== undefined && { output }) };
  };
  if (fact === 'skipped') return { ...about, status: 'skipped', startedAt, duration: 0 };
  if (isFailed(record)) return { ...ended(startedAt, errorOf(record)), attempts: 0 };
  if (fact === 'chose') return ended(startedAt, undefined, withoutName(record));
  if (fact === 'ended') return other ? undefined : FORMS[kind]?.end(record, ended, undefined);
  const form = FORMS[kind];
  if (!form) return undefined;
  if (other) return form.end(other, ended, facts.until);
  // Older records have no mark at the end of a `sleep`.
  if (kind === 'sleep' && (facts.until ?? 0) <= (isOver ? at : startedAt))
    return ended(facts.until ?? startedAt, undefined, facts.until);
  const status = isOver ? 'cancelled' : form.open;
  return { ...about, status, startedAt, duration: Math.max(0, at - startedAt) };
}

function nameOf(record: StepRecord, kind: StepKind): string {
  const { name = '', signal } = factsOf(record);
  if (kind !== 'wait') return name;
  return record.name || name || (signal ?? '');
}

/** @param end - the record of the end of the child, if it is stored */
function childOf(begun: StepRecord, kind: StepKind, end: StepRecord | undefined): Pick<ExecutionStep, 'executionId'> {
  const { id } = factsOf(begun);
  if (kind !== 'ensemble' || id === undefined) return {};
  return end && endOfChild(end).refused ? {} : { executionId: id };
}

function endOfChild({ output }: StepRecord): ChildEnd {
  return (output as unknown as { readonly payload: ChildEnd }).payload;
}

type Ended = (until: number, error: ExecutionError | undefined, output?: Json) => ExecutionStep;

/** How a step of one kind, which has begun, is shown. */
interface Form {
  /** The status until its end. */
  readonly open: 'waiting' | 'running';
  /** The key of the record of its end. */
  endKey(step: string): string;
  /** @param until - of a `sleep`, the instant of its end (Unix ms) */
  end(record: StepRecord, ended: Ended, until: number | undefined): ExecutionStep;
}

const block = (kind: StepKind): Form => ({
  open: 'running',
  endKey: (step) => markKey(step, kind, 'ended'),
  end: (record, ended) => ended(record.startedAt, record.error, withoutName(record)),
});

/** Has an entry for every kind, so that a new one can't be forgotten. Null: no record says that it has begun. */
const FORMS: Readonly<Record<StepKind, Form | null>> = {
  ...{ agent: null, model: null, tool: null, send: null, route: null, if: null, switch: null },
  ...{ foreach: block('foreach'), while: block('while'), parallel: block('parallel'), try: block('try') },
  sleep: {
    open: 'waiting',
    endKey: (step) => markKey(step, 'sleep', 'ended'),
    end: ({ startedAt }, ended, until) => ended(startedAt, undefined, until),
  },
  wait: { open: 'waiting', endKey: (step) => `${step}.wait`, end: waitEnd },
  ensemble: { open: 'waiting', endKey: (step) => `${step}.ensemble`, end: childEnd },
};

function agentStep(record: StepRecord, isOver: boolean): ExecutionStep {
  const { key, name, attempts, startedAt, duration, output, error, retryAt } = record;
  const again = isOver ? 'cancelled' : 'retrying';
  const about = { key, kind: 'agent', name, status: retryAt === undefined ? record.status : again } as const;
  const times = { attempts, startedAt, duration };
  return error ? { ...about, ...times, error } : { ...about, ...times, output };
}

/** A call of a model or of a tool, or a sent message, by an agent. */
function partStep({ key, name, startedAt, duration }: StepRecord, kind: StepKind, output: Json = null): ExecutionStep {
  const about = { key, kind, name, attempts: 1, startedAt, duration };
  const error = kind === 'send' ? failureOfSend(output) : undefined;
  return error ? { ...about, status: 'failed', error } : { ...about, status: 'completed', output };
}

/** A send that failed is stored as a result. What an operation of the host stores may have any form. */
function failureOfSend(output: Json): ExecutionError | undefined {
  const { isError, code, message } = (output ?? {}) as Readonly<Record<string, Json | undefined>>;
  return isError === true && typeof code === 'string' ? { code, message: String(message) } : undefined;
}

function waitEnd({ name, output, startedAt }: StepRecord, ended: Ended): ExecutionStep {
  const { signal, payload, continues } = output as {
    readonly signal: string | null;
    readonly payload?: Json;
    readonly continues?: boolean;
  };
  if (signal !== null) return ended(startedAt, undefined, payload);
  const error = { code: 'TIMEOUT', message: `no signal \`${name}\` came in time` };
  return continues ? ended(startedAt, undefined, null) : ended(startedAt, error);
}

function childEnd(record: StepRecord, ended: Ended): ExecutionStep {
  const { startedAt } = record;
  const payload = endOfChild(record);
  if (payload.status === 'completed') return ended(startedAt, undefined, payload.output);
  const { code, message } = payload.error ?? { code: 'EXECUTION_FAILED', message: '' };
  return ended(startedAt, { code, message: message || `the child execution is ${payload.status}` });
}

/** Whether a mark reports a failure, or a decision could not be computed. */
function isFailed(record: StepRecord): boolean {
  return errorOf(record) !== undefined;
}

function errorOf({ error, output }: StepRecord): ExecutionError | undefined {
  if (error) return error;
  const { code, message = '' } = (output ?? {}) as { readonly code?: unknown; readonly message?: string };
  return typeof code === 'string' ? { code, message } : undefined;
}

/** What a mark says besides the name of its step; undefined if that is nothing. */
function withoutName(record: StepRecord): Json | undefined {
  const { name: _name, ...rest } = factsOf(record) as Readonly<Record<string, Json>>;
  return Object.keys(rest).length > 0 ? rest : undefined;
}
