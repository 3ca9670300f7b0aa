/** The signal of a caller. Many executions may share one, such as the signal of an app's shutdown. */

export interface CallerSignal {
  readonly aborted: boolean;
  /**
   * Calls `listener` when the signal aborts, if it has not aborted yet.
   * @returns ends the listening
   */
  onAbort(listener: () => void): () => void;
}

/**
 * All listeners share one native listener, because Node.js warns of a leak from the eleventh on. It is there while there are
 * listeners.
 */
function toCallerSignal(signal: AbortSignal): CallerSignal {
  const listeners = new Set<() => void>();
  const callAll = () => {
    for (const listener of listeners) listener();
  };
  return {
    get aborted() {
      return signal.aborted;
    },
    onAbort(listener) {
      if (listeners.size === 0) signal.addEventListener('abort', callAll, { once: true });
      listeners.add(listener);
      return () => {
        if (listeners.delete(listener) && listeners.size === 0) signal.removeEventListener('abort', callAll);
      };
    },
  };
}

/** @returns the caller's signal of an `AbortSignal`: the same one each time, as long as the `AbortSignal` lives */
export function createCallerSignals(): (signal: AbortSignal) => CallerSignal {
  const made = new WeakMap<AbortSignal, CallerSignal>();
  return (signal) => {
    const known = made.get(signal) ?? toCallerSignal(signal);
    made.set(signal, known);
    return known;
  };
}
