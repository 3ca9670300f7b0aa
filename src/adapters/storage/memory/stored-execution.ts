/** One execution in the memory storage: which worker holds it, its steps and signals, and when it is due. */

import { equalJson, type Json } from '../../../engine/base/json/json.ts';
import { memoryBytes } from '../../../engine/base/json/measure-json.ts';
import { type DueFacts, isDueAsReleased } from '../../../engine/execution/due.ts';
import type {
  CommitEntry,
  ExecutionEnd,
  Handover,
  NewExecution,
  NewSignal,
  StepRecord,
} from '../../../engine/execution/stored-execution.ts';
import type { HeldLimit, HeldLimits, JoinedLimits } from './limits.ts';
import type { Slot } from './slots.ts';

/** The limits of one execution, as it stands. */
interface ExecutionLimits {
  readonly joined: JoinedLimits;
  /** Those whose slots it needs for its next claim, and takes while it is held. */
  waitsIn: HeldLimits | undefined;
  /** Those whose slots it keeps until its end. */
  keeps: readonly HeldLimit[] | undefined;
}

interface Pause {
  /** Who has paused it: bits of PAUSE_SCOPES. */
  scopes: number;
  /** Its status before it was `paused`. Undefined while it is held. */
  from: 'queued' | 'running' | 'waiting' | undefined;
}

export interface StoredExecution {
  execution: NewExecution;
  /** Absent if its caller may have any number of executions at once. */
  readonly slot: Slot | undefined;
  /** The limits that it runs under. */
  readonly limits: ExecutionLimits | undefined;
  /** Counts the claims. */
  epoch: number;
  /** The worker that holds it; undefined while it is free and after it ended. */
  worker: string | undefined;
  /** The status until it ends. After that, the status of `end` counts. */
  status: 'queued' | 'running' | 'waiting' | 'paused';
  pause: Pause | undefined;
  /** Unix ms; set while it is free. */
  dueAt: number | undefined;
  startedAt: number | undefined;
  /** How many workers died while they held it. */
  recoveries: number;
  /** Unix ms of the last claim, or of the start. */
  claimedAt: number;
  /** Its share of the blame for dead workers, in thousandths. */
  blame: number;
  /** How many workers had registered when it was last blamed. */
  blamedAt: number;
  /** Unix ms of the first cancellation request. */
  cancelRequestedAt: number | undefined;
  /** In the order in which they were first stored. */
  steps: StepRecord[];
  /** How many of the steps are decisions. */
  decisions: number;
  /** The index in `steps` of each key. Undefined for few steps. */
  indexByKey: Map<string, number> | undefined;
  /** In the order in which they arrived. */
  signals: NewSignal[] | undefined;
  /** Unix ms of the first signal since the last claim. */
  signalledAt: number | undefined;
  /** The names of the signals that it waits for; undefined when any signal makes it due. */
  waitsFor: readonly string[] | undefined;
  handover: Handover | undefined;
  /** The slots of its steps. Undefined: it never had any. */
  stepSlots?: Map<string, HeldLimit>;
  /** Unix ms of the first claim since the handover was stored. */
  resumedAt: number | undefined;
  /** An estimate of its memory. */
  bytes: number;
  end: ExecutionEnd | undefined;
}

/** The estimated memory of an execution without its values. */
const EXECUTION_BYTES = 1000;
/** The estimated memory of a step without its output. */
const STEP_BYTES = 300;

/** Up to this number of steps, a search through the array is faster than a map. */
const MAX_SEARCHED_STEPS = 16;

/** @returns a running execution that no worker holds */
export function newStoredExecution(
  execution: NewExecution,
  epoch: number,
  slot: Slot | undefined,
  limits: JoinedLimits | undefined,
): StoredExecution {
  return {
    execution,
    slot,
    limits: limits && { joined: limits, waitsIn: limits.first, keeps: undefined },
    epoch,
    worker: undefined,
    status: 'running',
    pause: undefined,
    dueAt: undefined,
    startedAt: undefined,
    recoveries: 0,
    claimedAt: execution.createdAt,
    blame: 0,
    blamedAt: 0,
    cancelRequestedAt: undefined,
    steps: [],
    decisions: 0,
    indexByKey: undefined,
    signals: undefined,
    signalledAt: undefined,
    waitsFor: undefined,
    handover: undefined,
    resumedAt: undefined,
    bytes: EXECUTION_BYTES + memoryBytes(execution.input) + (execution.tags ? memoryBytes(execution.tags) : 0),
    end: undefined,
  };
}

/** Whether it may have caused its worker's death: it was claimed late, and no step started after the claim. */
export function bearsBlame({ claimedAt, steps }: StoredExecution, blameFrom: number): boolean {
  return claimedAt >= blameFrom && !steps.some(({ startedAt }) => startedAt > claimedAt);
}

/** The fence: only the worker that holds an execution under its current epoch may write to it. */
export function isHeldBy(stored: StoredExecution, worker: string, epoch: number): boolean {
  return stored.worker === worker && stored.epoch === epoch && stored.end === undefined;
}

/** Whether an earlier call stored the whole entry, which is refused now. */
export function isRepeated(stored: StoredExecution, { epoch, steps, release, end }: CommitEntry): boolean {
  if (stored.epoch !== epoch) return false;
  if (end) return stored.end !== undefined && equalJson(stored.end as unknown as Json, end as unknown as Json);
  if (release) {
    const { worker, status, dueAt } = stored;
    if (worker !== undefined || dueAt === undefined || status !== release.status) return false;
    return isDueAsReleased(dueAt, release, dueFactsOf(stored));
  }
  const last = steps.at(-1);
  const at = last ? findStep(stored, last.key) : -1;
  return at >= 0 && equalJson(stored.steps[at] as unknown as Json, last as unknown as Json);
}

/** What can make it due before the instant of its release. */
export function dueFactsOf(stored: StoredExecution): DueFacts {
  const { cancelRequestedAt, signalledAt } = stored;
  return { cancelRequestedAt, signals: countSignals(stored), signalledAt };
}

export function countSignals({ signals }: StoredExecution): number {
  return signals === undefined ? 0 : signals.length;
}

/** Adds a step, or replaces an earlier attempt with the same key. A final record never changes. */
export function putStep(stored: StoredExecution, step: StepRecord): void {
  const { steps } = stored;
  stored.bytes += STEP_BYTES + memoryBytes(step.output);
  if (step.error) stored.bytes += memoryBytes(step.error as unknown as Json);
  const at = findStep(stored, step.key);
  if (at < 0) {
    stored.indexByKey?.set(step.key, steps.length);
    steps.push(step);
    if (step.note) stored.decisions += 1;
    return;
  }
  const { retryAt, attempts } = steps[at] as StepRecord;
  if (retryAt !== undefined && attempts <= step.attempts) steps[at] = step;
}

/** @returns the index in `steps` of a key; -1 when it is not stored */
export function findStep(stored: StoredExecution, key: string): number {
  const { steps } = stored;
  // A read of an ended execution creates no map, because the map would stay in memory.
  if (steps.length > MAX_SEARCHED_STEPS && stored.end === undefined) {
    stored.indexByKey ??= new Map(steps.map((step, at) => [step.key, at]));
    return stored.indexByKey.get(key) ?? -1;
  }
  for (let at = steps.length - 1; at >= 0; at--) if (steps[at]?.key === key) return at;
  return -1;
}

/** The records of agent runs, without decisions. */
export function runsOf({ steps, decisions }: StoredExecution): readonly StepRecord[] {
  return decisions > 0 ? steps.filter(({ note }) => !note) : steps;
}

/** How many agent runs are finished, so that no further attempt follows. */
export function countRuns(stored: StoredExecution): number {
  let count = 0;
  for (const run of runsOf(stored)) if (run.retryAt === undefined) count += 1;
  return count;
}
