/** A call of something outside that has to end within a time, or when its caller aborts. */

/** The longest delay of a timer; a longer one fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export type SetTimer = (ms: number, callback: () => void) => () => void;

export interface Deadline {
  readonly timeoutMs: number;
  /** Of a clock. Default: the timers of the platform. */
  readonly setTimer?: SetTimer;
  /** Of the caller. Its reason is the error of the call. */
  readonly signal?: AbortSignal;
  /** The error of a call that did not end in time. */
  readonly late: () => Error;
}

/** How often a deadline on a clock yields: a call that keeps the time by itself ends in its own words, and with what it has read. */
const YIELDS = 3;

const platformTimer: SetTimer = (ms, callback) => {
  const timer = setTimeout(callback, Math.min(ms, MAX_TIMER_MS));
  return () => clearTimeout(timer);
};

function withTurnFirst(setTimer: SetTimer): SetTimer {
  return (ms, callback) => {
    let yields = 0;
    const pass = () => {
      if (yields === YIELDS) return callback();
      yields += 1;
      cancel = setTimer(0, pass);
    };
    let cancel = setTimer(ms, pass);
    return () => cancel();
  };
}

/**
 * Ends a call at its deadline, whether the call obeys its signal or not. A call whose caller has aborted is not begun.
 *
 * @param run - gets a signal that aborts when the call fails, or is out of time or aborted
 */
export function underDeadline<T>(
  { timeoutMs, setTimer, signal: outer, late }: Deadline,
  run: (signal: AbortSignal) => T | PromiseLike<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    if (outer?.aborted) return reject(outer.reason);
    const controller = new AbortController();
    const settle = () => {
      cancel();
      outer?.removeEventListener('abort', onAbort);
    };
    const end = (reason: unknown) => {
      settle();
      reject(reason);
      controller.abort(reason);
    };
    const onAbort = () => end(outer?.reason);
    const cancel = (setTimer ? withTurnFirst(setTimer) : platformTimer)(timeoutMs, () => end(late()));
    outer?.addEventListener('abort', onAbort, { once: true });
    new Promise<T>((answer) => answer(run(controller.signal))).then((value) => {
      settle();
      resolve(value);
    }, end);
  });
}
