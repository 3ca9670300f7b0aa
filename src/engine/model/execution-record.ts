/** Builds an execution's record from what is stored of it: pure, and the same for every store and engine. */

import { AGENTS_IN_RECORD, type AgentRun, type Execution } from './execution.ts';
import type { ExecutionEnd, NewExecution, StepRecord } from './stored-execution.ts';

/**
 * @param steps - in the order in which they were stored; the first 1,000 become the record's agent runs
 * @param agents - how many agents ran, those past the first 1,000 included
 */
export function toExecution(
  accepted: NewExecution,
  end: ExecutionEnd | undefined,
  steps: readonly StepRecord[],
  agents: number,
): Execution {
  const runs: AgentRun[] = [];
  const count = Math.min(steps.length, AGENTS_IN_RECORD);
  for (let i = 0; i < count; i++) runs.push(toAgentRun(steps[i] as StepRecord));
  const { id, ensemble, version, trigger, input, createdAt, deadlineAt } = accepted;
  const record = {
    id,
    ensemble,
    version,
    status: end ? end.status : ('running' as const),
    trigger,
    input,
    output: end ? end.output : null,
    createdAt,
    startedAt: createdAt,
    metrics: { totalDuration: end ? end.duration : 0, agents },
    agents: runs,
  } as { -readonly [K in keyof Execution]: Execution[K] };
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
