/** The platform's clock as the clock port. */

import { nextTurn } from '../../engine/next-turn.ts';
import type { Clock } from '../../engine/ports/clock.ts';
import { sleepByTimer } from './sleep-by-timer.ts';

/** The longest delay that `setTimeout` takes; a longer one would fire at once. */
const LONGEST_MS = 2 ** 31 - 1;

/** Wall time, monotonic time and timers of the platform. */
export function systemClock(): Clock {
  const setTimer: Clock['setTimer'] = (ms, callback, options) => {
    let left = Number.isFinite(ms) ? Math.max(0, ms) : 0;
    let handle: ReturnType<typeof setTimeout>;
    const arm = () => {
      const part = Math.min(left, LONGEST_MS);
      left -= part;
      handle = setTimeout(left > 0 ? arm : callback, part);
      if (options?.background) letGo(handle);
    };
    arm();
    return () => clearTimeout(handle);
  };
  return {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    setTimer,
    sleep: sleepByTimer(setTimer),
    turn: () => new Promise(nextTurn),
  };
}

// Node.js, Deno and Bun end a process that has nothing but such timers left; elsewhere a timer is a number.
function letGo(handle: unknown): void {
  if (typeof handle === 'object') (handle as { unref?: () => void }).unref?.();
  else (globalThis as { Deno?: { unrefTimer?: (handle: unknown) => void } }).Deno?.unrefTimer?.(handle);
}
