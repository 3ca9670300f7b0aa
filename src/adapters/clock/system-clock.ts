/** The clock port over the platform's clock. */

import { nextTurn } from '../../engine/base/time/next-turn.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import { sleepByTimer } from './sleep-by-timer.ts';

/** The longest delay of `setTimeout`. With a longer one, the timer would fire at once. */
const MAX_MS = 2 ** 31 - 1;

/** Wall time, monotonic time and timers of the platform. */
export function systemClock(): Clock {
  const setTimer: Clock['setTimer'] = (ms, callback, options) => {
    let left = Number.isFinite(ms) ? Math.max(0, ms) : 0;
    let handle: ReturnType<typeof setTimeout>;
    const arm = () => {
      const part = Math.min(left, MAX_MS);
      left -= part;
      handle = setTimeout(left > 0 ? arm : callback, part);
      if (options?.background) unref(handle);
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

// Node.js, Deno and Bun end a process that has only such timers left. On other runtimes, a timer is a number.
function unref(handle: unknown): void {
  if (typeof handle === 'object') (handle as { unref?: () => void }).unref?.();
  else (globalThis as { Deno?: { unrefTimer?: (handle: unknown) => void } }).Deno?.unrefTimer?.(handle);
}
