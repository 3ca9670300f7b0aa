/** Builds a new execution, for all kinds of starts: a call, a schedule, a parent execution, a retry. */

import type { Json } from '../../../engine/base/json/json.ts';
import type { CompiledEnsemble, Gather } from '../../../engine/compiled/compiled-ensemble.ts';
import { PRIORITY_MS } from '../../../engine/execution/limits/flow-limit.ts';
import type { NewExecution } from '../../../engine/execution/stored-execution.ts';

type Beginning = Pick<NewExecution, 'id' | 'trigger' | 'input' | 'seed' | 'createdAt'> & {
  readonly [K in 'idempotencyKey' | 'tags']?: NewExecution[K] | undefined;
} & {
  /** The input is that of an execution, not of a start: with `batch`, it is a list. */
  readonly isRecorded?: boolean | undefined;
};

/** Limits in addition to the ensemble's own `timeout`. The earliest counts. */
export interface EarlierEnd {
  /** ms from the start. */
  readonly timeoutMs?: number | undefined;
  /** Unix ms. */
  readonly deadlineAt?: number | undefined;
}

/** The input of the first start of an execution, which rules about starts read: with `batch`, the input of the execution is a list. */
export function inputOfFirst({ kind }: Gather, input: Json): Json {
  return kind === 'batch' ? ((input as readonly Json[])[0] ?? null) : input;
}

/** @throws INVALID_INPUT for an input that gives a limit no key */
export function newExecution(compiled: CompiledEnsemble, beginning: Beginning, earlier?: EarlierEnd): NewExecution {
  const { id, trigger, input: given, seed, createdAt, idempotencyKey, tags } = beginning;
  const { gather } = compiled;
  const input = gather?.kind === 'batch' && !beginning.isRecorded ? [given] : given;
  const one = gather ? inputOfFirst(gather, input) : input;
  const execution: { -readonly [K in keyof NewExecution]: NewExecution[K] } = {
    id,
    ensemble: compiled.name,
    version: compiled.stored.version,
    trigger,
    input,
    seed,
    createdAt,
  };
  const timeoutMs = Math.min(compiled.timeoutMs ?? Infinity, earlier?.timeoutMs ?? Infinity);
  const deadlineAt = Math.min(createdAt + timeoutMs, earlier?.deadlineAt ?? Infinity);
  if (deadlineAt !== Infinity) execution.deadlineAt = deadlineAt;
  if (idempotencyKey !== undefined) execution.idempotencyKey = idempotencyKey;
  if (tags !== undefined) execution.tags = tags;
  if (compiled.limits) execution.limits = compiled.limits(one, createdAt);
  if (compiled.priority) execution.dueSince = createdAt - compiled.priority(one, createdAt) * PRIORITY_MS;
  if (compiled.startWithinMs !== undefined) execution.startBy = createdAt + compiled.startWithinMs;
  return execution;
}
