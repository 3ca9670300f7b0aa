/** Waits for work that may ignore its abort signal, at most for a grace period. */

import { CANCELLATION_GRACE_MS, isAtOnce } from '../cancellation-scope.ts';
import type { RunScope } from '../run-scope.ts';

/**
 * Resolves when the work is done. After a stop, it also resolves when the grace period is over and all blocks in the work have ended;
 * those have their own grace periods. When the run is out of time or over a limit, there is no grace period.
 *
 * @param scope - the scope in which the work runs
 */
export function withGracePeriod(
  work: Promise<unknown>,
  scope: RunScope,
  maxMs = CANCELLATION_GRACE_MS,
): Promise<unknown> {
  const { run, cancellation } = scope;
  const { clock } = run.ports;
  return new Promise((resolve, reject) => {
    let cancelTimer: (() => void) | undefined;
    let forgetClosed: (() => void) | undefined;
    const stopWaiting = () => {
      if (!scope.hasBlocks) resolve(undefined);
    };
    const forget = cancellation.onStop((reason) => {
      cancelTimer = clock.setTimer(isAtOnce(reason) ? 0 : maxMs, () => {
        stopWaiting();
        // The results of an inner block are put together before anything after it continues.
        forgetClosed = run.onClosed(() => {
          cancelTimer = clock.setTimer(0, stopWaiting);
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
