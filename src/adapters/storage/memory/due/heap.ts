/** A binary heap by an instant, the earliest first, and of equal instants the one that was added first. The children of `i` are at `2i + 1` and `2i + 2`. */

export interface Due {
  readonly id: string;
  /** Unix ms. */
  readonly dueAt: number;
  /** Of equal instants, the smaller number comes first. */
  readonly nr: number;
}

export function isBefore(a: Due, b: Due): boolean {
  return a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.nr < b.nr);
}

export function insert(heap: Due[], due: Due): void {
  let at = heap.length;
  heap.push(due);
  while (at > 0) {
    const parentAt = (at - 1) >> 1;
    const parent = heap[parentAt] as Due;
    if (!isBefore(due, parent)) break;
    heap[at] = parent;
    at = parentAt;
  }
  heap[at] = due;
}

export function removeFirst(heap: Due[]): void {
  const last = heap.pop();
  if (!last || heap.length === 0) return;
  let at = 0;
  for (;;) {
    let childAt = 2 * at + 1;
    if (childAt >= heap.length) break;
    if (childAt + 1 < heap.length && isBefore(heap[childAt + 1] as Due, heap[childAt] as Due)) childAt += 1;
    const child = heap[childAt] as Due;
    if (!isBefore(child, last)) break;
    heap[at] = child;
    at = childAt;
  }
  heap[at] = last;
}
