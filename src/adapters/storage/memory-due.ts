/** What is free in a memory storage, by the instant from which it can be claimed: one heap for each ensemble and version. */

/** A place in a heap; it counts while its execution is still due at that instant. */
interface Due {
  readonly id: string;
  readonly dueAt: number;
}

interface Lane {
  readonly version: string;
  /** The earliest first; children of `i` at `2i + 1` and `2i + 2`. */
  readonly heap: Due[];
}

export interface DueQueue {
  add(execution: { readonly ensemble: string; readonly version: string; readonly id: string }, dueAt: number): void;
  /**
   * Takes out what is due: of each ensemble the longest waiting first, ensembles taking turns.
   * @param claim - called for each at once; it is due no more behind that
   */
  take<T>(
    query: { readonly now: number; readonly limit: number; readonly except: readonly string[] },
    claim: (id: string) => T,
  ): T[];
  next(except: readonly string[]): number | undefined;
}

/** @param isDue - whether an execution is still free and due at exactly that instant */
export function createDueQueue(isDue: (id: string, dueAt: number) => boolean): DueQueue {
  const lanes = new Map<string, Lane>();
  /** Whose turn it is, the next one first. */
  const turns: string[] = [];

  const earliest = ({ heap }: Lane): Due | undefined => {
    for (let first = heap[0]; first; first = heap[0]) {
      if (isDue(first.id, first.dueAt)) return first;
      takeFirst(heap);
    }
    return undefined;
  };

  return {
    add({ ensemble, version, id }, dueAt) {
      const key = `${ensemble}\n${version}`;
      let lane = lanes.get(key);
      if (!lane) {
        lane = { version, heap: [] };
        lanes.set(key, lane);
        turns.push(key);
      }
      put(lane.heap, { id, dueAt });
    },
    take<T>({ now, limit, except }: Parameters<DueQueue['take']>[0], claim: (id: string) => T) {
      const taken: T[] = [];
      for (let idle = 0; taken.length < limit && idle < turns.length; ) {
        const key = turns.shift() as string;
        const lane = lanes.get(key) as Lane;
        const first = earliest(lane);
        if (!first) {
          lanes.delete(key);
          continue;
        }
        turns.push(key);
        if (first.dueAt > now || except.includes(lane.version)) {
          idle += 1;
          continue;
        }
        takeFirst(lane.heap);
        taken.push(claim(first.id));
        idle = 0;
      }
      return taken;
    },
    next(except) {
      let next: number | undefined;
      for (const lane of lanes.values()) {
        const first = except.includes(lane.version) ? undefined : earliest(lane);
        if (first && (next === undefined || first.dueAt < next)) next = first.dueAt;
      }
      return next;
    },
  };
}

function put(heap: Due[], due: Due): void {
  let at = heap.length;
  heap.push(due);
  while (at > 0) {
    const parent = (at - 1) >> 1;
    const above = heap[parent] as Due;
    if (above.dueAt <= due.dueAt) break;
    heap[at] = above;
    at = parent;
  }
  heap[at] = due;
}

function takeFirst(heap: Due[]): void {
  const last = heap.pop();
  if (!last || heap.length === 0) return;
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && (heap[child + 1] as Due).dueAt < (heap[child] as Due).dueAt) child += 1;
    const below = heap[child] as Due;
    if (below.dueAt >= last.dueAt) break;
    heap[at] = below;
    at = child;
  }
  heap[at] = last;
}
