/**
 * The stored progress of a schedule, and the rules that advance it. Pure, and the same in every process that serves the schedule.
 *
 * | tick | `overlap: skip` | `overlap: queue` |
 * |---|---|---|
 * | due while no execution of the schedule runs and no tick waits | waits, then starts | the same |
 * | due while the previous execution has not ended | is dropped | waits |
 * | missed: due while no process served the schedule | `catchUp` decides: the last missed tick waits, or none | the same |
 *
 * Ticks that wait start one by one, the oldest first. Each one starts after the execution of the previous one has ended.
 */

import { OrchestratorError } from '../base/errors.ts';
import type { JsonObject } from '../base/json/json.ts';
import type { Ticks } from '../base/time/cron.ts';

/** The rules of a schedule, from the ensemble's definition. */
export interface ScheduleRules {
  readonly overlap: 'skip' | 'queue';
  readonly catchUp: 'once' | 'skip';
}

/** All ticks after `after`, up to and including the tick `to`. Unix ms. */
export type TickRange = readonly [after: number, to: number];

/** The progress of a schedule. */
export interface ScheduleProgress {
  /** Every tick up to this instant (Unix ms) was started, was dropped, or waits. */
  readonly seen: number;
  /** The ticks that wait, the oldest first. */
  readonly waiting: readonly TickRange[];
  /** The tick that started last. */
  readonly started?: number | undefined;
  /** Its ticks are dropped, and those that wait do not start. */
  readonly paused?: boolean | undefined;
}

/** What a process knows when it checks which ticks are due. */
export interface TickContext extends ScheduleRules {
  readonly now: number;
  /** Unix ms from which a process has served the schedule. Ticks that were due until then were missed. */
  readonly aliveFrom: number;
  /** Whether the execution that started last has not ended. */
  readonly busy: boolean;
}

/** The result of {@link addDueTicks}. */
export interface AddedTicks {
  readonly progress: ScheduleProgress;
  /** The last of the missed ticks, and whether it waits now. */
  readonly missed?: { readonly last: number; readonly waits: boolean } | undefined;
  /** Whether due ticks were dropped because the previous execution has not ended. */
  readonly overlapped: boolean;
}

/** `catchUp: skip` still starts a tick that is at most this late, so that a restart at the full hour does not miss a tick. */
const LATE_MS = 60_000;

/** The progress of a schedule that no process has served before: it begins now. */
export function firstProgress(now: number): ScheduleProgress {
  return { seen: now, waiting: [] };
}

/** Adds the ticks that are due to the progress. @returns undefined if none is due */
export function addDueTicks(progress: ScheduleProgress, ticks: Ticks, context: TickContext): AddedTicks | undefined {
  const { seen, waiting, started } = progress;
  const { now, aliveFrom, overlap, catchUp } = context;
  const first = ticks.next(seen);
  if (first === undefined || first > now) return undefined;
  const second = ticks.next(first);
  const last = second === undefined || second > now ? first : (ticks.last(now) ?? first);
  const overlapped = overlap === 'skip' && (context.busy || waiting.length > 0);

  let missed: number | undefined;
  if (first <= aliveFrom) missed = last <= aliveFrom ? last : (ticks.last(aliveFrom) ?? first);
  const isKept = missed !== undefined && (catchUp === 'once' || now - missed <= LATE_MS);
  const after = missed === undefined ? seen : isKept ? missed - 1 : missed;
  const added: TickRange | undefined = last > after && !overlapped ? [after, last] : undefined;
  return {
    progress: { seen: last, waiting: added ? append(waiting, added) : waiting, started },
    missed:
      missed !== undefined && isReportedAsMissed(first, missed, now)
        ? { last: missed, waits: isKept && !overlapped }
        : undefined,
    overlapped,
  };
}

/** A single tick that is less than a minute late is not reported as missed. */
function isReportedAsMissed(first: number, missed: number, now: number): boolean {
  return first < missed || now - missed > LATE_MS;
}

/** The tick that starts next, and the progress after its start. */
export function takeTick(
  { seen, waiting, started }: ScheduleProgress,
  ticks: Ticks,
): { readonly tick?: number; readonly progress: ScheduleProgress } {
  const [range, ...others] = waiting;
  if (!range) return { progress: { seen, waiting, started } };
  const [after, to] = range;
  const tick = ticks.next(after);
  // Another process may have added the range with other time zone data.
  if (tick === undefined || tick > to) return takeTick({ seen, waiting: others, started }, ticks);
  return { tick, progress: { seen, waiting: tick < to ? [[tick, to], ...others] : others, started: tick } };
}

function append(waiting: readonly TickRange[], added: TickRange): readonly TickRange[] {
  const before = waiting.at(-1);
  if (!before || before[1] !== added[0]) return [...waiting, added];
  return [...waiting.slice(0, -1), [before[0], added[1]]];
}

/** @throws INTERNAL if the value is not a stored progress */
export function readProgress(value: JsonObject, name: string): ScheduleProgress {
  const { seen, waiting, started, paused } = value as Partial<Record<keyof ScheduleProgress, unknown>>;
  const isRange = (range: unknown) => Array.isArray(range) && range.length === 2 && range.every(Number.isSafeInteger);
  const isStarted = started === undefined || Number.isSafeInteger(started);
  if (
    Number.isSafeInteger(seen) &&
    Array.isArray(waiting) &&
    waiting.every(isRange) &&
    isStarted &&
    (paused === undefined || paused === true)
  ) {
    return value as unknown as ScheduleProgress;
  }
  const message = `schedule ${name}: what is stored of it can't be read; delete its row, and it begins anew`;
  throw new OrchestratorError('INTERNAL', message, { details: { schedule: name } });
}

/** The progress as it is stored. */
export function toStored({ seen, waiting, started, paused }: ScheduleProgress): JsonObject {
  return { seen, waiting, ...(started !== undefined && { started }), ...(paused && { paused }) };
}
