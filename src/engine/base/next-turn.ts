/** Calls back on the next turn of the event loop, after all callbacks that are ready to run. */

export function nextTurn(callback: () => void): void {
  const { setImmediate } = globalThis as { setImmediate?: (callback: () => void) => unknown };
  if (setImmediate) setImmediate(callback);
  else setTimeout(callback, 0);
}
