/** What is stored of an execution: its start, its steps, its end, and how they are written together. */

import type { Json, JsonObject } from '../json.ts';
import type { ExecutionError, ExecutionTrigger, FinalStatus } from './execution.ts';

/** An execution as it is accepted. */
export interface NewExecution {
  readonly id: string;
  readonly ensemble: string;
  /** Hash of a stored definition. */
  readonly version: string;
  readonly trigger: ExecutionTrigger;
  readonly input: Json;
  /** Source of everything random in the run; 32 hexadecimal characters. */
  readonly seed: string;
  readonly createdAt: number;
  /** Unix ms at which it times out. */
  readonly deadlineAt?: number;
  /** The owner's epoch: writes with another one are refused. */
  readonly epoch: number;
}

/** What is stored of one attempt of one step. */
export interface StepRecord {
  readonly key: string;
  readonly name: string;
  readonly status: 'completed' | 'failed';
  /** Attempts made, this one included. */
  readonly attempts: number;
  readonly startedAt: number;
  /** ms */
  readonly duration: number;
  readonly output: Json;
  readonly error?: ExecutionError;
  /** Set when another attempt follows: Unix ms. Without it, the record is the step's result and never changes. */
  readonly retryAt?: number;
}

/** A change of an ensemble's state, under a version check. */
export interface StateChange {
  readonly ensemble: string;
  /** The version that the change was computed from; 0 when there was none. */
  readonly expectedVersion: number;
  readonly value: JsonObject;
  readonly updatedAt: number;
}

/** How an execution ends. */
export interface ExecutionEnd {
  readonly status: FinalStatus;
  readonly output: Json;
  readonly error?: ExecutionError;
  readonly finishedAt: number;
  readonly duration: number;
}

/**
 * One execution's part of a commit: what stands in one entry is stored together or not at all.
 * It is guarded by `epoch`, and refused alone; the batch's other entries are not touched.
 */
export interface CommitEntry {
  readonly executionId: string;
  readonly epoch: number;
  /** In the order in which they were made. A record replaces an earlier one of its key that has `retryAt`. */
  readonly steps: readonly StepRecord[];
  readonly state?: StateChange;
  readonly end?: ExecutionEnd;
}
