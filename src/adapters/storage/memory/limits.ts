/** The limits that executions in the memory storage run under: how many executions are held under each, or began under a rate. */

import {
  type FlowLimit,
  isFair,
  isListed,
  isQueueFull,
  type ListedExecution,
  limitId,
  queueAfterBegin,
  queueOf,
  tooMany,
} from '../../../engine/execution/limits/flow-limit.ts';
import {
  closeRate,
  freeOfRate,
  nextOfRate,
  type Rate,
  type RateUse,
  UNUSED,
  useRate,
} from '../../../engine/execution/limits/rate-window.ts';

/** A limit with one key. */
export interface HeldLimit {
  readonly id: string;
  readonly name: string;
  readonly key: string;
  max: number;
  rate: Rate | undefined;
  since: number;
  use: RateUse;
  /** How many executions under it are held. */
  held: number;
  /** How many executions under it have not ended. */
  open: number;
  /** The lanes that wait for a free slot of it. */
  readonly parked: Turns;
  /** The ids of the executions that have not ended, in the order of their starts, as far as they are listed. */
  readonly listed: Set<string>;
}

/** Lanes that take turns. Those of a group have one turn together. */
export class Turns {
  /** By a group, or by a lane without one: the lanes. The first one is next. */
  #units = new Map<string, string[]>();
  size = 0;

  push(lane: string, unit: string): void {
    const same = this.#units.get(unit);
    if (same) same.push(lane);
    else this.#units.set(unit, [lane]);
    this.size += 1;
  }

  shift(): string | undefined {
    const [unit, lanes] = this.#units.entries().next().value ?? [];
    const lane = lanes?.shift();
    if (unit === undefined || lane === undefined) return undefined;
    this.#units.delete(unit);
    if (lanes && lanes.length > 0) this.#units.set(unit, lanes);
    this.size -= 1;
    return lane;
  }

  /** @returns the lanes */
  clear(): readonly string[] {
    const lanes = [...this.#units.values()].flat();
    this.#units.clear();
    this.size = 0;
    return lanes;
  }
}

/** The limits of one execution. */
export interface HeldLimits {
  readonly queue: string;
  readonly all: readonly HeldLimit[];
}

/** What an execution was accepted with. */
export interface JoinedLimits {
  /** What it needs to begin. */
  readonly first: HeldLimits;
  /** What it needs to continue after that. Undefined: nothing. */
  readonly later: HeldLimits | undefined;
  /** What it keeps until its end. */
  readonly kept: readonly HeldLimit[];
}

export interface MemoryLimits {
  /** The limits of an execution that is accepted. A number that is newer than the known one replaces it. */
  join(id: string, limits: readonly FlowLimit[], now: number): JoinedLimits;
  /** Stores numbers for all keys of limits. @returns the limits that have changed */
  put(limits: readonly FlowLimit[]): readonly HeldLimit[];
  /** A limit with a free slot for a step, which counts until {@link exit}. Undefined: none is free. */
  enter(limit: FlowLimit, now: number): HeldLimit | undefined;
  /** The step of a limit has ended. */
  exit(limit: HeldLimit): void;
  /** Closes rates until an instant (Unix ms). */
  close(limits: readonly FlowLimit[], until: number): void;
  /** Whether each of the limits has a free slot at an instant (Unix ms), and no lane waits for one. */
  mayJoin(limits: readonly FlowLimit[], now: number): boolean;
  /** Whether one more execution, which does not begin, is one too many. */
  isFull(limits: readonly FlowLimit[], now: number): boolean;
  /** The ids of executions that are too many, now that one has joined. */
  tooMany(limits: readonly FlowLimit[], now: number): readonly string[];
  /** An execution has ended. @returns the lanes that wait for limits under which nothing is left */
  leave(id: string, limits: JoinedLimits): readonly string[];
}

/** Unix ms from which on an execution may take a slot, as far as it is known. */
export function freeAt({ held, max, rate, use }: HeldLimit): number {
  if (rate) return nextOfRate(rate, use, 0);
  return held < max ? 0 : Number.POSITIVE_INFINITY;
}

export function freeOf({ held, max, rate, use }: HeldLimit, now: number): number {
  return rate ? freeOfRate(rate, use, now) : max - held;
}

const MIN_SWEEP = 1000;

/** An execution takes slots, or gives them back. @param change - 1 or -1 */
export function takeSlots(limits: readonly HeldLimit[], change: number, now: number): void {
  for (const limit of limits) {
    if (!limit.rate) limit.held += change;
    else if (change > 0) limit.use = useRate(limit.rate, limit.use, 1, now);
  }
}

/** @param describe - undefined for an execution that is cancelled, or is in no queue any more */
export function memoryLimits(describe: (id: string) => ListedExecution | undefined): MemoryLimits {
  const known = new Map<string, HeldLimit>();
  /** The newest number for all keys of a limit, by its name. */
  const named = new Map<string, FlowLimit>();
  /** At this number, rates are forgotten of which nothing is used any more. */
  let sweepAt = MIN_SWEEP;
  const listedUnder = ({ listed }: HeldLimit) => [...listed].flatMap((id) => describe(id) ?? []);
  const newLimit = (given: FlowLimit): HeldLimit => {
    const { name, key } = given;
    const newest = named.get(name);
    const { max, since, period, burst } = newest && newest.since > given.since ? newest : given;
    return {
      ...{
        id: limitId(given),
        name,
        key,
        max,
        since,
        use: UNUSED,
        held: 0,
        open: 0,
        parked: new Turns(),
        listed: new Set(),
      },
      rate: period === undefined ? undefined : { max, period, burst },
    };
  };
  const renew = (limit: HeldLimit, given: FlowLimit) => {
    if (given.since <= limit.since) return;
    const { max, since, rate } = newLimit(given);
    Object.assign(limit, { max, since, rate });
  };
  /** The limit that is known, with the newest number. */
  const current = (given: FlowLimit): HeldLimit => {
    const limit = known.get(limitId(given)) ?? newLimit(given);
    renew(limit, given);
    known.set(limit.id, limit);
    return limit;
  };
  return {
    join(id, limits, now) {
      if (known.size > sweepAt) {
        for (const [at, limit] of known) if (limit.open === 0 && freeOf(limit, now) === limit.max) known.delete(at);
        sweepAt = Math.max(MIN_SWEEP, 2 * known.size);
      }
      const all = limits
        .filter((given) => !isFair(given))
        .map((given) => {
          const limit = current(given);
          limit.open += 1;
          if (isListed(given)) limit.listed.add(id);
          return { given, limit };
        });
      const of = (queue: string, some: typeof all): HeldLimits => ({ queue, all: some.map(({ limit }) => limit) });
      const later = queueAfterBegin(limits);
      const needed = all.filter(({ given }) => given.period === undefined && !given.hold);
      return {
        first: of(queueOf(limits), all),
        later: later === undefined ? undefined : of(later, needed),
        kept: all.flatMap(({ given, limit }) => (given.hold ? [limit] : [])),
      };
    },
    put(limits) {
      const newer = limits.filter(({ name, since }) => since > (named.get(name)?.since ?? Number.NEGATIVE_INFINITY));
      for (const limit of newer) named.set(limit.name, limit);
      return [...known.values()].filter((limit) => {
        const given = newer.find(({ name }) => name === limit.name);
        if (given) renew(limit, given);
        return given !== undefined;
      });
    },
    enter(given, now) {
      const limit = current(given);
      if (freeOf(limit, now) <= 0) return undefined;
      limit.held += 1;
      limit.open += 1;
      return limit;
    },
    exit(limit) {
      limit.held -= 1;
      limit.open -= 1;
      if (limit.open === 0) known.delete(limit.id);
    },
    close(limits, until) {
      for (const given of limits) {
        const limit = current(given);
        limit.use = closeRate(limit.use, until) ?? limit.use;
      }
    },
    mayJoin: (limits, now) =>
      limits.every((given) => {
        const limit = known.get(limitId(given));
        if (!limit) return true;
        const { max, rate } = given.since > limit.since ? newLimit(given) : limit;
        return freeOf({ ...limit, max, rate }, now) > 0 && limit.parked.size === 0;
      }),
    isFull: (limits, now) =>
      limits.some((given) => {
        const limit = known.get(limitId(given));
        return isQueueFull(given, freeOf(limit ?? newLimit(given), now), limit ? listedUnder(limit) : []);
      }),
    tooMany: (limits, now) =>
      limits.flatMap((given) => {
        const limit = given.over && known.get(limitId(given));
        return limit ? tooMany(given, freeOf(limit, now), listedUnder(limit)) : [];
      }),
    leave(id, { first }) {
      return first.all.flatMap((limit) => {
        limit.listed.delete(id);
        limit.open -= 1;
        if (limit.open > 0) return [];
        // A rate remembers what began.
        if (!limit.rate) known.delete(limit.id);
        return limit.parked.clear();
      });
    },
  };
}
