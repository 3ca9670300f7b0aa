/** Builds an execution's record from its stored data. Pure, and the same for every storage and engine. */

import { OrchestratorError } from '../base/errors.ts';
import { cloneJson, type Json } from '../base/json/json.ts';
import { jsonTextBytes, maxJsonTextBytes } from '../base/json/measure-json.ts';
import {
  AGENTS_IN_RECORD,
  type AgentResult,
  type Execution,
  type ExecutionError,
  type ExecutionStatus,
  type ExecutionSummary,
  FAILED_STATUSES,
  isFinal,
  LISTED_VALUE_BYTES,
  MAX_MATCHES,
  type OpenStatus,
  OUTPUTS_IN_RECORD_BYTES,
  type PendingWait,
  SHORT_OUTPUT_BYTES,
} from './execution.ts';
import type { ExecutionEnd, Handover, NewExecution, StepRecord } from './stored-execution.ts';

const NO_TAGS: readonly string[] = Object.freeze([]);
const NO_WAITS: readonly PendingWait[] = Object.freeze([]);

/** How far an execution has come. `status` counts until the execution ends. */
export interface StoredProgress {
  readonly status: OpenStatus;
  /** Unix ms at which it began for the first time. */
  readonly startedAt?: number | undefined;
  /** How often it was freed because its worker was considered dead. Default 0. */
  readonly recoveries?: number | undefined;
  /** What its last run left. */
  readonly handover?: Handover | undefined;
  /** Unix ms of the first claim since then. */
  readonly resumedAt?: number | undefined;
  /** The execution that retries it: the one whose idempotency key is `retryKeyOf(id)`. */
  readonly retriedBy?: string | undefined;
}

/** ms in which no branch of an execution worked, because all waited, up to the claim that resumed it. */
export function waitedBefore(handover: Handover | undefined, resumedAt: number | undefined): number {
  if (!handover) return 0;
  const { waited, suspendedAt } = handover;
  if (suspendedAt === undefined || resumedAt === undefined) return waited;
  return waited + Math.max(0, resumedAt - suspendedAt);
}

/**
 * Builds the record of an execution.
 *
 * @param end - undefined while the execution has not ended
 * @param runs - the record's agent runs
 * @param agents - how many agents ran, including those after the first 1,000
 */
export function toExecution(
  accepted: NewExecution,
  progress: StoredProgress,
  end: ExecutionEnd | undefined,
  runs: readonly AgentResult[],
  agents: number,
): Execution {
  const { id, ensemble, version, trigger, tags, input, createdAt, deadlineAt, retryOf } = accepted;
  const { status, startedAt, recoveries = 0, handover } = progress;
  const isWaiting = (status === 'waiting' || status === 'paused' || status === 'queued') && !end;
  const waited = end ? (end.waited ?? 0) : waitedBefore(handover, progress.resumedAt);
  const { usage, components, moves, completions } = (end ?? handover ?? {}) as Pick<
    ExecutionEnd,
    'usage' | 'components' | 'moves' | 'completions'
  >;
  const beganAt = startedAt ?? end?.finishedAt;
  const totalDuration = end ? end.duration : 0;
  const record = {
    id,
    ensemble,
    version,
    status: end ? end.status : status,
    trigger,
    tags: tags ?? NO_TAGS,
    input,
    output: end ? end.output : null,
    createdAt,
    metrics: {
      totalDuration,
      agents,
      waited,
      ...(beganAt !== undefined && { queued: Math.max(0, beganAt - createdAt) }),
      ...(usage && { usage }),
    },
    waitingFor: isWaiting && handover ? handover.waitingFor : NO_WAITS,
    recoveries,
    agents: runs,
  } as { -readonly [K in keyof Execution]: Execution[K] };
  if (trigger.dryRun) record.dryRun = true;
  if (isWaiting && handover?.omitted !== undefined) record.waitingForOmitted = handover.omitted;
  if (startedAt !== undefined) record.startedAt = startedAt;
  if (components) record.components = components;
  if (moves) record.moves = moves;
  if (completions) record.completions = completions;
  if (retryOf !== undefined) record.retryOf = retryOf;
  if (progress.retriedBy !== undefined) record.retriedBy = progress.retriedBy;
  if (trigger.parentId !== undefined) record.parentId = trigger.parentId;
  if (deadlineAt !== undefined) record.deadlineAt = deadlineAt;
  if (end) {
    record.finishedAt = end.finishedAt;
    record.duration = end.duration;
    if (end.error) record.error = end.error;
    if (end.status !== 'completed') {
      delete (record as { output?: Json }).output;
      if (end.output !== null) record.partialOutput = end.output;
    }
  }
  return record;
}

/**
 * The agent runs of a record: the first 1,000, with the outputs of the first ones up to 4 MiB in total.
 * @param steps - without decisions, in the order in which they were stored. `outputOmitted` marks an output that was not read
 */
export function toAgentResults(steps: readonly (StepRecord & { readonly outputOmitted?: true })[]): AgentResult[] {
  const count = Math.min(steps.length, AGENTS_IN_RECORD);
  const runs: AgentResult[] = [];
  let most = 0;
  for (let i = 0; i < count; i++) {
    const step = steps[i] as StepRecord & { readonly outputOmitted?: true };
    const run = toAgentResult(step);
    runs.push(step.outputOmitted ? { ...run, outputOmitted: true } : run);
    if (step.outputOmitted) most = Number.POSITIVE_INFINITY;
    else if (most <= OUTPUTS_IN_RECORD_BYTES) most += maxJsonTextBytes(step.output, OUTPUTS_IN_RECORD_BYTES);
  }
  return most <= OUTPUTS_IN_RECORD_BYTES ? runs : omitOutputs(runs);
}

function omitOutputs(runs: readonly AgentResult[]): AgentResult[] {
  const budget = outputBudget();
  return runs.map((run) => {
    const bytes = run.outputOmitted ? OUTPUTS_IN_RECORD_BYTES + 1 : jsonTextBytes(run.output, OUTPUTS_IN_RECORD_BYTES);
    return budget(bytes) ? run : { ...run, output: null, outputOmitted: true };
  });
}

/** @returns a function that is called for one output after the other, and says whether the record includes the output */
export function outputBudget(): (bytes: number) => boolean {
  let total = 0;
  return (bytes) => {
    total += bytes;
    return total <= OUTPUTS_IN_RECORD_BYTES || bytes <= SHORT_OUTPUT_BYTES;
  };
}

/** Whether results are stored for an execution from its start: those that a retry keeps. */
export function startsWithResults({ retryOf }: NewExecution): boolean {
  return retryOf !== undefined;
}

/** Whether an execution ended, and did not complete: then a retry can follow. */
export function endedBadly({ status }: Pick<Execution, 'status'>): boolean {
  return isFinal(status) && status !== 'completed';
}

/** Whether an execution failed or timed out, is not a dry run, and no other one retries it. */
export function isUnresolved({
  status,
  retriedBy,
  trigger,
}: Pick<Execution, 'status' | 'retriedBy' | 'trigger'>): boolean {
  return retriedBy === undefined && !trigger.dryRun && FAILED_STATUSES.some((one) => one === status);
}

/** The declared outputs of a record, also of one that ended badly: as far as they could be computed. Null without any. */
export function outputsOf(record: Pick<Execution<unknown>, 'status' | 'output' | 'partialOutput'>): Json {
  return endedBadly(record) ? (record.partialOutput ?? null) : (record.output as Json);
}

/** The status of an execution, without its values. @param finishedAt - Unix ms. Undefined while it has not ended */
export function toSummary(
  {
    id,
    ensemble,
    version,
    trigger,
    createdAt,
  }: Pick<NewExecution, 'id' | 'ensemble' | 'version' | 'trigger' | 'createdAt'>,
  status: ExecutionStatus,
  finishedAt: number | undefined,
): ExecutionSummary {
  const { parentId } = trigger;
  const about = { id, ensemble, version, status, trigger, createdAt };
  return { ...about, ...(finishedAt !== undefined && { finishedAt }), ...(parentId !== undefined && { parentId }) };
}

/** The record as listings return it. @param record - without agent runs */
export function toListed(record: Execution): Execution {
  const isLarge = (value: Json) => jsonTextBytes(value, LISTED_VALUE_BYTES) > LISTED_VALUE_BYTES;
  return withoutValues(record, isLarge(record.input), isLarge(outputsOf(record)));
}

/** The record as listings return it, for a storage that knows the sizes of the values without reading them. */
export function withoutValues(record: Execution, input: boolean, output: boolean): Execution {
  if (!input && !output) return record;
  const name = endedBadly(record) ? 'partialOutput' : 'output';
  const omitted = [...(input ? (['input'] as const) : []), ...(output ? ([name] as const) : [])];
  return { ...record, ...(input && { input: null }), ...(output && { [name]: null }), omitted };
}

/** What a listing throws when too many ids or tags begin with the searched text: it would have to sort all of them. */
export function tooManyMatches(search: string): OrchestratorError {
  const message = `more than ${MAX_MATCHES} ids or tags begin with ${JSON.stringify(search)}; search for a longer text, or list by \`tag\``;
  return new OrchestratorError('INVALID_REQUEST', message, { details: { limit: MAX_MATCHES } });
}

export function toAgentResult(step: StepRecord): AgentResult {
  const { name, key, attempts, startedAt, duration, output, error } = step;
  const status = step.retryAt === undefined ? step.status : 'retrying';
  if (error) return { name, key, status, attempts, startedAt, duration, output, error };
  return { name, key, status, attempts, startedAt, duration, output };
}

/** Copies the values of a record in place, so that its caller may change them. The storage shares none of them. */
export function toOwnCopy(record: Execution): Execution {
  const own = record as {
    input: Json;
    output: Json | undefined;
    partialOutput?: Json;
    error?: ExecutionError;
    waitingFor: readonly PendingWait[];
    tags: readonly string[];
  };
  own.input = cloneJson(record.input);
  if (own.output !== undefined) own.output = cloneJson(own.output);
  if (own.partialOutput !== undefined) own.partialOutput = cloneJson(own.partialOutput);
  if (own.error) own.error = cloneJson(own.error);
  if (own.waitingFor.length > 0) own.waitingFor = own.waitingFor.map((wait) => ({ ...wait }));
  if (own.tags.length > 0) own.tags = [...own.tags];
  for (const run of record.agents as unknown as { output: Json; error?: ExecutionError }[]) {
    run.output = cloneJson(run.output);
    if (run.error) run.error = cloneJson(run.error);
  }
  return record;
}
