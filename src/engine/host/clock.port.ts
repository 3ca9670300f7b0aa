/** The clock port: wall time, monotonic time and timers. A test passes its own clock. */

/** Cancels a timer. A second call does nothing. */
export type CancelTimer = () => void;

export interface TimerOptions {
  /** The timer does not keep the process alive. */
  readonly background?: boolean | undefined;
  /**
   * The callback only looks at what others may have left, or says that this process lives. A clock of a test may hold it back while
   * nothing else is due.
   */
  readonly sweep?: boolean | undefined;
  /** Called before the callback of a sweep that was held back. @param ms - for how long */
  readonly onHeldBack?: ((ms: number) => void) | undefined;
}

export interface Clock {
  /** Wall time, Unix ms. It may jump in both directions. */
  now(): number;
  /** Milliseconds since a fixed instant. The value never decreases. The library measures durations with it. */
  monotonic(): number;
  /**
   * Resolves after `ms`, which may have any length. Resolves at once if `ms` is not positive.
   * @throws the signal's reason if the signal aborts first. The timer is cleared before that
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /**
   * Resolves on the next turn of the event loop, after everything that is ready to run. A run that never waits calls it every
   * 10 ms. Without this method, the library calls `sleep(0)`.
   */
  turn?(): Promise<void>;
  /** Calls `callback` once after `ms`. Unlike a platform's timer, it is not limited to 2^31-1 ms. */
  setTimer(ms: number, callback: () => void, options?: TimerOptions): CancelTimer;
}
