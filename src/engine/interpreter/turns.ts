/** Yields to the event loop: a flow that never waits would block everything else in the process. */

import { turnOf } from '../base/time/next-turn.ts';
import type { Clock } from '../host/clock.port.ts';

/** The longest time without yielding, ms. It is checked between steps. */
const MAX_MS = 10;
/** The maximum number of steps without yielding when the clock does not advance: in tests, and in a Cloudflare Worker until it waits. */
const MAX_STEPS = 1000;
/** The clock is read after this number of steps, and after each agent. */
const READ_CLOCK_EVERY = 16;

/** Shared by all runs of a process, because they share its event loop. */
export class Turns {
  /** The monotonic instant at the latest read of the clock. */
  now = 0;
  readonly #clock: Clock;
  readonly #real: Pick<Clock, 'monotonic'> | undefined;
  /** The instant of the real clock at the latest read. */
  #realNow = 0;
  /** Whether a callback at the end of the current turn is registered. */
  #isWatched = false;
  /** The monotonic instant of the first step of this turn. */
  #since = 0;
  /** Steps of this turn. */
  #steps = 0;

  /** @param real - measures how long a turn takes, where the clock of the runs does not advance by itself. Default: the clock */
  constructor(clock: Clock, real?: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
    this.#real = real;
  }

  /** Counts a step that begins. @returns whether it has to wait for the next turn */
  isDue(): boolean {
    if (!this.#isWatched) this.#watch();
    this.#steps += 1;
    if (this.#steps % READ_CLOCK_EVERY === 0) this.readClock();
    const took = this.#passed;
    return took >= MAX_MS || (took === 0 && this.#steps > MAX_STEPS);
  }

  /** Gives the event loop a turn, if this one has taken long. It counts no step: who reads records waits for a store in between. */
  async pause(): Promise<void> {
    if (!this.#isWatched) this.#watch();
    this.readClock();
    if (this.#passed >= MAX_MS) await this.next();
  }

  /** Call it after work that may have taken long. */
  readClock(): void {
    this.now = this.#clock.monotonic();
    if (this.#real) this.#realNow = this.#real.monotonic();
  }

  /** Resolves on the next turn. */
  next(): Promise<void> {
    return turnOf(this.#clock);
  }

  /** ms of this turn so far. */
  get #passed(): number {
    return (this.#real ? this.#realNow : this.now) - this.#since;
  }

  #watch(): void {
    this.#isWatched = true;
    this.readClock();
    this.#since = this.#real ? this.#realNow : this.now;
    this.#steps = 0;
    void this.next().then(() => {
      this.#isWatched = false;
    });
  }
}
