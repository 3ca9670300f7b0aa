/**
 * What is stored of a schedule, and the rules by which it moves on: pure, the same for every process that serves it.
 *
 * | a tick that is ... | `overlap: skip` | `overlap: queue` |
 * |---|---|---|
 * | due, while nothing of the schedule runs or waits | waits, then starts | the same |
 * | due, while the run before is not over | is dropped | waits |
 * | missed: due while nobody was there | as `catchUp` says: the last one of them, or none | the same |
 *
 * What waits starts one by one, the oldest first, each when the one before it is over.
 */

import type { Ticks } from '../cron.ts';
import { OrchestratorError } from '../errors.ts';
import type { JsonObject } from '../json.ts';

/** What an ensemble says about when it is to start. */
export interface ScheduleRules {
  readonly overlap: 'skip' | 'queue';
  readonly catchUp: 'once' | 'skip';
}

/** All ticks behind `after`, up to `to`, which is one. Unix ms. */
export type TickRange = readonly [after: number, to: number];

/** How far a schedule has come. */
export interface ScheduleProgress {
  /** Every tick up to this instant (Unix ms) was started or dropped, or waits. */
  readonly seen: number;
  /** What waits, the oldest first. */
  readonly waiting: readonly TickRange[];
  /** The tick that was started last. */
  readonly started?: number | undefined;
}

/** What a process knows when it looks. */
export interface Look extends ScheduleRules {
  readonly now: number;
  /** Somebody was there from then on: what was due by then was missed. */
  readonly aliveFrom: number;
  /** The run that was started last is not over. */
  readonly busy: boolean;
}

export interface Noted {
  readonly progress: ScheduleProgress;
  /** Ticks that nobody was there for: the last of them, and whether it waits now. */
  readonly missed?: { readonly last: number; readonly waits: boolean } | undefined;
  /** What was due was dropped, since the run before is not over. */
  readonly overlapped: boolean;
}

/** `catchUp: skip` leaves nothing out that is no later than this: whoever starts again at the full hour means to be in time. */
const LATE_MS = 60_000;

/** A schedule that nobody has served before: it begins now. */
export function firstProgress(now: number): ScheduleProgress {
  return { seen: now, waiting: [] };
}

/** Takes in what is due by now. @returns undefined when nothing is */
export function noteTicks(progress: ScheduleProgress, ticks: Ticks, look: Look): Noted | undefined {
  const { seen, waiting, started } = progress;
  const { now, aliveFrom, overlap, catchUp } = look;
  const first = ticks.next(seen);
  if (first === undefined || first > now) return undefined;
  const second = ticks.next(first);
  const last = second === undefined || second > now ? first : (ticks.last(now) ?? first);
  const overlapped = overlap === 'skip' && (look.busy || waiting.length > 0);

  let missed: number | undefined;
  if (first <= aliveFrom) missed = last <= aliveFrom ? last : (ticks.last(aliveFrom) ?? first);
  const isKept = missed !== undefined && (catchUp === 'once' || now - missed <= LATE_MS);
  const after = missed === undefined ? seen : isKept ? missed - 1 : missed;
  const added: TickRange | undefined = last > after && !overlapped ? [after, last] : undefined;
  return {
    progress: { seen: last, waiting: added ? append(waiting, added) : waiting, started },
    missed:
      missed !== undefined && isTold(first, missed, now) ? { last: missed, waits: isKept && !overlapped } : undefined,
    overlapped,
  };
}

/** One that is hardly late was not missed, to whoever reads of it. */
function isTold(first: number, missed: number, now: number): boolean {
  return first < missed || now - missed > LATE_MS;
}

/** The tick that is to start next, and how far the schedule has come when it has. */
export function takeTick(
  { seen, waiting, started }: ScheduleProgress,
  ticks: Ticks,
): { readonly tick?: number; readonly progress: ScheduleProgress } {
  const [range, ...others] = waiting;
  if (!range) return { progress: { seen, waiting, started } };
  const [after, to] = range;
  const tick = ticks.next(after);
  // Another process may have known the time zone better than this one does.
  if (tick === undefined || tick > to) return takeTick({ seen, waiting: others, started }, ticks);
  return { tick, progress: { seen, waiting: tick < to ? [[tick, to], ...others] : others, started: tick } };
}

function append(waiting: readonly TickRange[], added: TickRange): readonly TickRange[] {
  const before = waiting.at(-1);
  if (!before || before[1] !== added[0]) return [...waiting, added];
  return [...waiting.slice(0, -1), [before[0], added[1]]];
}

/** @throws INTERNAL when it is not what was stored */
export function readProgress(value: JsonObject, name: string): ScheduleProgress {
  const { seen, waiting, started } = value as Partial<Record<keyof ScheduleProgress, unknown>>;
  const isRange = (range: unknown) => Array.isArray(range) && range.length === 2 && range.every(Number.isSafeInteger);
  const isStarted = started === undefined || Number.isSafeInteger(started);
  if (Number.isSafeInteger(seen) && Array.isArray(waiting) && waiting.every(isRange) && isStarted) {
    return value as unknown as ScheduleProgress;
  }
  const message = `schedule ${name}: what is stored of it can't be read; delete its row, and it begins anew`;
  throw new OrchestratorError('INTERNAL', message, { details: { schedule: name } });
}

/** What is stored. */
export function toStored({ seen, waiting, started }: ScheduleProgress): JsonObject {
  return started === undefined ? { seen, waiting } : { seen, waiting, started };
}
