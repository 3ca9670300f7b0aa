/** Gives the event loop its turns: a flow that waits for nothing would keep all else in the process from running. */

import type { Clock } from '../ports/clock.ts';

/** Longest time without a turn, as far as the steps of a flow let it be; ms. */
const LONGEST_MS = 10;
/** Most steps without a turn, also where the clock stands still: a test's does, and a Worker's until it waits for something. */
const MOST_STEPS = 1000;

/** Shared by all runs of a process: they share its event loop. */
export class Turns {
  readonly #clock: Clock;
  /** Whether the turn at hand is watched: it has an end of its own, which begins the next. */
  #isWatched = false;
  /** The monotonic instant of the first step of this turn. */
  #since = 0;
  /** Steps of this turn. */
  #steps = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A step begins. @param now - monotonic @returns whether it has to wait for the next turn */
  isDue(now: number): boolean {
    if (!this.#isWatched) this.#watch(now);
    this.#steps += 1;
    return now - this.#since >= LONGEST_MS || this.#steps > MOST_STEPS;
  }

  /** Resolves on the next turn. Each that waits has one of its own: what belongs to a request must not wait for another one. */
  next(): Promise<void> {
    return this.#clock.turn ? this.#clock.turn() : this.#clock.sleep(0);
  }

  #watch(now: number): void {
    this.#isWatched = true;
    this.#since = now;
    this.#steps = 0;
    void this.next().then(() => {
      this.#isWatched = false;
    });
  }
}
