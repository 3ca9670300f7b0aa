/** A clock that runs faster than the machine's clock, equally in every process, so that waits of seconds pass quickly. */

/** @param factor - how many times faster; 1 is the speed of the machine's clock */
export function fastClock(factor) {
  const setTimer = (ms, callback, options) => {
    const timer = setTimeout(callback, ms / factor);
    if (options?.background) timer.unref();
    return () => clearTimeout(timer);
  };
  return {
    factor,
    now: () => Math.floor(Date.now() * factor),
    monotonic: () => performance.now() * factor,
    setTimer,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) {
          reject(signal.reason);
          return;
        }
        const abort = () => {
          cancel();
          reject(signal.reason);
        };
        const cancel = setTimer(ms, () => {
          signal?.removeEventListener('abort', abort);
          resolve();
        });
        signal?.addEventListener('abort', abort, { once: true });
      }),
  };
}
