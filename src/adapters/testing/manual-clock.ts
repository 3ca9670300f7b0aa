/** A clock that stands still until a test moves it. */

import { nextTurn } from '../../engine/next-turn.ts';
import type { Clock } from '../../engine/ports/clock.ts';
import { sleepByTimer } from '../clock/sleep-by-timer.ts';

export interface ManualClockOptions {
  /** Wall time to begin at, Unix ms. Default 2026-01-01T00:00:00Z. */
  readonly now?: number;
}

export interface ManualClock extends Clock {
  turn(): Promise<void>;
  /**
   * Moves wall and monotonic time on by `ms`. Timers that fall due fire in the order of their instants, each at its own
   * instant, and what they set off runs before the next one fires.
   */
  advance(ms: number): Promise<void>;
  /** Moves on to the next timer and fires it. @returns false when there is none */
  advanceToNext(): Promise<boolean>;
  /** Moves wall time alone, either way, as a corrected clock does; timers and durations don't notice. */
  setNow(now: number): void;
  /** Milliseconds until the next timer; undefined when there is none. */
  readonly nextIn: number | undefined;
}

interface Timer {
  readonly due: number;
  readonly callback: () => void;
}

const DEFAULT_NOW = Date.UTC(2026, 0, 1);

/**
 * @example
 * ```ts
 * import { manualClock } from 'ensemble-orchestrator/testing';
 *
 * const clock = manualClock();
 * let rang = false;
 * clock.setTimer(60_000, () => { rang = true; });
 * await clock.advance(59_999);
 * console.log(rang); // false
 * await clock.advance(1);
 * console.log(rang); // true
 * ```
 */
export function manualClock(options: ManualClockOptions = {}): ManualClock {
  let wallOffset = options.now ?? DEFAULT_NOW;
  let elapsed = 0;
  // Sorted by due instant, and by age among equals.
  const timers: Timer[] = [];

  const setTimer: Clock['setTimer'] = (ms, callback) => {
    const timer = { due: elapsed + (Number.isFinite(ms) ? Math.max(0, ms) : 0), callback };
    let at = timers.length;
    while (at > 0 && (timers[at - 1] as Timer).due > timer.due) at -= 1;
    timers.splice(at, 0, timer);
    return () => {
      const index = timers.indexOf(timer);
      if (index >= 0) timers.splice(index, 1);
    };
  };

  let turning = 0;
  // A run that waits for nothing takes a turn after the other.
  const settle = async (): Promise<void> => {
    do await hostTurn();
    while (turning > 0);
  };

  const fireNext = async (): Promise<void> => {
    const timer = timers.shift() as Timer;
    elapsed = Math.max(elapsed, timer.due);
    timer.callback();
    await settle();
    // What was queued by then runs in the turn behind it.
    await settle();
  };

  return {
    now: () => wallOffset + elapsed,
    monotonic: () => elapsed,
    setTimer,
    sleep: sleepByTimer(setTimer),
    async turn() {
      turning += 1;
      await hostTurn();
      turning -= 1;
    },
    async advance(ms) {
      if (!Number.isFinite(ms) || ms < 0)
        throw new TypeError(`advance takes a number of milliseconds of at least 0, not ${ms}`);
      const target = elapsed + ms;
      await settle();
      while (timers[0] && timers[0].due <= target) await fireNext();
      // A run that is awaited may have moved time further meanwhile.
      elapsed = Math.max(elapsed, target);
      // What the last one set off may take a turn of its own.
      await settle();
    },
    async advanceToNext() {
      if (timers.length === 0) return false;
      await fireNext();
      return true;
    },
    setNow(now) {
      wallOffset = now - elapsed;
    },
    get nextIn() {
      return timers[0] && Math.max(0, timers[0].due - elapsed);
    },
  };
}

/** One turn of the host's event loop: everything that is ready runs, promises and their followers included. */
export function hostTurn(): Promise<void> {
  return new Promise(nextTurn);
}
