/** What is asked of a storage, and what it answers: the nouns of the storage port. */

import type { JsonObject } from '../json.ts';
import type { ExecutionStatus } from '../model/execution.ts';

/**
 * | answer | means |
 * |---|---|
 * | stored | all of the entry is stored, now or by an earlier call with the same entry |
 * | exists | another execution has the id of the entry's `start`: nothing is stored |
 * | fenced | the execution is unknown, has ended, or is not held by this owner under this epoch: nothing is stored |
 * | state-conflict | the state's version is another one: nothing is stored |
 */
export type CommitResult = 'stored' | 'exists' | 'fenced' | 'state-conflict';

export interface StoredState {
  readonly value: JsonObject;
  /** Counts the changes; 1 after the first. */
  readonly version: number;
  readonly updatedAt: number;
}

/** How far a schedule has come, in words of the engine. */
export interface StoredSchedule {
  readonly value: JsonObject;
  /** Counts the changes; 1 after the first. */
  readonly version: number;
  readonly updatedAt: number;
}

export interface ScheduleChange {
  /** The version that the change was made from; 0 when nothing was stored. */
  readonly expectedVersion: number;
  readonly value: JsonObject;
  readonly updatedAt: number;
}

export interface StoredDefinition {
  /** Hash of the definition. */
  readonly version: string;
  readonly definition: JsonObject;
  /** What a process must have to run it, such as `script:score` and `operation:api`. */
  readonly needs: readonly string[];
}

export interface ExecutionQuery {
  readonly ensemble?: string;
  readonly status?: ExecutionStatus;
  /** The execution whose steps started them. */
  readonly parentId?: string;
  /** 1 to 250. */
  readonly limit: number;
  /** Only executions older than this id. */
  readonly before?: string;
}

export interface RecordQuery {
  /** `false`: without agents' runs. */
  readonly agents?: boolean;
}

export interface StepQuery {
  /** Only records after the one of this key. Default: from the first. */
  readonly after?: string | undefined;
  readonly limit: number;
  /** Bytes of outputs, as JSON text. Default 8 MiB. */
  readonly bytes?: number;
  /** Notes are listed too. Default: agents' runs alone. */
  readonly notes?: boolean;
}

export interface SkippedRuns {
  readonly skipped: number;
  /** Of the last one that was skipped; absent when none was. */
  readonly key?: string;
}

/** A wait that a signal ended, or its timeout. */
export interface EndedWait {
  /** Of its note. */
  readonly key: string;
  /** Unix ms. */
  readonly at: number;
}

export interface SignalQuery {
  readonly name: string;
  /** How many of that name are skipped. */
  readonly after: number;
  readonly limit: number;
}

/**
 * | answer | means |
 * |---|---|
 * | stored | it is stored, now or by an earlier call |
 * | unknown | there is no such execution: nothing is stored |
 * | ended | the execution has ended: nothing is stored |
 */
export type SignalResult = 'stored' | 'unknown' | 'ended';

export interface ClaimQuery {
  readonly now: number;
  /** At most so many are claimed. */
  readonly limit: number;
  /** Versions of definitions that the owner can't run. */
  readonly except: readonly string[];
}

/** What an owner has to know between its writes. */
export interface Survey {
  /** The earliest `dueAt` of a free execution whose version is none of `except`; absent when there is none. */
  readonly nextDueAt?: number;
  /** Held by this owner, and asked to stop; some may be told again. */
  readonly cancelRequested: readonly string[];
  /** Held by this owner, with signals that came since it was claimed; some may be told again. */
  readonly signalled: readonly {
    readonly executionId: string;
    /** How many have come so far, from the first on. */
    readonly signals: number;
  }[];
}

/** What a look at the other owners gave. */
export interface Recovered {
  /** How many executions were freed. */
  readonly freed: number;
  /** Another owner may be known to be dead so many ms from now; absent where nothing points to that. */
  readonly againInMs?: number;
}

export interface PurgeQuery {
  readonly owner: string;
  /** Executions that ended before this instant are deleted, with everything that is stored of them. */
  readonly before: number;
  /** At most so many. */
  readonly limit: number;
  /** `next` of the batch before. */
  readonly after?: string;
}
