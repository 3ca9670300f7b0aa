/**
 * Runs a `try`: `catch` runs when a step of `try` fails, and `finally` always runs.
 *
 * | while the steps of `try` or `catch` are active, the run | `finally` |
 * |---|---|
 * | is not stopped | runs after them, like any other step |
 * | is cancelled, or the block around it stops | runs when they have ended, at most 25 s later, and has 25 s |
 * | is out of time, or over a limit | runs at once, their results are dropped, and it has 25 s |
 * | is suspended, released or lost | does not run here: it runs in the process that resumes the run |
 */

import type { Json } from '../../base/json/json.ts';
import type { CompiledList, CompiledTryStep } from '../../compiled/compiled-ensemble.ts';
import { withGracePeriod } from '../attempt/with-grace-period.ts';
import {
  CANCELLATION_GRACE_MS,
  CancellationScope,
  createChildScope,
  createReplayScope,
  type StopReason,
} from '../cancellation-scope.ts';
import type { GuardChain, RunBody } from '../enter-step.ts';
import { lastError, markEnded, markStep } from '../marks.ts';
import type { RunScope } from '../run-scope.ts';

/** Recorded before the `finally` of stopped steps begins: none of those steps may begin again. */
interface Stopped {
  readonly reason: StopReason;
  /** Unix ms */
  readonly at: number;
  readonly lastCommitAt: number;
}

export async function runTry(
  step: CompiledTryStep,
  scope: RunScope,
  guards: GuardChain,
  runBody: RunBody,
): Promise<boolean> {
  markStep(step, 'begun', scope);
  // A failure before the block may still be pending.
  const before = lastError(scope);
  const reachedEnd = await (step.finally
    ? runCleaned(step, step.finally, scope, guards, runBody)
    : runCaught(step, scope, guards, runBody));
  const error = lastError(scope);
  if (reachedEnd) markStep(step, 'ended', scope, {}, error === before ? undefined : error);
  else markEnded(step, scope);
  return reachedEnd;
}

async function runCleaned(
  step: CompiledTryStep,
  cleanup: CompiledList,
  scope: RunScope,
  guards: GuardChain,
  runBody: RunBody,
): Promise<boolean> {
  const { run } = scope;
  const key = `${scope.keyPrefix}${step.key}.finally`;
  const stopped = run.journal.replayed(key)?.output as Stopped | undefined;
  const closed = scope.openBlock(true);
  const { cancellation, release } = stopped
    ? { cancellation: createReplayScope(stopped.at), release: () => {} }
    : createChildScope(scope.cancellation);
  try {
    const inside = scope.fork(cancellation);
    await withGracePeriod(runCaught(step, inside, guards, runBody), inside);
    if (run.exit.reason !== undefined) return false;
    scope.absorb(inside);
    if (stopped) resume(stopped, scope);
    else if (scope.cancellation.reason !== undefined) {
      cancellation.close();
      if (!scope.cancellation.replay) await recordStop(key, scope.cancellation.reason, scope);
    }
    const { lastOutput } = scope;
    await runFinally(cleanup, scope, guards, runBody);
    scope.lastOutput = lastOutput;
    // A pending failure ends the level later; a stopped level ends here.
    return scope.cancellation.reason === undefined && !stopped;
  } finally {
    release();
    closed();
  }
}

async function recordStop(key: string, reason: StopReason, scope: RunScope): Promise<void> {
  const { lastCommitAt, run } = scope;
  const stopped: Stopped = { reason, at: run.ports.clock.now(), lastCommitAt };
  await run.journal.decide(key, () => stopped as unknown as Json);
}

/** Continues after steps that were stopped in another process. */
function resume({ reason, lastCommitAt }: Stopped, scope: RunScope): void {
  scope.lastCommitAt = lastCommitAt;
  if (reason === 'abandoned') return;
  // The run itself was stopped, whether or not that was stored.
  scope.run.whenReplayed(() => scope.run.cancellation.stop(reason));
}

async function runCaught(
  step: CompiledTryStep,
  scope: RunScope,
  guards: GuardChain,
  runBody: RunBody,
): Promise<boolean> {
  const { cancellation } = scope;
  const body = scope.fork(cancellation);
  if (step.catch) body.caughtBy = step.body;
  const reachedEnd = await runBody(step.body, body, guards);
  const [failure] = body.failures ?? [];
  if (!failure || !step.catch || cancellation.reason !== undefined) {
    scope.absorb(body);
    return reachedEnd;
  }
  body.takeFailures();
  scope.absorb(body);
  const caught = scope.fork(cancellation);
  caught.caught = failure.error;
  const handled = await runBody(step.catch, caught, guards);
  scope.absorb(caught);
  return handled;
}

async function runFinally(list: CompiledList, scope: RunScope, guards: GuardChain, runBody: RunBody): Promise<void> {
  const { run } = scope;
  const { replay } = scope.cancellation;
  const cancellation = replay ? createReplayScope(replay.until) : new CancellationScope();
  const forgetExit = run.exit.onStop((reason) => cancellation.stop(reason));
  // `finally` does not stop with the block around it. From that stop on its time is limited, and the run must not be suspended.
  let cancelTimer: (() => void) | undefined;
  let held = 0;
  const forgetStop = scope.cancellation.onStop((reason) => {
    held = 1;
    run.journal.branches(held);
    cancelTimer = run.ports.clock.setTimer(CANCELLATION_GRACE_MS, () => cancellation.stop(reason));
  });
  try {
    const cleanup = scope.fork(cancellation);
    cleanup.isApart = true;
    cleanup.isCleanup = true;
    const inside: GuardChain = { reads: [], outer: guards, since: 0, list: undefined, outside: scope };
    await withGracePeriod(runBody(list, cleanup, inside), cleanup, 0);
    if (cancellation.reason !== undefined) cancellation.close();
    scope.absorb(cleanup);
  } finally {
    forgetExit();
    forgetStop();
    cancelTimer?.();
    run.journal.branches(-held);
  }
}
