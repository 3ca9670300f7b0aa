/** A clock whose time changes only through its methods, for tests and dry runs. */

import { optional, readOptions } from '../../engine/base/read-options.ts';
import { nextTurn } from '../../engine/base/time/next-turn.ts';
import type { Clock, TimerOptions } from '../../engine/host/clock.port.ts';
import { sleepByTimer } from './sleep-by-timer.ts';

export interface ManualClockOptions {
  /** The initial wall time, Unix ms. Default 2026-01-01T00:00:00Z. */
  readonly now?: number | undefined;
}

export interface ManualClock extends Clock {
  turn(): Promise<void>;
  /**
   * Advances wall and monotonic time by `ms`. Due timers fire in the order of their instants, each at its own instant. What a
   * timer starts runs before the next timer fires.
   * @throws TypeError unless `ms` is a finite number of at least 0
   */
  advance(ms: number): Promise<void>;
  /** Advances to the next timer and fires it. @returns false when there is no timer */
  advanceToNext(): Promise<boolean>;
  /** Sets wall time only, forward or back, as a clock correction does. Timers and monotonic time don't change. */
  setNow(now: number): void;
  /** Milliseconds until the next timer; undefined when there is no timer. */
  readonly nextIn: number | undefined;
}

interface Timer {
  readonly due: number;
  readonly callback: () => void;
  readonly options: TimerOptions;
}

/** A stretch of time in which nothing but sweeps is due is passed in one step from this length on. */
const LEAP_MS = 600_000;

/** How many processes of the testing kit use a clock. Of several, each must see that the others live. */
const PROCESSES = Symbol('processes');

/** A process begins to use the clock. @returns ends that */
export function joinClock(clock: ManualClock): () => void {
  const { [PROCESSES]: processes } = clock as { [PROCESSES]?: Set<object> };
  const process = {};
  processes?.add(process);
  return () => void processes?.delete(process);
}

const DEFAULT_NOW = Date.UTC(2026, 0, 1);

/**
 * Creates a clock for tests. Its time changes only through its methods.
 *
 * @example
 * ```ts
 * import { manualClock } from 'ensemble-orchestrator/testing';
 *
 * const clock = manualClock();
 * let fired = false;
 * clock.setTimer(60_000, () => { fired = true; });
 * await clock.advance(59_999);
 * console.log(fired); // false
 * await clock.advance(1);
 * console.log(fired); // true
 * ```
 */
export function manualClock(options: ManualClockOptions = {}): ManualClock {
  readOptions('manualClock', options, { now: optional('an instant in Unix ms', Number.isFinite) });
  let wallOffset = options.now ?? DEFAULT_NOW;
  let elapsed = 0;
  // Sorted by instant; timers with the same instant in the order in which they were set.
  const timers: Timer[] = [];

  const processes = new Set<object>();
  /** The sweeps that fire now, after a stretch. One may cancel another. */
  const held = new Set<Timer>();

  const setTimer: Clock['setTimer'] = (ms, callback, options = {}) => {
    const due = elapsed + (Number.isFinite(ms) ? Math.max(0, ms) : 0);
    const timer = { due, callback, options };
    let at = timers.length;
    while (at > 0 && (timers[at - 1] as Timer).due > timer.due) at -= 1;
    timers.splice(at, 0, timer);
    return () => {
      const index = timers.indexOf(timer);
      if (index >= 0) timers.splice(index, 1);
      held.delete(timer);
    };
  };

  let turning = 0;
  // A run that waits for nothing takes one turn after another.
  const settle = async (): Promise<void> => {
    do await hostTurn();
    while (turning > 0);
  };

  const fireNext = async (): Promise<void> => {
    const timer = timers.shift() as Timer;
    elapsed = Math.max(elapsed, timer.due);
    timer.callback();
    await settleTwice();
  };

  // Whatever is queued after the first turn runs in the next one.
  const settleTwice = async (): Promise<void> => {
    await settle();
    await settle();
  };

  /** Passes a long stretch, at most up to an instant, in which nothing but sweeps is due: each fires once, at its end. */
  const leap = async (latest: number): Promise<boolean> => {
    if (processes.size !== 1 || !timers[0]?.options.sweep) return false;
    const until = Math.min(timers.find(({ options }) => !options.sweep)?.due ?? latest, latest);
    if (!Number.isFinite(until) || until - elapsed < LEAP_MS) return false;
    for (const timer of timers) if (timer.options.sweep && timer.due < until) held.add(timer);
    for (const timer of held) timers.splice(timers.indexOf(timer), 1);
    elapsed = until;
    for (const timer of held) {
      held.delete(timer);
      timer.options.onHeldBack?.(until - timer.due);
      timer.callback();
    }
    await settleTwice();
    return true;
  };

  const clock: ManualClock & { readonly [PROCESSES]: Set<object> } = {
    [PROCESSES]: processes,
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
      while (timers[0] && timers[0].due <= target) if (!(await leap(target))) await fireNext();
      // Meanwhile, a run whose result is awaited may have advanced time further.
      elapsed = Math.max(elapsed, target);
      // What the last timer started may need one more turn.
      await settle();
    },
    async advanceToNext() {
      if (timers.length === 0) return false;
      if (!(await leap(Number.POSITIVE_INFINITY))) await fireNext();
      return true;
    },
    setNow(now) {
      wallOffset = now - elapsed;
    },
    get nextIn() {
      return timers[0] && Math.max(0, timers[0].due - elapsed);
    },
  };
  return clock;
}

/** Waits for one turn of the host's event loop. Everything that is ready runs first, with all its promise callbacks. */
export function hostTurn(): Promise<void> {
  return new Promise(nextTurn);
}
