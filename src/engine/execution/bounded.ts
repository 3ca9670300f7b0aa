/** Waits for work that may ignore its signal, no longer than a grace. */

import { HALT_GRACE_MS, type Halt, isAtOnce } from './halt.ts';
import type { RunScope } from './run-scope.ts';

/**
 * Resolves with what the work gives; once it is stopped, with `otherwise` at the latest behind the grace, and behind the blocks
 * inside it, which have graces of their own. Steps of a run that is out of time, or over a limit, have none. What the work still gives then goes
 * nowhere.
 *
 * @param scope - the stretch in which the work is
 */
export function bounded<T>(
  work: Promise<T>,
  halt: Halt,
  scope: RunScope,
  otherwise: T,
  mostMs = HALT_GRACE_MS,
): Promise<T> {
  const { run } = scope;
  const { clock } = run.ports;
  return new Promise((resolve, reject) => {
    let cancelTimer: (() => void) | undefined;
    let forgetClosed: (() => void) | undefined;
    const giveUp = () => {
      if (!scope.hasBlocks) resolve(otherwise);
    };
    const forget = halt.onStop((reason) => {
      cancelTimer = clock.setTimer(isAtOnce(reason) ? 0 : mostMs, () => {
        giveUp();
        // What a block inside came to is put together before anything behind it goes on.
        forgetClosed = run.onClosed(() => {
          cancelTimer = clock.setTimer(0, giveUp);
        });
      });
    });
    const over = () => {
      forget();
      cancelTimer?.();
      forgetClosed?.();
    };
    work.then(resolve, reject);
    work.then(over, over);
  });
}
