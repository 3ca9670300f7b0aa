/** The numbers of executions in a span, from tallies. */

import type { FinalStatus } from '../../execution/execution.ts';
import { type EndGroup, MINUTE } from './end-line.ts';
import { type Percentiles, percentilesOf } from './histogram.ts';
import {
  addByKey,
  addTallies,
  DAY,
  type Fault,
  HOUR,
  HOURS_FOR,
  MINUTES_FOR,
  type StoredTally,
  type Tally,
  talliesOf,
} from './tally.ts';

export const BUCKETS: Readonly<Record<StatsBucket, number>> = { minute: MINUTE, hour: HOUR, day: DAY };
/** The length of the periods that `buckets` counts apart. */
export type StatsBucket = 'minute' | 'hour' | 'day';
export const STATS_BUCKETS = Object.keys(BUCKETS) as readonly StatsBucket[];

/** How many executions ended, and how. */
export type EndCounts = Readonly<Record<FinalStatus, number>>;

/** What both a whole and its parts have. */
export interface EndNumbers {
  readonly counts: EndCounts;
  /** ms from start to end, waits included, at most a tenth off. Absent if none ended. */
  readonly duration?: Percentiles;
  /** ms from acceptance to start, at most a tenth off. Absent if none ended. */
  readonly wait?: Percentiles;
}

/** The executions of an ensemble that ended. */
export interface EnsembleStats extends EndNumbers {
  readonly ensemble: string;
  /** By the hash of the definition, those with the most executions first. `failed` counts also those that timed out. */
  readonly versions: readonly { readonly version: string; readonly ended: number; readonly failed: number }[];
  /** The last one that completed. `at` in Unix ms. */
  readonly lastCompleted?: { readonly id: string; readonly at: number };
}

/** Executions of an ensemble that failed or timed out with the same error. Numbers, ids and texts in quotes of its message are folded. */
export interface ErrorGroup {
  readonly ensemble: string;
  readonly code: string;
  readonly message: string;
  readonly count: number;
  /** How many of them steps of other executions had started. */
  readonly children: number;
  /** Unix ms, in the span. */
  readonly firstSeen: number;
  readonly lastSeen: number;
  /** The ids of its first and its last execution in the span. */
  readonly firstId: string;
  readonly lastId: string;
  /** The hash of the definition of its first execution. */
  readonly version: string;
  /** How many are in each of the `buckets` of the whole. */
  readonly buckets: readonly number[];
}

export interface EndStats extends EndNumbers {
  readonly ensembles: readonly EnsembleStats[];
  /** The most frequent first. */
  readonly errors: readonly ErrorGroup[];
  /** Every period of the span, also those in which none ended. `at` in Unix ms. */
  readonly buckets: readonly ({ readonly at: number } & EndNumbers)[];
}

/** For how long before now periods of these lengths are counted. */
export const BUCKETS_FOR: Readonly<Record<StatsBucket, number>> = {
  minute: MINUTES_FOR,
  hour: HOURS_FOR,
  day: Number.POSITIVE_INFINITY,
};

const NO_ENDS: EndCounts = { completed: 0, failed: 0, timed_out: 0, cancelled: 0 };

function numbersOf(tally: Tally | undefined): EndNumbers {
  const [duration, wait] = [percentilesOf(tally?.durations ?? {}), percentilesOf(tally?.waits ?? {})];
  return { counts: { ...NO_ENDS, ...tally?.counts }, ...(duration && { duration }), ...(wait && { wait }) };
}

/** @param span - in Unix ms, in whole buckets */
export function statsOf(
  { tallies, ends }: { readonly tallies: readonly StoredTally[]; readonly ends: readonly EndGroup[] },
  { since, until, length }: { readonly since: number; readonly until: number; readonly length: number },
): EndStats {
  const placed = [...tallies, ...talliesOf(ends)].map(
    ({ at, tally }) => [Math.floor((at - since) / length), tally] as const,
  );
  const byEnsemble = addByKey(placed.map(([, tally]) => [tally.ensemble, tally]));
  const byBucket = addByKey(placed.map(([place, tally]) => [String(place), tally]));
  const size = Math.ceil((until - since) / length);
  const groups = new Map<string, number[]>();
  for (const [place, { ensemble, faults }] of placed) {
    for (const [key, { count }] of Object.entries(faults)) {
      const name = `${ensemble} ${key}`;
      const counts = groups.get(name) ?? new Array<number>(size).fill(0);
      counts[place] = (counts[place] ?? 0) + count;
      groups.set(name, counts);
    }
  }
  const groupOf = (ensemble: string, key: string, fault: Fault): ErrorGroup => {
    const { code, message, count, children, firstAt, lastAt, firstId, lastId, version } = fault;
    const buckets = groups.get(`${ensemble} ${key}`) ?? [];
    const about = { ensemble, code, message, count, children, firstSeen: firstAt, lastSeen: lastAt };
    return { ...about, firstId, lastId, version, buckets };
  };
  return {
    ...numbersOf(byEnsemble.size > 0 ? addTallies([...byEnsemble.values()]) : undefined),
    ensembles: [...byEnsemble.values()].map(ensembleStats).sort((a, b) => (a.ensemble < b.ensemble ? -1 : 1)),
    errors: [...byEnsemble.values()]
      .flatMap(({ ensemble, faults }) => Object.entries(faults).map(([key, fault]) => groupOf(ensemble, key, fault)))
      .sort((a, b) => b.count - a.count || b.lastSeen - a.lastSeen),
    buckets: Array.from({ length: size }, (_, place) => ({
      at: since + place * length,
      ...numbersOf(byBucket.get(String(place))),
    })),
  };
}

function ensembleStats(tally: Tally): EnsembleStats {
  const { ensemble, versions, completed } = tally;
  return {
    ensemble,
    ...numbersOf(tally),
    versions: Object.entries(versions)
      .map(([version, [ended, failed]]) => ({ version, ended, failed }))
      .sort((a, b) => b.ended - a.ended),
    ...(completed && { lastCompleted: completed }),
  };
}
