/** Builds an execution's record from what is stored of it: pure, and the same for every store and engine. */

import { cloneJson, type Json } from '../json.ts';
import { AGENTS_IN_RECORD, type AgentRun, type Execution, type ExecutionError } from './execution.ts';
import type { ExecutionEnd, NewExecution, StepRecord } from './stored-execution.ts';

/** Where an execution stands that has not ended. */
export interface Progress {
  readonly status: 'queued' | 'running' | 'waiting';
  /** Unix ms at which it was begun first. */
  readonly startedAt?: number | undefined;
}

/**
 * @param steps - without notes, in the order in which they were stored; the first 1,000 become the record's agent runs
 * @param agents - how many agents ran, those past the first 1,000 included
 */
export function toExecution(
  accepted: NewExecution,
  { status, startedAt }: Progress,
  end: ExecutionEnd | undefined,
  steps: readonly StepRecord[],
  agents: number,
): Execution {
  const runs: AgentRun[] = [];
  const count = Math.min(steps.length, AGENTS_IN_RECORD);
  for (let i = 0; i < count; i++) runs.push(toAgentRun(steps[i] as StepRecord));
  const { id, ensemble, version, trigger, input, createdAt, deadlineAt, retryOf } = accepted;
  const record = {
    id,
    ensemble,
    version,
    status: end ? end.status : status,
    trigger,
    input,
    output: end ? end.output : null,
    createdAt,
    metrics: { totalDuration: end ? end.duration : 0, agents },
    agents: runs,
  } as { -readonly [K in keyof Execution]: Execution[K] };
  if (startedAt !== undefined) record.startedAt = startedAt;
  if (retryOf !== undefined) record.retryOf = retryOf;
  if (trigger.parentId !== undefined) record.parentId = trigger.parentId;
  if (deadlineAt !== undefined) record.deadlineAt = deadlineAt;
  if (end) {
    record.finishedAt = end.finishedAt;
    record.duration = end.duration;
    if (end.error) record.error = end.error;
  }
  return record;
}

export function toAgentRun(step: StepRecord): AgentRun {
  const { name, key, attempts, startedAt, duration, output, error } = step;
  const status = step.retryAt === undefined ? step.status : 'retrying';
  if (error) return { name, key, status, attempts, startedAt, duration, output, error };
  return { name, key, status, attempts, startedAt, duration, output };
}

/** Makes a record that was made for one caller wholly theirs to change: the storage keeps values of its own. */
export function toOwnCopy(record: Execution): Execution {
  const own = record as { input: Json; output: Json; error?: ExecutionError };
  own.input = cloneJson(record.input);
  own.output = cloneJson(record.output);
  if (own.error) own.error = { ...own.error };
  for (const run of record.agents as unknown as { output: Json; error?: ExecutionError }[]) {
    run.output = cloneJson(run.output);
    if (run.error) run.error = { ...run.error };
  }
  return record;
}
