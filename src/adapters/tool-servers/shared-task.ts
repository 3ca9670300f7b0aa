/** Runs a task once for all callers that ask while it runs. */

/** @throws what the task throws; the reason of the caller's signal */
export type SharedTask<T> = (signal: AbortSignal) => Promise<T>;

interface Running<T> {
  readonly result: Promise<T>;
  readonly controller: AbortController;
  waiting: number;
}

/**
 * A caller whose signal aborts leaves. The task is aborted when its last caller has left. On Workers, where the
 * I/O of a request ends with it, each caller runs the task for itself.
 */
export function sharedTask<T>(run: (signal: AbortSignal) => Promise<T>): SharedTask<T> {
  let running: Running<T> | undefined;
  const start = (): Running<T> => {
    const controller = new AbortController();
    const task: Running<T> = { result: run(controller.signal), controller, waiting: 0 };
    const end = () => {
      if (running === task) running = undefined;
    };
    task.result.then(end, end);
    return task;
  };
  return (signal) => {
    if (signal.aborted) return Promise.reject(signal.reason);
    if (globalThis.navigator?.userAgent === 'Cloudflare-Workers') return run(signal);
    running ??= start();
    const task = running;
    task.waiting += 1;
    return new Promise<T>((resolve, reject) => {
      const leave = () => {
        reject(signal.reason);
        task.waiting -= 1;
        if (task.waiting > 0) return;
        if (running === task) running = undefined;
        task.controller.abort(signal.reason);
      };
      signal.addEventListener('abort', leave, { once: true });
      const stay = () => signal.removeEventListener('abort', leave);
      task.result.then(resolve, reject).finally(stay);
    });
  };
}
