/**
 * Runs a list of steps: the one place that defines how a flow runs.
 *
 * What follows from a failure:
 *
 * | the agent or child that failed ... | then |
 * |---|---|
 * | has `continueOnError: true` | the failure is handled; the flow continues |
 * | is checked (`.failed`, `.success`) by a later guard: a condition, a route, an `if` | the failure is pending; the flow continues |
 * | ... and that guard led to a step that ran (an agent, a child, a `sleep` or a `wait`) | the failure is handled |
 * | ... and that guard led to a list that has steps left, none of which has run | the failure is pending; the list continues |
 * | ... and neither such a guard nor such a list is left | the level ends as failed, from inside a block too |
 * | is checked by no later guard | the level ends as failed |
 * | is inside a `foreach` or a `parallel` that ends as failed | the block fails; its own failure follows this table |
 * | is inside a `try` with a `catch` | the failure is caught, and `catch` runs |
 * | has a pending failure at the end of its level | the level ends as failed |
 *
 * For a failure in a `try`, the guards in its `finally` are later guards too, like those after the `try`. A failure that the `catch`
 * catches is pending for neither. A failure outside a block also ends the steps inside it. Exceptions are parts that run again or
 * concurrently: a `finally`, a round of a `while`, a branch of a `parallel`, an item of a `foreach` that is not the last, and an item
 * of a `foreach` that runs several at a time.
 *
 * The first failure that nothing handled is the error of the run. `open-failures.ts` decides which failures are pending.
 */

import { isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import type { CompiledIfStep, CompiledList, CompiledStep } from '../compiled/compiled-ensemble.ts';
import { addGuard, enterStep, type GuardChain, type RunBody } from './enter-step.ts';
import { evaluateGuard } from './guards.ts';
import { markRefused, markStep } from './marks.ts';
import { endsWalk } from './open-failures.ts';
import type { RunScope } from './run-scope.ts';
import { runAgent } from './steps/run-agent.ts';
import { runChild } from './steps/run-child.ts';
import { runForeach } from './steps/run-foreach.ts';
import { runParallel } from './steps/run-parallel.ts';
import { runRoute } from './steps/run-route.ts';
import { runSleep } from './steps/run-sleep.ts';
import { runTry } from './steps/run-try.ts';
import { runWait } from './steps/run-wait.ts';
import { runSwitch, runWhile } from './steps/run-while.ts';

/** @returns false when the level ends here, because it failed or the run was stopped */
export async function runList(list: CompiledList, scope: RunScope, guards: GuardChain): Promise<boolean> {
  const { steps } = list;
  for (let i = 0; i < steps.length; i++) {
    const turn = scope.run.begin(scope.cancellation);
    if (turn) await turn;
    if (scope.cancellation.reason !== undefined) return false;
    const step = steps[i] as CompiledStep;
    const entering = enterStep(step, scope, guards);
    const entered = isPromise(entering) ? await entering : entering;
    if (entered) {
      const run = RUNNERS[step.kind] as Run<CompiledStep>;
      const stepped = run(step, scope, entered, runList);
      const reachedEnd = isPromise(stepped) ? await stepped : stepped;
      if (!reachedEnd) return false;
    }
    if (scope.run.unhandled > 0 && endsWalk(scope, list, i, guards)) return false;
  }
  return true;
}

type Run<S> = (step: S, scope: RunScope, guards: GuardChain, runBody: RunBody) => MaybePromise<boolean>;

/** How each form runs. `guards`: those that led to the step, its own condition included. */
const RUNNERS: { readonly [K in CompiledStep['kind']]: Run<Extract<CompiledStep, { readonly kind: K }>> } = {
  agent: (step, scope) => runAgent(step, scope),
  route: runRoute,
  if: runIf,
  switch: runSwitch,
  foreach: runForeach,
  while: runWhile,
  parallel: runParallel,
  try: runTry,
  ensemble: runChild,
  sleep: runSleep,
  wait: runWait,
};

const THEN = { chose: 'then' };
const ELSE = { chose: 'else' };
const NOTHING = { chose: null };

async function runIf(step: CompiledIfStep, scope: RunScope, guards: GuardChain): Promise<boolean> {
  const holds = await evaluateGuard(step.guard, step.key, scope);
  if (holds === undefined) {
    markRefused(step, scope);
    return true;
  }
  const branch = holds ? step.then : step.else;
  markStep(step, 'chose', scope, holds ? THEN : branch ? ELSE : NOTHING);
  scope.lastOutput = null;
  return branch ? runList(branch, scope, addGuard(step.guard, guards, scope, branch)) : true;
}
