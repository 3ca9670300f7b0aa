/**
 * How many executions may still begin under a rate. In no span of its period begin more than its limit: counts of short intervals are
 * kept, and each is dropped when the period is over for all that it counted.
 */

export interface Rate {
  readonly max: number;
  /** ms. */
  readonly period: number;
  /** How many may begin at the same time; after that, they begin at equal intervals. Absent: `max`. */
  readonly burst?: number | undefined;
}

/** What was used of a rate. */
export interface RateUse {
  /** The number of an interval, and how many began in it; in order. */
  readonly counts: readonly (readonly [interval: number, count: number])[];
  /** Unix ms: the instant up to which the intervals between executions are used. */
  readonly until: number;
  /** Unix ms: what waits for the rate is looked at again then. */
  readonly wakesAt: number;
  /** Unix ms: nothing begins before that. Absent: that is over. */
  readonly closedUntil?: number | undefined;
}

export const UNUSED: RateUse = { counts: [], until: 0, wakesAt: 0 };

/** How many intervals a period has. A rate with no more executions counts the ms. */
const INTERVALS = 32;

const sizeOf = ({ max, period }: Rate) => (max <= INTERVALS ? 1 : Math.ceil(period / INTERVALS));
/** Unix ms from which on an interval does not count. */
const endOf = (rate: Rate, interval: number) => (interval + 1) * sizeOf(rate) - 1 + rate.period;
const counting = (rate: Rate, { counts }: RateUse, now: number) =>
  counts.filter(([interval]) => endOf(rate, interval) > now);

const isClosed = ({ closedUntil = 0 }: RateUse, now: number) => closedUntil > now;

/** Nothing begins before an instant (Unix ms). @returns undefined if that is so already */
export function closeRate(use: RateUse, until: number): RateUse | undefined {
  return isClosed(use, until - 1) ? undefined : { ...use, closedUntil: until };
}

/** Whether as many may begin as under a rate that was never used, and nobody looks at it again. @param now - Unix ms */
export function isUnused(rate: Rate, use: RateUse, now: number): boolean {
  return counting(rate, use, now).length === 0 && use.until <= now && use.wakesAt <= now && !isClosed(use, now);
}

/** How many may begin now. @param now - Unix ms */
export function freeOfRate(rate: Rate, use: RateUse, now: number): number {
  if (isClosed(use, now)) return 0;
  const used = counting(rate, use, now).reduce((sum, [, count]) => sum + count, 0);
  const left = rate.max - used;
  if (rate.burst === undefined) return left;
  const every = rate.period / rate.max;
  return Math.min(left, Math.floor(rate.burst - Math.max(use.until - now, 0) / every + 1e-9));
}

/** @param count - how many begin now */
export function useRate(rate: Rate, use: RateUse, count: number, now: number): RateUse {
  const interval = Math.floor(now / sizeOf(rate));
  const counts = counting(rate, use, now).filter(([one]) => one !== interval);
  const before = use.counts.find(([one]) => one === interval)?.[1] ?? 0;
  counts.push([interval, before + count]);
  const every = rate.period / rate.max;
  return { ...use, counts: counts.sort(([a], [b]) => a - b), until: Math.max(use.until, now) + count * every };
}

/** Unix ms at which one more may begin: `now` if it may begin at once. */
export function nextOfRate(rate: Rate, use: RateUse, now: number): number {
  let [left, at] = [rate.max, Math.max(now, use.closedUntil ?? 0)];
  const counts = counting(rate, use, now);
  for (const [, count] of counts) left -= count;
  for (const [interval, count] of counts) {
    if (left > 0) break;
    left += count;
    at = Math.max(at, endOf(rate, interval));
  }
  if (rate.burst === undefined) return at;
  const every = rate.period / rate.max;
  return Math.max(at, Math.ceil(use.until - (rate.burst - 1) * every));
}
