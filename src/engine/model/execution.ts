/** The execution: one run of an ensemble, its record, its agents' runs and its states. */

import type { Json } from '../json.ts';

/**
 * | status | means | next |
 * |---|---|---|
 * | queued | accepted, not begun | running, cancelled |
 * | running | a process works on it, or is to go on with it | waiting, or any final one |
 * | waiting | nothing to do before an instant or a signal | running, cancelled, timed_out |
 * | completed, failed, timed_out, cancelled | final, never changed | - |
 */
export type ExecutionStatus = 'queued' | 'running' | 'waiting' | FinalStatus;
export type FinalStatus = 'completed' | 'failed' | 'timed_out' | 'cancelled';

export const EXECUTION_STATUSES: readonly ExecutionStatus[] = [
  'queued',
  'running',
  'waiting',
  'completed',
  'failed',
  'timed_out',
  'cancelled',
];

export function isFinal(status: ExecutionStatus): status is FinalStatus {
  return status === 'completed' || status === 'failed' || status === 'timed_out' || status === 'cancelled';
}

/** Why an execution or an agent failed; the message is the thrown text with secrets masked. */
export interface ExecutionError {
  readonly code: string;
  readonly message: string;
  /** The agent that failed, by the name its result has. */
  readonly agent?: string;
}

/** What started an execution. */
export interface ExecutionTrigger {
  readonly type: 'call' | 'webhook' | 'schedule' | 'http' | 'ensemble';
  /** The execution whose `ensemble` step started it. */
  readonly parentId?: string;
  /** The place of that step in its parent, such as `flow[3]` or `flow[2].foreach[7].steps[0]`. */
  readonly key?: string;
  /** The first of those that led to it, which has no parent. */
  readonly rootId?: string;
  /** How many led to it: 1 for a child of the first. */
  readonly depth?: number;
  /** Its parent does not wait for it. */
  readonly detached?: boolean;
  /** Of a schedule: its pattern. */
  readonly cron?: string;
  /** Of a schedule: the IANA name of its time zone. */
  readonly timezone?: string;
  /** Of a schedule: Unix ms at which it was due. */
  readonly scheduledAt?: number;
}

/** One agent's run inside an execution. Agents that were skipped have none. */
export interface AgentRun {
  /** The name its result has in the flow. */
  readonly name: string;
  /** Its place in the flow, such as `flow[3]` or `flow[2].foreach[7].steps[0]`; unique in the execution. */
  readonly key: string;
  /** `retrying` between two attempts. */
  readonly status: 'completed' | 'failed' | 'retrying';
  /** Attempts made, the last one included. */
  readonly attempts: number;
  /** Unix ms at which the first attempt began. */
  readonly startedAt: number;
  /** Milliseconds from the first attempt's start to the end of the last, waits included. */
  readonly duration: number;
  readonly output: Json;
  /** The output is not here, and `output` is null: the record carries 4 MiB of outputs. `executions.agent(id, key)` gives it. */
  readonly outputOmitted?: true;
  readonly error?: ExecutionError;
}

/** Where an execution stands, without its values and without what its agents did. */
export interface ExecutionSummary {
  readonly id: string;
  readonly ensemble: string;
  /** Hash of the definition that it runs. */
  readonly version: string;
  readonly status: ExecutionStatus;
  readonly trigger: ExecutionTrigger;
  /** Unix ms. */
  readonly createdAt: number;
  readonly finishedAt?: number;
  /** The execution whose `ensemble` step started it. */
  readonly parentId?: string;
}

/** The record of one execution. */
export interface Execution<Output = Json> {
  /** `exec_` and 26 characters that sort by time. */
  readonly id: string;
  readonly ensemble: string;
  /** Hash of the definition that it runs. */
  readonly version: string;
  readonly status: ExecutionStatus;
  readonly trigger: ExecutionTrigger;
  readonly input: Json;
  /** The declared outputs; null until it ends. Computed for failed runs too. */
  readonly output: Output;
  readonly error?: ExecutionError;
  /** Unix ms. */
  readonly createdAt: number;
  /** Absent while it is queued. */
  readonly startedAt?: number;
  readonly finishedAt?: number;
  /** Unix ms at which it times out; absent without a timeout. */
  readonly deadlineAt?: number;
  /** Milliseconds from start to end, on the monotonic clock where one process ran it through; absent until it ends. */
  readonly duration?: number;
  /** The execution that it tries again. */
  readonly retryOf?: string;
  /** The execution whose `ensemble` step started it. */
  readonly parentId?: string;
  readonly metrics: { readonly totalDuration: number; readonly agents: number };
  /** The first 1,000 runs, in the order in which they were stored, with the outputs of the first ones up to 4 MiB in total. */
  readonly agents: readonly AgentRun[];
  /**
   * In a listing: which of them are larger than 4 KiB of JSON text. They are null there, and the record has them. Absent when both
   * are given.
   */
  readonly omitted?: readonly ('input' | 'output')[];
}

/** How many agent runs a record carries. */
export const AGENTS_IN_RECORD = 1000;
/** How many bytes of JSON text the outputs of a record's agent runs may have in total. */
export const OUTPUTS_IN_RECORD_BYTES = 4 * 1024 * 1024;
/** An output of so many bytes is never left out of a record: `null` is one. */
export const SHORT_OUTPUT_BYTES = 4;
/** How many bytes of JSON text an input or output may have in a listing. */
export const LISTED_VALUE_BYTES = 4 * 1024;
/** How many bytes of outputs a page of agent runs holds. A single larger one is a page by itself. */
export const PAGE_BYTES = 8 * 1024 * 1024;
