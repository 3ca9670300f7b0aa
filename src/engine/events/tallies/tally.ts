/** Counts of the ends of an ensemble in a minute, an hour or a day. */

import { FAILED_STATUSES, type FinalStatus } from '../../execution/execution.ts';
import { type EndGroup, MINUTE } from './end-line.ts';
import { addCounts, type Histogram } from './histogram.ts';

/** In ms. */
export const HOUR = 3_600_000;
export const DAY = 86_400_000;
/**
 * For how long before now there are tallies of minutes, and of hours. Older ones are added to those of hours, and of days. Those of the
 * last hour are there also for a caller whose clock is late.
 */
export const MINUTES_FOR = HOUR + 5 * MINUTE;
export const HOURS_FOR = 14 * DAY;
/** Tallies of days are deleted after this time. */
export const DAYS_FOR = 400 * DAY;

/** How tallies grow older: those of a length that begin before an instant (Unix ms) are added to those of the next one. */
export function agesAt(
  now: number,
): readonly { readonly length: number; readonly next: number; readonly before: number }[] {
  const age = (length: number, next: number, keep: number) => ({ length, next, before: startOf(now - keep, next) });
  return [age(MINUTE, HOUR, MINUTES_FOR), age(HOUR, DAY, HOURS_FOR)];
}

/** The begin of the period that an instant is in. */
function startOf(at: number, length: number): number {
  return Math.floor(at / length) * length;
}

/** An error that executions ended with. Messages that differ in numbers, ids and texts in quotes are one. */
export interface Fault {
  readonly code: string;
  readonly message: string;
  readonly count: number;
  /** How many of them other executions had started. */
  readonly children: number;
  /** Unix ms. */
  readonly firstAt: number;
  readonly lastAt: number;
  /** Of the first one. */
  readonly firstId: string;
  readonly version: string;
  readonly lastId: string;
}

export interface Tally {
  readonly ensemble: string;
  readonly counts: Readonly<Partial<Record<FinalStatus, number>>>;
  readonly durations: Histogram;
  readonly waits: Histogram;
  /** By code and message. */
  readonly faults: Readonly<Record<string, Fault>>;
  /** By the hash of a definition: how many ended, and how many of them failed or timed out. */
  readonly versions: Readonly<Record<string, readonly [ended: number, failed: number]>>;
  /** The last one that completed. */
  readonly completed?: { readonly id: string; readonly at: number } | undefined;
}

/** A tally of a stored period. */
export interface StoredTally {
  /** Unix ms, its begin. */
  readonly at: number;
  /** In ms: that of a minute, an hour or a day. */
  readonly length: number;
  readonly tally: Tally;
}

/** How many kinds of errors are counted apart. */
const MAX_FAULTS = 200;
const OTHER = '‹other›';

function faultKey({ code, message }: Pick<Fault, 'code' | 'message'>): string {
  return `${code} ${message}`;
}

/** An instant (Unix ms), and what is counted in its period. */
export type DatedTally = Pick<StoredTally, 'at' | 'tally'>;

export function talliesOf(ends: readonly EndGroup[]): readonly DatedTally[] {
  return ends.map((group) => ({ at: group.firstAt, tally: tallyOf(group) }));
}

function tallyOf(ends: EndGroup): Tally {
  const { ensemble, version, status, duration, wait, count, lastAt, lastId, code = 'UNKNOWN', message = '' } = ends;
  const hasFailed = FAILED_STATUSES.includes(status);
  const { firstAt, firstId, isChild } = ends;
  const fault: Fault = {
    ...{ code, message, count, children: isChild ? count : 0, version },
    ...{ firstAt, lastAt, firstId, lastId },
  };
  return {
    ...{ ensemble, counts: { [status]: count }, durations: { [duration]: count }, waits: { [wait]: count } },
    faults: hasFailed ? { [faultKey(fault)]: fault } : {},
    versions: { [version]: [count, hasFailed ? count : 0] },
    ...(status === 'completed' && { completed: { id: lastId, at: lastAt } }),
  };
}

/** @param all - of one ensemble, at least one */
export function addTallies(all: readonly Tally[]): Tally {
  const [first] = all;
  if (all.length === 1 && first) return first;
  const counts: Partial<Record<FinalStatus, number>> = {};
  const [durations, waits]: Record<string, number>[] = [{}, {}] as const;
  const faults = new Map<string, Fault>();
  const versions: Record<string, [number, number]> = {};
  let completed: Tally['completed'];
  for (const tally of all) {
    addCounts(counts as Record<string, number>, tally.counts as Histogram);
    addCounts(durations as Record<string, number>, tally.durations);
    addCounts(waits as Record<string, number>, tally.waits);
    for (const fault of Object.values(tally.faults)) addFault(faults, fault);
    for (const [version, [ended, failed]] of Object.entries(tally.versions)) {
      const [e, f] = versions[version] ?? [0, 0];
      versions[version] = [e + ended, f + failed];
    }
    if (tally.completed && tally.completed.at >= (completed?.at ?? 0)) completed = tally.completed;
  }
  return {
    ...{ ensemble: first?.ensemble ?? '', counts, durations: durations as Histogram, waits: waits as Histogram },
    ...{ faults: Object.fromEntries(faults), versions },
    ...(completed && { completed }),
  };
}

function addFault(faults: Map<string, Fault>, fault: Fault): void {
  const own = faultKey(fault);
  const isOther = !faults.has(own) && faults.size >= MAX_FAULTS;
  const one = isOther ? { ...fault, message: OTHER } : fault;
  const key = faultKey(one);
  const known = faults.get(key);
  if (!known) return void faults.set(key, one);
  const [first, last] = [one.firstAt < known.firstAt ? one : known, one.lastAt >= known.lastAt ? one : known];
  faults.set(key, {
    ...{
      code: one.code,
      message: one.message,
      count: known.count + one.count,
      children: known.children + one.children,
    },
    ...{ firstAt: first.firstAt, firstId: first.firstId, version: first.version },
    ...{ lastAt: last.lastAt, lastId: last.lastId },
  });
}

/** Adds up ends, or tallies, that have one key. */
export function addByKey(all: Iterable<readonly [key: string, tally: Tally]>): Map<string, Tally> {
  const grouped = new Map<string, Tally[]>();
  for (const [key, tally] of all) {
    const same = grouped.get(key);
    if (same) same.push(tally);
    else grouped.set(key, [tally]);
  }
  return new Map([...grouped].map(([key, tallies]) => [key, addTallies(tallies)]));
}

/** Adds up what is in the same period of a length and of the same ensemble. */
export function addByPeriod(length: number, added: readonly DatedTally[]): readonly StoredTally[] {
  const starts = new Map<string, number>();
  const keyed = added.map(({ at, tally }) => {
    const start = startOf(at, length);
    const key = `${start} ${tally.ensemble}`;
    starts.set(key, start);
    return [key, tally] as const;
  });
  return [...addByKey(keyed)].map(([key, tally]) => ({ at: starts.get(key) as number, length, tally }));
}
