/**
 * The order in which the items of a `foreach`, or the branches of a `parallel`, begin.
 *
 * In a resumed run, the items that began before come first. No other item begins until each of them is replayed to its last stored
 * record: a stored failure, or a stored end of the block, must be known before that.
 */

import { type IndexRange, IndexRanges } from '../../base/index-ranges.ts';
import type { Run } from '../run.ts';
import type { RunScope } from '../run-scope.ts';

export class ItemQueue {
  readonly #run: Run;
  /** How many items there are, without those that are over. */
  readonly #count: number;
  readonly #over: IndexRanges;
  /** Indexes of the items that began before the resume, in order. */
  readonly #begun: readonly number[];
  readonly #isBegun: ReadonlySet<number>;
  #taken = 0;
  #fresh = 0;
  /** How many items are still being replayed. */
  #replaying: number;
  #waiting: (() => void)[] = [];
  #isClosed = false;

  /** @param key - of the block @param over - items that are over, and are not replayed */
  constructor(run: Run, key: string, count: number, concurrency: number, over: readonly IndexRange[] = []) {
    this.#run = run;
    this.#over = new IndexRanges(over);
    this.#count = count - this.#over.size;
    this.#begun = begunBefore(run, key, count, concurrency, this.#over);
    this.#isBegun = new Set(this.#begun);
    this.#replaying = this.#begun.length;
    run.replaying += this.#replaying;
  }

  /** How many items began before the resume. */
  get begun(): number {
    return this.#begun.length;
  }

  get isEmpty(): boolean {
    return this.#taken >= this.#count;
  }

  /** Whether the next item began before the resume. */
  get hasBegun(): boolean {
    return this.#taken < this.#begun.length;
  }

  /** Whether items are still being replayed. */
  get isReplaying(): boolean {
    return this.#replaying > 0;
  }

  /** Whether the next item has to wait for items that are being replayed. */
  get mustWait(): boolean {
    return this.#taken >= this.#begun.length && this.#replaying > 0;
  }

  wait(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  take(): number {
    const index = this.#taken < this.#begun.length ? (this.#begun[this.#taken] as number) : this.#nextFresh();
    this.#taken += 1;
    return index;
  }

  /** Follows the replay of an item that begins. @returns a function to call when the item is done */
  follow(index: number, item: RunScope): () => void {
    if (!this.#isBegun.has(index)) return NOTHING;
    let isReplaying = true;
    const replayed = () => {
      if (!isReplaying || this.#isClosed) return;
      isReplaying = false;
      this.#markReplayed(1);
    };
    item.onReplayEnd = replayed;
    return replayed;
  }

  /** The block is over: some items that began before the resume may not have begun again. */
  close(): void {
    this.#isClosed = true;
    if (this.#replaying > 0) this.#markReplayed(this.#replaying);
  }

  #markReplayed(count: number): void {
    this.#replaying -= count;
    if (this.#replaying === 0) for (const resume of this.#waiting.splice(0)) resume();
    this.#run.markReplayed(count);
  }

  #nextFresh(): number {
    let index = this.#over.next(this.#fresh);
    while (this.#isBegun.has(index)) index = this.#over.next(index + 1);
    this.#fresh = index + 1;
    return index;
  }
}

/** In a resumed run: the items of which something is stored, and the items that began with the block. */
function begunBefore(
  { isReplaying, journal }: Run,
  key: string,
  count: number,
  concurrency: number,
  over: IndexRanges,
): readonly number[] {
  const stored = journal.replayedParts(key);
  if (!isReplaying && stored.size === 0) return NONE;
  const first = [...Array(Math.min(count, concurrency)).keys()];
  const begun = new Set([...first, ...stored]);
  return [...begun].filter((index) => index < count && !over.has(index)).sort((a, b) => a - b);
}

const NONE: readonly number[] = [];
const NOTHING = () => {};
