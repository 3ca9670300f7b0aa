/** One execution in a memory storage: who holds it, its records, and whether a write was stored before. */

import { equalJson, type Json } from '../../engine/json.ts';
import { heldBytes } from '../../engine/json-bytes.ts';
import type {
  CommitEntry,
  ExecutionEnd,
  NewDelivery,
  NewExecution,
  NewSignal,
  Release,
  StepRecord,
} from '../../engine/model/stored-execution.ts';

export interface Held {
  readonly execution: NewExecution;
  /** Counts the claims. */
  epoch: number;
  owner: string | undefined;
  /** What it is as long as it has not ended. */
  status: 'queued' | 'running' | 'waiting';
  /** Set while it is free. */
  dueAt: number | undefined;
  startedAt: number | undefined;
  recoveries: number;
  /** Unix ms of the last claim, or of the start. */
  claimedAt: number;
  blame: number;
  /** How many owners had joined when it was last blamed. */
  blamedAt: number;
  /** Unix ms at which it was asked to stop. */
  cancelRequestedAt: number | undefined;
  steps: StepRecord[];
  /** How many of the steps are notes. */
  notes: number;
  /** Place of each key in `steps`, once there are many. */
  places: Map<string, number> | undefined;
  deliveries: NewDelivery[] | undefined;
  /** In the order in which they came. */
  signals: NewSignal[] | undefined;
  /** Unix ms of the first signal since it was claimed. */
  signalledAt: number | undefined;
  /** The names of the signals that it waits for; undefined when it waits for any. */
  waitsFor: readonly string[] | undefined;
  /** Roughly what it takes in memory. */
  bytes: number;
  end: ExecutionEnd | undefined;
}

/** What an execution and a step take beside their values. */
const EXECUTION_BYTES = 1000;
const STEP_BYTES = 300;

/** Up to so many records, walking over them is quicker than a map. */
const SCANNED_STEPS = 16;

export function hold(execution: NewExecution, epoch: number): Held {
  return {
    execution,
    epoch,
    owner: undefined,
    status: 'running',
    dueAt: undefined,
    startedAt: undefined,
    recoveries: 0,
    claimedAt: execution.createdAt,
    blame: 0,
    blamedAt: 0,
    cancelRequestedAt: undefined,
    steps: [],
    notes: 0,
    places: undefined,
    deliveries: undefined,
    signals: undefined,
    signalledAt: undefined,
    waitsFor: undefined,
    bytes: EXECUTION_BYTES + heldBytes(execution.input),
    end: undefined,
  };
}

/** Whether it may be what its owner died of: it was claimed late, and nothing was stored of it since. */
export function bearsBlame({ claimedAt, steps }: Held, blameFrom: number): boolean {
  return claimedAt >= blameFrom && !steps.some(({ startedAt }) => startedAt > claimedAt);
}

export function holds(held: Held, owner: string, epoch: number): boolean {
  return held.owner === owner && held.epoch === epoch && held.end === undefined;
}

/** Whether all of an entry that is refused now was stored by an earlier call. */
export function isRepeated(held: Held, { epoch, steps, release, end }: CommitEntry): boolean {
  if (held.epoch !== epoch) return false;
  if (end) return held.end !== undefined && equalJson(held.end as unknown as Json, end as unknown as Json);
  if (release) return held.owner === undefined && held.status === release.status && isDueAs(held, release);
  const last = steps.at(-1);
  const at = last ? findStep(held, last.key) : -1;
  return at >= 0 && equalJson(held.steps[at] as unknown as Json, last as unknown as Json);
}

/**
 * When an execution that is given up can be claimed: one that was asked to stop waits for nothing, and one that was given a signal
 * of which its owner had not heard does not wait.
 */
export function dueAfter(held: Held, { status, dueAt, signals }: Release): number {
  const { cancelRequestedAt = dueAt, signalledAt = dueAt } = held;
  const isTold = status !== 'waiting' || countSignals(held) <= (signals ?? 0);
  return Math.min(dueAt, cancelRequestedAt, isTold ? dueAt : signalledAt);
}

/** Whether an execution is due as a release left it; a signal that came behind it made it due earlier. */
function isDueAs(held: Held, release: Release): boolean {
  const { dueAt = Number.POSITIVE_INFINITY } = held;
  const wasSignalled = release.status === 'waiting' && countSignals(held) > 0;
  return dueAt === dueAfter(held, release) || (wasSignalled && dueAt <= release.dueAt);
}

export function countSignals({ signals }: Held): number {
  return signals === undefined ? 0 : signals.length;
}

/** One that is there already stays: its entry was stored before. */
export function putDeliveries(held: Held, deliveries: readonly NewDelivery[]): void {
  const known = held.deliveries;
  if (!known) held.deliveries = [...deliveries];
  else known.push(...deliveries.filter(({ id }) => !known.some((one) => one.id === id)));
}

/** A record takes the place of an earlier attempt that announced another one; one that is final stays. */
export function putStep(held: Held, step: StepRecord): void {
  const { steps } = held;
  held.bytes += STEP_BYTES + heldBytes(step.output);
  const at = findStep(held, step.key);
  if (at < 0) {
    held.places?.set(step.key, steps.length);
    steps.push(step);
    if (step.note) held.notes += 1;
    return;
  }
  const { retryAt, attempts } = steps[at] as StepRecord;
  if (retryAt !== undefined && attempts <= step.attempts) steps[at] = step;
}

/** @returns its place in `steps`; -1 when there is none of that key */
export function findStep(held: Held, key: string): number {
  const { steps } = held;
  // Who reads what has ended makes no map of it, which would be kept.
  if (steps.length > SCANNED_STEPS && held.end === undefined) {
    held.places ??= new Map(steps.map((step, at) => [step.key, at]));
    return held.places.get(key) ?? -1;
  }
  for (let at = steps.length - 1; at >= 0; at--) if (steps[at]?.key === key) return at;
  return -1;
}

/** @param runs - without notes */
export function countRuns(runs: readonly StepRecord[]): number {
  let count = 0;
  for (const step of runs) if (step.retryAt === undefined) count += 1;
  return count;
}
