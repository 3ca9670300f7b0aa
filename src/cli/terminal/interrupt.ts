/** SIGINT (Ctrl-C) and SIGTERM: the first signal calls back, the second ends the process. */

import { constants } from 'node:os';

export interface Interrupt {
  /** Set after a signal: 128 plus its number, as in shells. */
  readonly exitCode: number | undefined;
  release(): void;
}

/** @param onSignal - called at the first signal, and with `again` before a second signal ends the process */
export function onInterrupt(process: NodeJS.Process, onSignal: (again: boolean) => void): Interrupt {
  let exitCode: number | undefined;
  const listener = (signal: NodeJS.Signals) => {
    const again = exitCode !== undefined;
    exitCode = 128 + constants.signals[signal];
    onSignal(again);
    if (again) process.exit(exitCode);
  };
  process.on('SIGINT', listener);
  process.on('SIGTERM', listener);
  return {
    get exitCode() {
      return exitCode;
    },
    release() {
      process.off('SIGINT', listener);
      process.off('SIGTERM', listener);
    },
  };
}
