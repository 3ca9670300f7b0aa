/** Waits for a promise for a limited time. */

/** Resolves with the value of the promise, or with undefined after `ms`. A later result of the promise is ignored. */
export function withTimeout<T>(
  promise: Promise<T>,
  ms: number,
  setTimer: (ms: number, callback: () => void) => () => void,
): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const cancel = setTimer(ms, () => resolve(undefined));
    promise.then(
      (value) => {
        cancel();
        resolve(value);
      },
      (thrown: unknown) => {
        cancel();
        reject(thrown);
      },
    );
  });
}
