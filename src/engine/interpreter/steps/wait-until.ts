/** Waits until an instant as a part of a run: the engine may suspend the run meanwhile, and a stop ends the wait. */

import type { WaitPlace } from '../../execution/journal.port.ts';
import { unlessStopped } from '../cancellation-scope.ts';
import type { RunScope } from '../run-scope.ts';

/** @returns false when the run was stopped meanwhile */
export async function waitUntil(instant: number, key: string, place: WaitPlace, scope: RunScope): Promise<boolean> {
  const { replay } = scope.cancellation;
  if (replay) {
    // The part is over: either the wait ended before that, or it never ended.
    if (instant > replay.until) replay.root.stop('abandoned');
    return instant <= replay.until;
  }
  // A wait that has passed may have ended in another process: then the records after it are replayed first.
  if (instant <= scope.run.ports.clock.now()) return scope.cancellation.reason === undefined;
  await scope.endReplay();
  if (scope.cancellation.reason !== undefined) return false;
  await unlessStopped(scope.cancellation, (signal) => scope.run.journal.sleepUntil(key, instant, signal, place));
  return scope.cancellation.reason === undefined;
}
