/** The next turn of the event loop, after all callbacks that are ready to run. */

/** Resolves on the next turn, as a clock says. Each caller gets its own promise: on Cloudflare, a request must not wait for that of another one. */
export function turnOf(clock: { turn?(): Promise<void>; sleep(ms: number): Promise<void> }): Promise<void> {
  return clock.turn ? clock.turn() : clock.sleep(0);
}

/** Calls back on the next turn. */
export function nextTurn(callback: () => void): void {
  const { setImmediate } = globalThis as { setImmediate?: (callback: () => void) => unknown };
  if (setImmediate) setImmediate(callback);
  else setTimeout(callback, 0);
}
