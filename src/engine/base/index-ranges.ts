/** A set of indexes that are mostly next to each other: the items of a list that are over. */

/** The first index and the one after the last. */
export type IndexRange = readonly [number, number];

export class IndexRanges {
  /** In order, with a gap between each two. */
  readonly #ranges: [number, number][];

  constructor(ranges: readonly IndexRange[] = []) {
    this.#ranges = ranges.map(([first, end]) => [first, end]);
  }

  /** How many indexes there are. */
  get size(): number {
    return this.#ranges.reduce((sum, [first, end]) => sum + end - first, 0);
  }

  get list(): readonly IndexRange[] {
    return this.#ranges.map(([first, end]) => [first, end]);
  }

  /** The first index from `index` on that is not in the set. */
  next(index: number): number {
    const range = this.#ranges[this.#find(index)];
    return range && index < range[1] ? range[1] : index;
  }

  has(index: number): boolean {
    return this.next(index) !== index;
  }

  /** @param index - one that is not in the set */
  add(index: number): void {
    const ranges = this.#ranges;
    const at = this.#find(index);
    const before = ranges[at];
    const after = ranges[at + 1];
    if (before?.[1] === index) {
      before[1] = index + 1;
      if (after?.[0] !== index + 1) return;
      before[1] = after[1];
      ranges.splice(at + 1, 1);
    } else if (after?.[0] === index + 1) after[0] = index;
    else ranges.splice(at + 1, 0, [index, index + 1]);
  }

  /** The last range that begins at `index` or before; -1 if there is none. Items end nearly in order, so it is near the end. */
  #find(index: number): number {
    let at = this.#ranges.length - 1;
    while (at >= 0 && (this.#ranges[at] as IndexRange)[0] > index) at--;
    return at;
  }
}
