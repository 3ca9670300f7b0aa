/** A call of something outside that has to end within a time, or when its caller aborts. */

/** The longest delay of a timer; a longer one fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export interface Deadline {
  readonly timeoutMs: number;
  /** Of the caller. Its reason is the error of the call. */
  readonly signal?: AbortSignal;
  /** The error of a call that did not end in time. */
  readonly late: () => Error;
}

/**
 * Ends a call at its deadline, whether the call obeys its signal or not. A call whose caller has aborted is not begun.
 *
 * @param run - gets a signal that aborts when the call fails, or is out of time or aborted
 */
export function underDeadline<T>(
  { timeoutMs, signal: outer, late }: Deadline,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    if (outer?.aborted) return reject(outer.reason);
    const controller = new AbortController();
    const settle = () => {
      clearTimeout(timer);
      outer?.removeEventListener('abort', onAbort);
    };
    const end = (reason: unknown) => {
      settle();
      reject(reason);
      controller.abort(reason);
    };
    const onAbort = () => end(outer?.reason);
    const timer = setTimeout(() => end(late()), Math.min(timeoutMs, MAX_TIMER_MS));
    outer?.addEventListener('abort', onAbort, { once: true });
    run(controller.signal).then((value) => {
      settle();
      resolve(value);
    }, end);
  });
}
