/** Gives the event loop its turns: a flow that waits for nothing would keep all else in the process from running. */

import type { Clock } from '../ports/clock.ts';

/** Longest time without a turn, as far as the steps of a flow let it be; ms. */
const LONGEST_MS = 10;
/** Most steps without a turn where the clock stands still: a test's does, and a Worker's until it waits for something. */
const MOST_STEPS = 1000;
/** After so many steps the clock is looked at; each agent that has run looks at it too. */
const LOOK_EVERY = 16;

/** Shared by all runs of a process: they share its event loop. */
export class Turns {
  /** Monotonic; as of the latest look at the clock. */
  now = 0;
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

  /** A step begins. @returns whether it has to wait for the next turn */
  isDue(): boolean {
    if (!this.#isWatched) this.#watch();
    this.#steps += 1;
    if (this.#steps % LOOK_EVERY === 0) this.look();
    const took = this.now - this.#since;
    return took >= LONGEST_MS || (took === 0 && this.#steps > MOST_STEPS);
  }

  /** Looks at the clock: something may have taken long. */
  look(): void {
    this.now = this.#clock.monotonic();
  }

  /** Resolves on the next turn. Each that waits has one of its own: what belongs to a request must not wait for another one. */
  next(): Promise<void> {
    return this.#clock.turn ? this.#clock.turn() : this.#clock.sleep(0);
  }

  #watch(): void {
    this.#isWatched = true;
    this.look();
    this.#since = this.now;
    this.#steps = 0;
    void this.next().then(() => {
      this.#isWatched = false;
    });
  }
}
