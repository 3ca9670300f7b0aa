/** A binary heap by an instant, the earliest first. The children of `i` are at `2i + 1` and `2i + 2`. */

export interface Due {
  readonly id: string;
  /** Unix ms. */
  readonly dueAt: number;
}

export function insert(heap: Due[], due: Due): void {
  let at = heap.length;
  heap.push(due);
  while (at > 0) {
    const parentAt = (at - 1) >> 1;
    const parent = heap[parentAt] as Due;
    if (parent.dueAt <= due.dueAt) break;
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
    if (childAt + 1 < heap.length && (heap[childAt + 1] as Due).dueAt < (heap[childAt] as Due).dueAt) childAt += 1;
    const child = heap[childAt] as Due;
    if (child.dueAt >= last.dueAt) break;
    heap[at] = child;
    at = childAt;
  }
  heap[at] = last;
}
