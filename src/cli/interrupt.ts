/** Ctrl-C and its kin: the first asks a run to end, the second ends the process. */

import { constants } from 'node:os';

export interface Interrupt {
  /** Set once a signal came: 128 and its number, as shells have it. */
  readonly exitCode: number | undefined;
  release(): void;
}

/** @param heard - told at the first signal, and with `again` right before a second one ends the process */
export function onInterrupt(process: NodeJS.Process, heard: (again: boolean) => void): Interrupt {
  let exitCode: number | undefined;
  const listener = (signal: NodeJS.Signals) => {
    const again = exitCode !== undefined;
    exitCode = 128 + constants.signals[signal];
    heard(again);
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
