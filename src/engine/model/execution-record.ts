/** Builds an execution's record from what is stored of it: pure, and the same for every store and engine. */

import { cloneJson, type Json } from '../json.ts';
import { jsonBytes, mostJsonBytes } from '../json-bytes.ts';
import {
  AGENTS_IN_RECORD,
  type AgentRun,
  type Execution,
  type ExecutionError,
  type ExecutionStatus,
  type ExecutionSummary,
  LISTED_VALUE_BYTES,
  OUTPUTS_IN_RECORD_BYTES,
  SHORT_OUTPUT_BYTES,
} from './execution.ts';
import type { ExecutionEnd, NewExecution, StepRecord } from './stored-execution.ts';

/** Where an execution stands that has not ended. */
export interface Progress {
  readonly status: 'queued' | 'running' | 'waiting';
  /** Unix ms at which it was begun first. */
  readonly startedAt?: number | undefined;
}

/**
 * @param runs - the record's agent runs
 * @param agents - how many agents ran, those past the first 1,000 included
 */
export function toExecution(
  accepted: NewExecution,
  { status, startedAt }: Progress,
  end: ExecutionEnd | undefined,
  runs: readonly AgentRun[],
  agents: number,
): Execution {
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

/**
 * The agent runs of a record: the first 1,000, with the outputs of the first ones up to 4 MiB in total.
 * @param steps - without notes, in the order in which they were stored; those whose output is known to be left out say so
 */
export function toAgentRuns(steps: readonly (StepRecord & { readonly outputOmitted?: true })[]): AgentRun[] {
  const count = Math.min(steps.length, AGENTS_IN_RECORD);
  const runs: AgentRun[] = [];
  let most = 0;
  for (let i = 0; i < count; i++) {
    const step = steps[i] as StepRecord & { readonly outputOmitted?: true };
    const run = toAgentRun(step);
    runs.push(step.outputOmitted ? { ...run, outputOmitted: true } : run);
    if (step.outputOmitted) most = Number.POSITIVE_INFINITY;
    else if (most <= OUTPUTS_IN_RECORD_BYTES) most += mostJsonBytes(step.output, OUTPUTS_IN_RECORD_BYTES);
  }
  return most <= OUTPUTS_IN_RECORD_BYTES ? runs : omitOutputs(runs);
}

function omitOutputs(runs: readonly AgentRun[]): AgentRun[] {
  const budget = outputBudget();
  return runs.map((run) => {
    const bytes = run.outputOmitted ? OUTPUTS_IN_RECORD_BYTES + 1 : jsonBytes(run.output, OUTPUTS_IN_RECORD_BYTES);
    return budget(bytes) ? run : { ...run, output: null, outputOmitted: true };
  });
}

/** Tells of one output after the other whether the record carries it. */
export function outputBudget(): (bytes: number) => boolean {
  let total = 0;
  return (bytes) => {
    total += bytes;
    return total <= OUTPUTS_IN_RECORD_BYTES || bytes <= SHORT_OUTPUT_BYTES;
  };
}

export function toSummary(
  { id, ensemble, version, trigger, createdAt }: Omit<NewExecution, 'input' | 'seed'>,
  status: ExecutionStatus,
  finishedAt: number | undefined,
): ExecutionSummary {
  const { parentId } = trigger;
  const about = { id, ensemble, version, status, trigger, createdAt };
  return { ...about, ...(finishedAt !== undefined && { finishedAt }), ...(parentId !== undefined && { parentId }) };
}

/** The record as listings have it. @param record - without agent runs */
export function toListed(record: Execution): Execution {
  const isLarge = (value: Json) => jsonBytes(value, LISTED_VALUE_BYTES) > LISTED_VALUE_BYTES;
  return withoutValues(record, isLarge(record.input), isLarge(record.output));
}

export function withoutValues(record: Execution, input: boolean, output: boolean): Execution {
  if (!input && !output) return record;
  const omitted = [...(input ? (['input'] as const) : []), ...(output ? (['output'] as const) : [])];
  return { ...record, ...(input && { input: null }), ...(output && { output: null }), omitted };
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
