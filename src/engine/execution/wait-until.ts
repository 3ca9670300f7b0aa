/** Waits for an instant, as a part of a run: the engine may give the run up until then, and a stop ends the wait. */

import { unlessStopped } from './halt.ts';
import type { RunScope } from './run-scope.ts';

/** @returns false when the run was stopped meanwhile */
export async function waitUntil(instant: number, key: string, scope: RunScope): Promise<boolean> {
  const { recall } = scope.halt;
  if (recall) {
    // It is over: what it waited for had come by then, or never did.
    if (instant > recall.until) recall.root.stop('abandoned');
    return instant <= recall.until;
  }
  // One that has passed was waited for, perhaps by another process: what is stored behind it comes first.
  if (instant <= scope.run.ports.clock.now()) return scope.halt.reason === undefined;
  await scope.goLive();
  if (scope.halt.reason !== undefined) return false;
  await unlessStopped(scope.halt, (signal) => scope.run.journal.sleepUntil(key, instant, signal));
  return scope.halt.reason === undefined;
}
