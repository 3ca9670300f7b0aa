/**
 * The free executions of the memory storage by when they are due: one heap for each ensemble and version. Sorted arrays would be
 * simpler, and claim 100,000 executions ten times slower.
 */

import { type Due, insert, removeFirst } from './heap.ts';
import type { Slot } from './slots.ts';

/** The free executions of one ensemble and version. Those of a caller with a limit have a lane of their own. */
interface Lane {
  readonly version: string;
  readonly slot: Slot | undefined;
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
  ): void;
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
  /** Whether executions wait for a free slot of their caller. */
  waitsForSlot(): boolean;
}

const MIN_FULL = 1000;

/**
 * @param isDue - whether an execution is still free and due at exactly this instant
 * @param isFree - whether a caller has a free slot
 */
export function createDueQueue(
  isDue: (id: string, dueAt: number) => boolean,
  isFree: (slot: Slot) => boolean,
): DueQueue {
  const lanes = new Map<string, Lane>();
  /** The keys of the lanes; the first has the next turn. */
  const turns: string[] = [];

  const hasSlot = ({ slot }: Lane) => slot === undefined || isFree(slot);
  const isOpen = (lane: Lane, excludeVersions: readonly string[]) =>
    hasSlot(lane) && !excludeVersions.includes(lane.version);

  const earliest = ({ heap }: Lane): Due | undefined => {
    for (let first = heap[0]; first; first = heap[0]) {
      if (isDue(first.id, first.dueAt)) return first;
      removeFirst(heap);
    }
    return undefined;
  };

  // An entry that counts no more leaves the heap when it is the first. It never is while an execution waits without end.
  const compact = (lane: Lane) => {
    const due = new Map(lane.heap.filter((entry) => isDue(entry.id, entry.dueAt)).map((entry) => [entry.id, entry]));
    lane.heap = [...due.values()].sort((a, b) => a.dueAt - b.dueAt);
    lane.full = Math.max(MIN_FULL, 2 * lane.heap.length);
  };

  return {
    add({ ensemble, version, id }, dueAt, slot) {
      const key = `${ensemble}\n${version}${slot ? `\n${slot.slots} ${slot.account}` : ''}`;
      let lane = lanes.get(key);
      if (!lane) {
        lane = { version, slot, heap: [], full: MIN_FULL };
        lanes.set(key, lane);
        turns.push(key);
      }
      if (lane.heap.length >= lane.full) compact(lane);
      insert(lane.heap, { id, dueAt });
    },
    take<T>({ now, limit, excludeVersions }: Parameters<DueQueue['take']>[0], claim: (id: string) => T) {
      const taken: T[] = [];
      // Stops after a round in which no lane had an execution to take.
      for (let idle = 0; taken.length < limit && idle < turns.length; ) {
        const key = turns.shift() as string;
        const lane = lanes.get(key) as Lane;
        const first = earliest(lane);
        if (!first) {
          lanes.delete(key);
          continue;
        }
        turns.push(key);
        if (first.dueAt > now || !isOpen(lane, excludeVersions)) {
          idle += 1;
          continue;
        }
        removeFirst(lane.heap);
        taken.push(claim(first.id));
        idle = 0;
      }
      return taken;
    },
    next(excludeVersions) {
      let next: number | undefined;
      for (const lane of lanes.values()) {
        const first = isOpen(lane, excludeVersions) ? earliest(lane) : undefined;
        if (first && (next === undefined || first.dueAt < next)) next = first.dueAt;
      }
      return next;
    },
    waitsForSlot: () => [...lanes.values()].some((lane) => !hasSlot(lane) && earliest(lane) !== undefined),
  };
}
