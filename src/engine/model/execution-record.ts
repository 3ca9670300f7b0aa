/** Builds an execution's record from what is stored of it: pure, and the same for every store and engine. */

import { AGENTS_IN_RECORD, type AgentRun, type Execution } from './execution.ts';
import type { ExecutionEnd, NewExecution, StepRecord } from './stored-execution.ts';

/** @param steps - in the order in which they were stored; only the first 1,000 are read */
export function toExecution(accepted: NewExecution, end: ExecutionEnd | undefined, steps: readonly StepRecord[], agents: number): Execution {
  const { id, ensemble, version, trigger, input, createdAt } = accepted;
  const base = { id, ensemble, version, status: end?.status ?? ('running' as const), trigger, input, output: end?.output ?? null };
  const runs: AgentRun[] = [];
  for (let i = 0; i < steps.length && i < AGENTS_IN_RECORD; i++) runs.push(toAgentRun(steps[i] as StepRecord));
  if (!end) return { ...base, createdAt, startedAt: createdAt, metrics: { totalDuration: 0, agents }, agents: runs };
  return {
    ...base,
    ...(end.error ? { error: end.error } : {}),
    createdAt,
    startedAt: createdAt,
    finishedAt: end.finishedAt,
    duration: end.duration,
    metrics: { totalDuration: end.duration, agents },
    agents: runs,
  };
}

export function toAgentRun(step: StepRecord): AgentRun {
  const { name, key, attempts, startedAt, duration, output, error } = step;
  const status = step.retryAt === undefined ? step.status : 'retrying';
  const run: AgentRun = { name, key, status, attempts, startedAt, duration, output };
  return error ? { ...run, error } : run;
}
