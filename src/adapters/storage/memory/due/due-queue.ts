/**
 * The free executions of the memory storage by when they are due: one heap for each ensemble and version. Sorted arrays would be
 * simpler, and claim 100,000 executions ten times slower.
 */

import { groupOf } from '../../../../engine/execution/limits/flow-limit.ts';
import { freeAt, freeOf, type HeldLimit, type HeldLimits, Turns } from '../limits.ts';
import type { Slot } from '../slots.ts';
import { type Due, insert, isBefore, removeFirst } from './heap.ts';

/** The free executions of one ensemble and version. Those of a caller with slots, and those under the same limits, have a lane of their own. */
interface Lane {
  readonly version: string;
  readonly slot: Slot | undefined;
  limits: HeldLimits | undefined;
  /** An entry counts as long as the execution is still due at its instant. */
  heap: Due[];
  /** At this length, the heap is freed of entries that count no more. */
  full: number;
}

export interface DueQueue {
  add(
    execution: { readonly ensemble: string; readonly version: string; readonly id: string },
    dueAt: number,
    slot?: Slot,
    limits?: HeldLimits,
  ): void;
  /** Whether an execution of a queue is due. */
  isWaitedFor(queue: string, now: number): boolean;
  /** Nothing is left in a lane that waits for a slot. */
  forget(lane: string): void;
  /** Slots of limits are free again. */
  freed(limits: readonly HeldLimit[]): void;
  /**
   * Removes executions that are due. Lanes take turns; in each lane, the execution that is due longest comes first.
   * @param claim - called at once for each execution; after that, it must not be due any more
   */
  take<T>(
    query: { readonly now: number; readonly limit: number; readonly excludeVersions: readonly string[] },
    claim: (id: string) => T,
  ): T[];
  /** @returns when the next execution is due; undefined when there is none */
  next(excludeVersions: readonly string[]): number | undefined;
  /** Whether executions wait for a free slot of their caller, or of a limit. */
  waitsForSlot(): boolean;
}

const MIN_FULL = 1000;

/**
 * @param isDue - whether an execution is still free, in a queue, and due at exactly this instant
 * @param isFree - whether a caller has a free slot
 */
export function createDueQueue(
  isDue: (id: string, dueAt: number, queue: string | undefined) => boolean,
  isFree: (slot: Slot) => boolean,
): DueQueue {
  const lanes = new Map<string, Lane>();
  /** The keys of the lanes that wait for no slot of a limit. */
  const turns = new Turns();
  /** The keys of the lanes of each queue. */
  const lanesOf = new Map<string, Set<string>>();
  /** How many entries were added so far. */
  let added = 0;
  /** Rates for which lanes wait. */
  const rates = new Set<HeldLimit>();
  /** Unix ms of the last call that had it. */
  let lastNow = 0;

  /** Unix ms from which on it has free slots, as far as it is known. */
  const openAt = ({ slot, limits }: Lane) => {
    if (slot !== undefined && !isFree(slot)) return Number.POSITIVE_INFINITY;
    return limits === undefined ? 0 : Math.max(...limits.all.map(freeAt));
  };
  const isOpen = (lane: Lane, excludeVersions: readonly string[]) =>
    openAt(lane) < Number.POSITIVE_INFINITY && !excludeVersions.includes(lane.version);

  const earliest = ({ heap, limits }: Lane): Due | undefined => {
    for (let first = heap[0]; first; first = heap[0]) {
      if (isDue(first.id, first.dueAt, limits?.queue)) return first;
      removeFirst(heap);
    }
    return undefined;
  };

  // An entry that counts no more leaves the heap when it is the first. It never is while an execution waits without end.
  const compact = (lane: Lane) => {
    const due = new Map(
      lane.heap.filter((entry) => isDue(entry.id, entry.dueAt, lane.limits?.queue)).map((entry) => [entry.id, entry]),
    );
    lane.heap = [...due.values()].sort((a, b) => (isBefore(a, b) ? -1 : 1));
    lane.full = Math.max(MIN_FULL, 2 * lane.heap.length);
  };

  const forget = (key: string) => {
    const limits = lanes.get(key)?.limits;
    lanes.delete(key);
    if (!limits) return;
    const same = lanesOf.get(limits.queue);
    same?.delete(key);
    if (same?.size === 0) lanesOf.delete(limits.queue);
  };

  /** What has one turn: a lane, or the group of a lane. */
  const unitOf = (key: string) => {
    const { limits } = lanes.get(key) as Lane;
    return (limits && groupOf(limits.queue)) ?? key;
  };
  const pushTurn = (key: string) => turns.push(key, unitOf(key));
  /** While a limit has free slots, the lanes that wait for one get a turn, one after the other. */
  const freed = (all: Iterable<HeldLimit>) => {
    for (const limit of all) {
      const key = freeAt(limit) <= lastNow ? limit.parked.shift() : undefined;
      if (key === undefined) continue;
      pushTurn(key);
      if (limit.parked.size === 0) rates.delete(limit);
    }
  };
  const park = (limit: HeldLimit, key: string) => {
    limit.parked.push(key, unitOf(key));
    if (limit.rate) rates.add(limit);
  };

  return {
    add({ ensemble, version, id }, dueAt, slot, limits) {
      const ofCaller = slot ? `\n${slot.slots} ${slot.account}` : '';
      const key = `${ensemble}\n${version}${ofCaller}${limits ? `\n\n${limits.queue}` : ''}`;
      let lane = lanes.get(key);
      if (!lane) {
        lane = { version, slot, limits, heap: [], full: MIN_FULL };
        lanes.set(key, lane);
        pushTurn(key);
        if (limits) lanesOf.set(limits.queue, (lanesOf.get(limits.queue) ?? new Set()).add(key));
      }
      // Those that it knows may be over, when all under them have ended.
      lane.limits = limits;
      if (lane.heap.length >= lane.full) compact(lane);
      added += 1;
      insert(lane.heap, { id, dueAt, nr: added });
      if (limits) freed(limits.all);
    },
    isWaitedFor(queue, now) {
      lastNow = now;
      for (const key of lanesOf.get(queue) ?? []) {
        const first = earliest(lanes.get(key) as Lane);
        if (first && first.dueAt <= now) return true;
      }
      return false;
    },
    forget,
    freed,
    take<T>({ now, limit, excludeVersions }: Parameters<DueQueue['take']>[0], claim: (id: string) => T) {
      const taken: T[] = [];
      lastNow = now;
      for (const limit of [...rates]) for (let free = freeOf(limit, now); free > 0; free--) freed([limit]);
      // Stops after a round in which no lane had an execution to take.
      for (let idle = 0; taken.length < limit && idle < turns.size; ) {
        const key = turns.shift() as string;
        const lane = lanes.get(key) as Lane;
        const { limits } = lane;
        const first = earliest(lane);
        const full = first && limits?.all.find((limit) => freeAt(limit) > now);
        if (!first) forget(key);
        else if (full) park(full, key);
        else pushTurn(key);
        if (first && !full) {
          if (first.dueAt > now || !isOpen(lane, excludeVersions)) idle += 1;
          else {
            removeFirst(lane.heap);
            taken.push(claim(first.id));
            idle = 0;
          }
        }
        // The slot that it was woken for, or another one, may be free for the next lane.
        if (limits) freed(limits.all);
      }
      return taken;
    },
    next(excludeVersions) {
      let next: number | undefined;
      for (const lane of lanes.values()) {
        const first = isOpen(lane, excludeVersions) ? earliest(lane) : undefined;
        if (first) next = Math.min(next ?? Number.POSITIVE_INFINITY, Math.max(first.dueAt, openAt(lane)));
      }
      return next;
    },
    waitsForSlot: () =>
      [...lanes.values()].some((lane) => openAt(lane) === Number.POSITIVE_INFINITY && earliest(lane) !== undefined),
  };
}
