/** The clock port: wall time, monotonic time and timers, handed in so that tests own time. */

/** Cancels a timer; calling it again does nothing. */
export type CancelTimer = () => void;

export interface TimerOptions {
  /** The process need not stay alive for it. */
  readonly background?: boolean;
}

export interface Clock {
  /** Wall time, Unix ms. May jump either way. */
  now(): number;
  /** Milliseconds since some fixed instant; never goes back. Durations are measured with it. */
  monotonic(): number;
  /**
   * Resolves after `ms` (any length; at once when not positive).
   * @throws the signal's reason when it aborts first; the timer is gone by then
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /**
   * Resolves on the event loop's next turn: behind everything that is ready to run. A run that waits for nothing asks for one
   * every 10 ms. A clock without it is asked to `sleep(0)`.
   */
  turn?(): Promise<void>;
  /** Calls `callback` once after `ms`, of any length (a platform's timer stops at 2^31-1 ms; this one does not). */
  setTimer(ms: number, callback: () => void, options?: TimerOptions): CancelTimer;
}
