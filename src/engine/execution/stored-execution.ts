/** The stored data of an execution: its start, its steps, its end, and the commit entry that writes them together. */

import type { Charge } from '../access/quota.ts';
import type { Json, JsonObject } from '../base/json/json.ts';
import type { UsedComponent } from '../component/component.ts';
import type { NewDelivery } from '../delivery/delivery.ts';
import type { TraceContext } from '../events/trace-context.ts';
import type {
  AcceptedExecution,
  AgentResult,
  ExecutionCompletion,
  ExecutionError,
  ExecutionMove,
  FinalStatus,
  PendingWait,
  TokenUsage,
} from './execution.ts';
import type { FlowLimit } from './limits/flow-limit.ts';

/** An execution at the moment when it is accepted. */
export interface NewExecution extends AcceptedExecution {
  /** The source of all randomness in the execution, and of the keys of its calls, see `seed.ts`. */
  readonly seed: string;
  /** Under which its caller can start it again, as `toStoredKey` makes it. No other execution of the store has the same key. */
  readonly idempotencyKey?: string | undefined;
  /** Different texts, at least one. Absent without tags. */
  readonly tags?: readonly string[] | undefined;
  /** The limits that it runs under, at least one. Absent: none. */
  readonly limits?: readonly FlowLimit[] | undefined;
  /** Unix ms: if it is queued, it counts as due since then. Absent: since its start. It is not stored by itself. */
  readonly dueSince?: number | undefined;
  /** Unix ms: if it has not begun then, it ends without having run. Absent: it may begin at any time. */
  readonly startBy?: number | undefined;
}

/** The data under one key of an execution: an attempt of an agent, a decision of the interpreter, or a mark. */
export interface StepRecord extends Omit<AgentResult, 'status' | 'outputOmitted'> {
  /** The agent's name. For a decision about the end of a wait: the signal's name. For any other decision, and for a mark: empty. */
  readonly name: string;
  readonly status: 'completed' | 'failed';
  /** The instant (Unix ms) of the next attempt. Without it, the record is the step's result and never changes. */
  readonly retryAt?: number;
  /**
   * Marks a decision or a mark. The `output` of a decision is what the interpreter decided and could not compute again. A mark only
   * reports what happened: no replay reads it. Neither is an agent's run, and no execution's record lists it.
   */
  readonly note?: true;
}

/** Whether a record is the decision of a `wait` that took a signal. A retry of the same flow keeps it like a result. @internal */
export function isTakenSignal({ key, note, output }: StepRecord): boolean {
  const { signal } = (output ?? {}) as { readonly signal?: unknown };
  return note === true && key.endsWith('.wait') && typeof signal === 'string';
}

/** A change of an ensemble's state, with a check of the version. */
export interface StateChange {
  readonly ensemble: string;
  /** The version from which the change was computed. 0 if there was no state. */
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
  /** Milliseconds from its start, waits included. */
  readonly duration: number;
  /** How many agents ran. */
  readonly agents: number;
  /** ms in which no branch worked, because all waited. Absent if there were none. */
  readonly waited?: number;
  /** What its models used. Absent if it called none. */
  readonly usage?: TokenUsage;
  /** The versions of components that it used. Absent if it used none. */
  readonly components?: readonly UsedComponent[];
  /** The changes of its definition. Absent if there were none. */
  readonly moves?: readonly ExecutionMove[] | undefined;
  /** The steps that got a result by hand. Absent if there were none. */
  readonly completions?: readonly ExecutionCompletion[] | undefined;
}

/** What people changed of an execution, which each run passes on. Undefined if nothing. */
export function changesOf(
  from: Pick<Handover, 'moves' | 'completions'> | undefined,
): Pick<Handover, 'moves' | 'completions'> | undefined {
  const { moves, completions } = from ?? {};
  if (!moves && !completions) return undefined;
  return { ...(moves && { moves }), ...(completions && { completions }) };
}

/** Where a `while` or a `foreach` stands: what a later run needs in place of the records of its rounds or items that are over. */
export interface FoldedBlock {
  /** The rounds or items that are over: ranges of indexes, each without its end, in order. */
  readonly over: readonly (readonly [number, number])[];
  /** What the interpreter needs to continue after them. */
  readonly left: JsonObject;
}

/**
 * What a run leaves so that the next one does not read the records of rounds and items that are over. Those records stay stored: a run
 * without the fold replays them, with the same result.
 */
export interface Fold {
  /** The definition whose run made it. It is of no use for another one. */
  readonly version: string;
  /** By the key of the block, such as `flow[2].while`. */
  readonly blocks: Readonly<Record<string, FoldedBlock>>;
  /** The keys of all other records up to `after`. */
  readonly keys: readonly string[];
  /** The key of the last record that it takes into account: all later ones are read. */
  readonly after: string;
  /** How many steps the run had counted. */
  readonly steps: number;
  /** How many agents had run. */
  readonly agents: number;
  /** What its models had used. Absent if it had called none. */
  readonly usage?: TokenUsage;
  /** By the name of a signal: how many of its signals, counted from the first, the waits had taken. */
  readonly passed?: Readonly<Record<string, number>>;
  /** The ids of the other signals that waits had taken. */
  readonly taken?: readonly string[];
}

/** What a run leaves to the next run of its execution, and to the execution's record. A storage keeps it and looks at nothing in it. */
export interface Handover {
  /** The first 100. */
  readonly waitingFor: readonly PendingWait[];
  /** How many more there are. */
  readonly omitted?: number;
  /** ms up to the release in which no branch worked, because all waited. */
  readonly waited: number;
  /** What its models used. Absent if it called none. */
  readonly usage?: TokenUsage;
  /** The versions of components that it used. Absent if it used none. */
  readonly components?: readonly UsedComponent[];
  /** The changes of its definition. Absent if there were none. */
  readonly moves?: readonly ExecutionMove[] | undefined;
  /** The steps that got a result by hand. Absent if there were none. */
  readonly completions?: readonly ExecutionCompletion[] | undefined;
  /** Unix ms of the release, if the run was suspended: from then on the execution waited until its next claim. */
  readonly suspendedAt?: number;
  /** How often the execution had been freed from dead workers when the run began. */
  readonly recoveries: number;
  /** The span of the run. Absent without telemetry. */
  readonly trace?: TraceContext;
  /** Absent if no round of a `while` and no item of a `foreach` is over, or if what the next run needs of them is too large. */
  readonly fold?: Fold | undefined;
}

/** The `dueAt` of an execution that waits only for a signal: the last instant of a JavaScript date. */
export const NEVER = 8_640_000_000_000_000;

/** How a worker releases an execution before its end. */
export interface Release {
  /** `queued`: it counts as not begun. `waiting`: there is nothing to do before `dueAt`. `running`: another worker continues it. */
  readonly status: 'queued' | 'running' | 'waiting';
  /** The instant (Unix ms) from which a worker may claim it. {@link NEVER} if it waits only for a signal. */
  readonly dueAt: number;
  /**
   * How many signals its worker has seen. If more are stored, an execution that is `waiting` is due at once. Without this number,
   * it is due at once if any signal was stored since the claim.
   */
  readonly signals?: number;
  /** The names of the signals that it waits for. A signal of another name does not make it due. Without this list, every signal does. */
  readonly waitsFor?: readonly string[];
  /** From the run that releases it. Without it, the stored one stays. */
  readonly handover?: Handover;
}

/** A signal to an execution. */
export interface NewSignal {
  /** Unique in its execution. */
  readonly id: string;
  readonly executionId: string;
  readonly name: string;
  readonly payload: Json;
  readonly createdAt: number;
}

/**
 * The part of a commit that belongs to one execution. An entry is stored as a whole or not at all.
 *
 * The fence: the worker of the commit must hold the execution under `epoch`, and the execution must not have ended. An entry that
 * fails this check is refused. The other entries of the batch are not affected.
 */
export interface CommitEntry {
  readonly executionId: string;
  /** Counts the claims of the execution. With `start`: 1, or 0 if the execution is queued. */
  readonly epoch: number;
  /** Accepts the execution, without a fence. With `release`, the execution is queued. Otherwise the worker holds it, and it runs. */
  readonly start?: NewExecution;
  /** With `start`: the caller that pays for the execution. It is charged once, however often the entry is repeated. */
  readonly charge?: Charge | undefined;
  /** With `start`: the execution is stored only if a document has this tag. */
  readonly expects?: ExpectedDocument | undefined;
  /** In the order in which they were made. A record replaces the stored one of its key if that has `retryAt` and not more attempts. */
  readonly steps: readonly StepRecord[];
  readonly state?: StateChange;
  /** Signals to other executions. A signal to an unknown or ended execution is dropped, and the entry is stored all the same. */
  readonly signals?: readonly NewSignal[];
  /** What is to be sent about the rest of the entry. A delivery whose id is stored already is left out. */
  readonly deliveries?: readonly NewDelivery[];
  /** The worker releases the execution. Never together with `end`. */
  readonly release?: Release;
  readonly end?: ExecutionEnd;
  /** With `end`: what is counted of it, as `lineOfEnd` writes it. Absent: it is not counted. */
  readonly counted?: string | undefined;
}

/** A document that a start relies on. */
export interface ExpectedDocument {
  readonly kind: string;
  readonly name: string;
  readonly tag: string;
}

/** An execution that a worker has claimed. */
export interface ClaimedExecution {
  readonly execution: NewExecution;
  /** The epoch under which the worker holds it. */
  readonly epoch: number;
  /** Unix ms at which it began for the first time. */
  readonly startedAt: number;
  /** Whether it began before this claim. Then there may be records. */
  readonly begun: boolean;
  /** How often it was freed because its worker was considered dead. */
  readonly recoveries: number;
  /** The sum of its shares of blame for the last of these deaths, in thousandths. See `workers.reclaimFromDead` of the storage. */
  readonly blame: number;
  readonly cancelRequested: boolean;
  /** It is to be paused: it was freed from a dead worker before that released it. Default false. */
  readonly pauseRequested?: boolean;
  /** How many signals are stored for it. */
  readonly signals: number;
  /** What its last run left. Absent if no run released it. */
  readonly handover?: Handover;
  /** Unix ms of the first claim since the release that stored the handover: this claim, or that of a worker that died since. */
  readonly resumedAt: number;
}

/** An execution that was claimed, and whose stored data can't be read. */
export interface DamagedExecution {
  readonly executionId: string;
  readonly epoch: number;
  readonly damage: Error;
  /** The execution whose step started it. */
  readonly parentId?: string;
}
