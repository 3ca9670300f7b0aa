/**
 * The order in which the items of a `foreach`, or the branches of a `parallel`, begin.
 *
 * In a run that is taken up again, those that were begun before come first, and no other begins until each of them has come as
 * far as it is stored: a failure, or the end of the block, that is among what is stored must be known by then.
 */

import type { Run } from './run.ts';
import type { RunScope } from './run-scope.ts';

export class ItemQueue {
  readonly #run: Run;
  readonly #count: number;
  /** Those that were begun before, in order. */
  readonly #begun: readonly number[];
  readonly #isBegun: ReadonlySet<number>;
  #taken = 0;
  #fresh = 0;
  /** Begun ones that have not yet come as far as they are stored. */
  #recalling: number;
  #waiting: (() => void)[] = [];
  #isClosed = false;

  constructor(run: Run, count: number, begun: readonly number[]) {
    this.#run = run;
    this.#count = count;
    this.#begun = begun;
    this.#isBegun = new Set(begun);
    this.#recalling = begun.length;
    run.recalling += begun.length;
  }

  get isEmpty(): boolean {
    return this.#taken >= this.#count;
  }

  /** Whether the next one was begun before. */
  get hasBegun(): boolean {
    return this.#taken < this.#begun.length;
  }

  /** Whether some that were begun before have not yet come as far as they are stored. */
  get isRecalling(): boolean {
    return this.#recalling > 0;
  }

  /** Whether the next one has to wait for those that are recalled. */
  get mustWait(): boolean {
    return this.#taken >= this.#begun.length && this.#recalling > 0;
  }

  wait(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  take(): number {
    const index = this.#taken < this.#begun.length ? (this.#begun[this.#taken] as number) : this.#nextFresh();
    this.#taken += 1;
    return index;
  }

  /** Follows an item that begins. @returns tells that it is done */
  follow(index: number, item: RunScope): () => void {
    if (!this.#isBegun.has(index)) return NOTHING;
    let isRecalling = true;
    const recalled = () => {
      if (!isRecalling || this.#isClosed) return;
      isRecalling = false;
      this.#recalled(1);
    };
    item.onLive = recalled;
    return recalled;
  }

  /** The block is over: of those that were begun before, some may not have come up again. */
  close(): void {
    this.#isClosed = true;
    if (this.#recalling > 0) this.#recalled(this.#recalling);
  }

  #recalled(count: number): void {
    this.#recalling -= count;
    if (this.#recalling === 0) for (const resume of this.#waiting.splice(0)) resume();
    this.#run.recalled(count);
  }

  #nextFresh(): number {
    while (this.#isBegun.has(this.#fresh)) this.#fresh += 1;
    return this.#fresh++;
  }
}

const NOTHING = () => {};
