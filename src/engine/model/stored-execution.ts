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
  /** The execution that it tries again: it was handed the results of the steps that succeeded there. */
  readonly retryOf?: string;
}

/** What is stored under one key of an execution: one attempt of an agent, or a note. */
export interface StepRecord {
  readonly key: string;
  /** The agent's name. Of a note of how a wait ended: the signal's name; otherwise empty for a note. */
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
  /** What the interpreter decided and could not work out again, in `output`. It is no agent's run, and no record lists it. */
  readonly note?: true;
}

/** Whether a record is the note of a wait that took a signal: for the same steps it stands as their results do. */
export function isTakenSignal({ key, note, output }: StepRecord): boolean {
  const { signal } = (output ?? {}) as { readonly signal?: unknown };
  return note === true && key.endsWith('.wait') && typeof signal === 'string';
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
  /** ms from its start, waits included. */
  readonly duration: number;
  /** How many agents ran. */
  readonly agents: number;
}

/** The `dueAt` of what waits for a signal alone: the last instant that there is. */
export const NEVER = 8_640_000_000_000_000;

/** How an owner gives an execution up, before its end. */
export interface Release {
  /** `queued`: it counts as not begun. `waiting`: nothing is to be done before `dueAt`. `running`: another owner is to go on. */
  readonly status: 'queued' | 'running' | 'waiting';
  /** Unix ms from which an owner may claim it; {@link NEVER} for one that waits for a signal alone. */
  readonly dueAt: number;
  /**
   * How many signals its owner has heard of. When more have come, one that is `waiting` is due at once. Without it, when any has
   * come since it was claimed.
   */
  readonly signals?: number;
  /** The names of the signals that it waits for: one of another name leaves it waiting. Without it, any makes it due. */
  readonly waitsFor?: readonly string[];
}

/** What is told to an execution from outside. */
export interface NewSignal {
  /** Unique in its execution. */
  readonly id: string;
  readonly executionId: string;
  readonly name: string;
  readonly payload: Json;
  readonly createdAt: number;
}

/** A notification that is to be sent, as it is stored beside the state that it reports. */
export interface NewDelivery {
  readonly id: string;
  /** The kind of event, such as `execution.completed`. */
  readonly event: string;
  /** Where it goes and how: the notification of the definition. */
  readonly target: JsonObject;
  readonly payload: JsonObject;
  readonly createdAt: number;
  /** Unix ms of the first attempt. */
  readonly dueAt: number;
}

/** A delivery as it stands in the store. */
export interface StoredDelivery extends NewDelivery {
  readonly executionId: string;
  readonly status: 'pending' | 'delivered' | 'exhausted';
  readonly attempts: number;
}

/**
 * One execution's part of a commit: what stands in one entry is stored together or not at all.
 *
 * It is guarded by its fence: the execution is held by the commit's owner under `epoch`, and has not ended. An entry is refused
 * alone; the batch's other entries are not touched.
 */
export interface CommitEntry {
  readonly executionId: string;
  /** Counts the claims of the execution. With `start`: 1, or 0 when it is queued. */
  readonly epoch: number;
  /** Accepts the execution; there is no fence then. With `release`, it is queued; otherwise the owner holds it, and it runs. */
  readonly start?: NewExecution;
  /** In the order in which they were made. A record replaces one of its key that has `retryAt` and no more attempts. */
  readonly steps: readonly StepRecord[];
  readonly state?: StateChange;
  readonly deliveries?: readonly NewDelivery[];
  /** To other executions. One to an execution that is unknown, or has ended, is dropped; the entry is stored all the same. */
  readonly signals?: readonly NewSignal[];
  /** The owner gives it up. Never beside `end`. */
  readonly release?: Release;
  readonly end?: ExecutionEnd;
}

/** An execution that an owner claimed. */
export interface ClaimedExecution {
  readonly execution: NewExecution;
  /** The epoch under which the owner holds it. */
  readonly epoch: number;
  /** Unix ms at which it was begun first. */
  readonly startedAt: number;
  /** It was begun before: there may be records of it. */
  readonly begun: boolean;
  /** How often it was taken from an owner that had died. */
  readonly recoveries: number;
  /** Its part of the blame for the last of these deaths, in thousandths, summed; see `recover` of the storage. */
  readonly blame: number;
  readonly cancelRequested: boolean;
  /** How many signals have come for it so far. */
  readonly signals: number;
}

/** An execution that was claimed and can't be read. */
export interface DamagedExecution {
  readonly executionId: string;
  readonly epoch: number;
  readonly damage: Error;
  /** The execution whose step started it. */
  readonly parentId?: string;
}
