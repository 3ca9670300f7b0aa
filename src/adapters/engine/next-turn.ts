/** Calls back behind everything that is ready to run: on the event loop's next turn. */

export function nextTurn(callback: () => void): void {
  const { setImmediate } = globalThis as { setImmediate?: (callback: () => void) => unknown };
  if (setImmediate) setImmediate(callback);
  else setTimeout(callback, 0);
}
