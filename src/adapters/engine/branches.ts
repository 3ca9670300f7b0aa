/** How many branches of a run are at work, and until when the others sleep. */

import type { Clock } from '../../engine/ports/clock.ts';

export class Branches {
  readonly #clock: Clock;
  readonly #onIdle: (earliest: number) => void;
  readonly #sleepers = new Set<{ readonly instant: number }>();
  #working = 1;

  /** @param onIdle - called when none is at work any more, with the earliest instant (Unix ms) at which one goes on */
  constructor(clock: Clock, onIdle: (earliest: number) => void) {
    this.#clock = clock;
    this.#onIdle = onIdle;
  }

  change(by: number): void {
    this.#working += by;
    if (by >= 0 || this.#working > 0 || this.#sleepers.size === 0) return;
    let earliest = Number.POSITIVE_INFINITY;
    for (const { instant } of this.#sleepers) if (instant < earliest) earliest = instant;
    this.#onIdle(earliest);
  }

  /** @throws the signal's reason when it aborts first */
  async sleepUntil(instant: number, signal: AbortSignal): Promise<void> {
    const goesOn = this.idle(instant);
    try {
      await this.#clock.sleep(instant - this.#clock.now(), signal);
    } finally {
      goesOn();
    }
  }

  /** A branch waits until an instant, or without end. @returns tells that it goes on */
  idle(instant: number): () => void {
    const sleeper = { instant };
    this.#sleepers.add(sleeper);
    this.change(-1);
    return () => {
      if (this.#sleepers.delete(sleeper)) this.#working += 1;
    };
  }
}
