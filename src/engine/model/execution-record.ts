/** Builds an execution's record from what is stored of it: pure, and the same for every store and engine. */

import { AGENTS_IN_RECORD, type AgentRun, type Execution } from './execution.ts';
import type { ExecutionEnd, NewExecution, StepRecord } from './stored-execution.ts';

/**
 * @param steps - in the order in which they were stored; the first 1,000 become the record's agent runs
 * @param agents - how many agents ran, those past the first 1,000 included
 */
export function toExecution(accepted: NewExecution, end: ExecutionEnd | undefined, steps: readonly StepRecord[], agents: number): Execution {
  const runs: AgentRun[] = [];
  const count = Math.min(steps.length, AGENTS_IN_RECORD);
  for (let i = 0; i < count; i++) runs.push(toAgentRun(steps[i] as StepRecord));
  const { id, ensemble, version, trigger, input, createdAt } = accepted;
  const metrics = { totalDuration: end?.duration ?? 0, agents };
  if (!end) {
    return { id, ensemble, version, status: 'running', trigger, input, output: null, createdAt, startedAt: createdAt, metrics, agents: runs };
  }
  const { status, output, error, finishedAt, duration } = end;
  const times = { createdAt, startedAt: createdAt, finishedAt, duration };
  if (error) return { id, ensemble, version, status, trigger, input, output, error, ...times, metrics, agents: runs };
  return { id, ensemble, version, status, trigger, input, output, createdAt, startedAt: createdAt, finishedAt, duration, metrics, agents: runs };
}

export function toAgentRun(step: StepRecord): AgentRun {
  const { name, key, attempts, startedAt, duration, output, error } = step;
  const status = step.retryAt === undefined ? step.status : 'retrying';
  if (error) return { name, key, status, attempts, startedAt, duration, output, error };
  return { name, key, status, attempts, startedAt, duration, output };
}
