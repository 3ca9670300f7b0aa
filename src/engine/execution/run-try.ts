/**
 * Runs a `try`: what fails in it is caught, and what cleans up behind it runs whatever came of it.
 *
 * | the run, while the steps of `try` or `catch` are at work | `finally` |
 * |---|---|
 * | goes on | runs as any other step |
 * | is cancelled, or the block around it stops | runs when they have ended, at most 25 s later, and has 25 s |
 * | is out of time, or over a limit | they are given up at once; it has 25 s |
 * | is given up by this process | does not run here: who goes on with the run comes to it |
 */

import type { CompiledTryStep } from '../definition/compiled-ensemble.ts';
import type { Json } from '../json.ts';
import { bounded } from './bounded.ts';
import { HALT_GRACE_MS, Halt, type HaltReason, innerHalt, recallHalt } from './halt.ts';
import type { GuardChain } from './level.ts';
import type { RunScope } from './run-scope.ts';
import type { RunBody } from './run-while.ts';

/** Noted before a `finally` begins behind steps that were stopped: none of them may begin again. */
interface Stopped {
  readonly reason: HaltReason;
  /** Unix ms */
  readonly at: number;
  readonly lastCommitAt: number;
}

export async function runTry(
  step: CompiledTryStep,
  scope: RunScope,
  guards: GuardChain | undefined,
  runBody: RunBody,
): Promise<boolean> {
  if (!step.finally) return runCaught(step, scope, guards, runBody);
  const { run } = scope;
  const key = `${scope.keyPrefix}${step.key}.finally`;
  const stopped = run.journal.recalled(key)?.output as Stopped | undefined;
  const closed = scope.openBlock(true);
  const { halt, release } = stopped ? { halt: recallHalt(stopped.at), release: () => {} } : innerHalt(scope.halt);
  try {
    const inside = scope.stretch(halt);
    await bounded(runCaught(step, inside, guards, runBody), halt, inside, false);
    if (run.givenUp.reason !== undefined) return false;
    scope.absorb(inside);
    if (stopped) resume(stopped, scope);
    else if (scope.halt.reason !== undefined) {
      halt.close();
      if (!scope.halt.recall) await noteStop(key, scope.halt.reason, scope);
    }
    const { lastOutput } = scope;
    await runFinally(step.finally, scope, guards, runBody);
    scope.lastOutput = lastOutput;
    // What failed and is not handled by now ends the level; what was stopped ends here.
    return scope.halt.reason === undefined && !stopped;
  } finally {
    release();
    closed();
  }
}

async function noteStop(key: string, reason: HaltReason, scope: RunScope): Promise<void> {
  const { lastCommitAt, run } = scope;
  const stopped: Stopped = { reason, at: run.ports.clock.now(), lastCommitAt };
  await run.journal.note(key, () => stopped as unknown as Json);
}

/** Goes on behind steps that were stopped in another process. */
function resume({ reason, lastCommitAt }: Stopped, scope: RunScope): void {
  scope.lastCommitAt = lastCommitAt;
  if (reason === 'abandoned') return;
  // The run itself was stopped, whether or not that was stored.
  scope.run.whenRecalled(() => scope.run.halt.stop(reason));
}

async function runCaught(
  step: CompiledTryStep,
  scope: RunScope,
  guards: GuardChain | undefined,
  runBody: RunBody,
): Promise<boolean> {
  const { halt } = scope;
  const body = scope.stretch(halt);
  if (step.catch) body.caughtBy = step.body;
  const goesOn = await runBody(step.body, body, guards);
  const [failure] = body.failures ?? [];
  if (!failure || !step.catch || halt.reason !== undefined) {
    scope.absorb(body);
    return goesOn;
  }
  body.takeFailures();
  scope.absorb(body);
  const caught = scope.stretch(halt);
  caught.caught = failure.error;
  const handled = await runBody(step.catch, caught, guards);
  scope.absorb(caught);
  return handled;
}

async function runFinally(
  list: NonNullable<CompiledTryStep['finally']>,
  scope: RunScope,
  guards: GuardChain | undefined,
  runBody: RunBody,
): Promise<void> {
  const { run } = scope;
  const { recall } = scope.halt;
  const halt = recall ? recallHalt(recall.until) : new Halt();
  const forgetGivenUp = run.givenUp.onStop((reason) => halt.stop(reason));
  // It does not stop with what is around it; from then on its time is limited, and none of it is spent elsewhere.
  let cancelTimer: (() => void) | undefined;
  let held = 0;
  const forgetStop = scope.halt.onStop((reason) => {
    held = 1;
    run.journal.branches(held);
    cancelTimer = run.ports.clock.setTimer(HALT_GRACE_MS, () => halt.stop(reason));
  });
  try {
    const cleanup = scope.stretch(halt);
    cleanup.isApart = true;
    await bounded(Promise.resolve(runBody(list, cleanup, guards)), halt, cleanup, false, 0);
    if (halt.reason !== undefined) halt.close();
    scope.absorb(cleanup);
  } finally {
    forgetGivenUp();
    forgetStop();
    cancelTimer?.();
    run.journal.branches(-held);
  }
}
