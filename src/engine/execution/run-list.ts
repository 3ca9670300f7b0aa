/**
 * Walks a list of steps: the one place that knows how a flow runs.
 *
 * What becomes of a failure:
 *
 * | the agent, or child, that failed ... | then |
 * |---|---|
 * | has `continueOnError: true` | it is handled; the flow goes on |
 * | is read (`.failed`, `.success`) by a guard still ahead: a condition, a route, an `if` | it waits; the flow goes on |
 * | ... and that guard led to a step that ran (an agent, a child, a `sleep` or a `wait`) | it is handled |
 * | ... and that guard led to a branch that has steps ahead, none of which has run | it waits; the branch goes on |
 * | ... and no such guard is ahead any more, and no such branch either | the level ends as failed, from inside a block too |
 * | is read by no guard ahead | the level ends as failed |
 * | stands inside a `foreach` or a `parallel` that ends as failed | the block fails; its own failure follows this table |
 * | stands inside a `try` with a `catch` | it is caught, and `catch` runs |
 * | waits unhandled when its level is at its end | the level ends as failed |
 *
 * Ahead of a `try` are the guards in its `finally`, as those behind it are; what its `catch` takes waits for neither. A failure
 * outside of a block ends the walk inside it, but for what comes once more or beside it: a `finally`, a round of a `while`, a branch
 * of a `parallel`, an item of a `foreach` that is not the last one, or one of several at a time.
 *
 * The first failure that nothing handled is the error of the run. `open-failures.ts` decides what waits.
 */

import type {
  CompiledAgentStep,
  CompiledGuard,
  CompiledIfStep,
  CompiledList,
  CompiledRouteStep,
  CompiledStep,
} from '../definition/compiled-ensemble.ts';
import type { NameSlot } from '../definition/names.ts';
import type { Json } from '../json.ts';
import type { MaybePromise } from '../ports/operation.ts';
import { isPromise } from './attempt.ts';
import {
  afterSnapshot,
  decide,
  type GuardChain,
  isLetIn,
  led,
  markHandled,
  NO_NAME,
  noteFailure,
  SKIPPED,
  skip,
} from './level.ts';
import { endsWalk } from './open-failures.ts';
import { runAgent } from './run-agent.ts';
import { runChild } from './run-child.ts';
import { runForeach } from './run-foreach.ts';
import { runParallel } from './run-parallel.ts';
import type { RunScope } from './run-scope.ts';
import { runSleep } from './run-sleep.ts';
import { runTry } from './run-try.ts';
import { runWait } from './run-wait.ts';
import { runSwitch, runWhile } from './run-while.ts';

/** @returns false when the level ends here: it failed, or the run was stopped */
export async function runList(list: CompiledList, scope: RunScope, guards: GuardChain | undefined): Promise<boolean> {
  const { steps } = list;
  for (let i = 0; i < steps.length; i++) {
    const turn = scope.run.begin();
    if (turn) await turn;
    if (scope.halt.reason !== undefined) return false;
    const stepped = runStep(steps[i] as CompiledStep, scope, guards);
    const goesOn = isPromise(stepped) ? await stepped : stepped;
    if (!goesOn) return false;
    if (scope.run.unhandled > 0 && endsWalk(scope, list, i, guards)) return false;
  }
  return true;
}

function runStep(step: CompiledStep, scope: RunScope, guards: GuardChain | undefined): MaybePromise<boolean> {
  switch (step.kind) {
    case 'agent':
      return step.readsState
        ? afterSnapshot(scope, () => runAgentStep(step, scope, guards))
        : runAgentStep(step, scope, guards);
    case 'route':
      return afterGuardSnapshots([step.condition, ...step.entries.map((entry) => entry.condition)], scope, () =>
        runRoute(step, scope, guards),
      );
    case 'if':
      return afterGuardSnapshots([step.guard], scope, () => runIf(step, scope, guards));
    case 'switch':
      return afterGuardSnapshots([step.value], scope, () => runSwitch(step, scope, guards, runList));
    case 'foreach':
      return runForeach(step, scope, guards, runList);
    case 'while':
      return runWhile(step, scope, guards, runList);
    case 'parallel':
      return afterGuardSnapshots([step.condition], scope, () => runParallel(step, scope, guards, runList));
    case 'try':
      return runTry(step, scope, guards, runList);
    case 'ensemble':
      return runChild(step, scope, guards);
    case 'sleep':
      return runSleep(step, scope, guards);
    case 'wait':
      return runWait(step, scope, guards);
  }
}

function afterGuardSnapshots<T>(
  guards: readonly (CompiledGuard | undefined)[],
  scope: RunScope,
  then: () => MaybePromise<T>,
): MaybePromise<T> {
  return guards.some((guard) => guard?.readsState) ? afterSnapshot(scope, then) : then();
}

function runAgentStep(
  step: CompiledAgentStep,
  scope: RunScope,
  guards: GuardChain | undefined,
  router?: NameSlot,
): MaybePromise<boolean> {
  const { condition } = step;
  if (!condition) return runHandled(step, scope, guards, router);
  return decide(condition, step.key, scope, step.slot, step.continueOnError, (holds) => {
    if (holds === undefined) return true;
    if (!holds) return skip(step.slot, step.key, scope);
    return runHandled(step, scope, led(condition, guards, scope), router);
  });
}

function runHandled(
  step: CompiledAgentStep,
  scope: RunScope,
  guards: GuardChain | undefined,
  router: NameSlot | undefined,
): MaybePromise<boolean> {
  if (scope.run.unhandled > 0) markHandled(guards, scope);
  return runAgent(step, scope, router);
}

async function runRoute(step: CompiledRouteStep, scope: RunScope, guards: GuardChain | undefined): Promise<boolean> {
  let chain = guards;
  if (step.condition) {
    if (!(await isLetIn(step, scope))) return true;
    chain = led(step.condition, chain, scope);
  }
  const give = (output: Json) => {
    // What its member gave is counted there.
    scope.put(step.slot.slot, { status: 'completed', output }, 0);
    scope.lastOutput = output;
    return true;
  };
  for (const [route, entry] of step.entries.entries()) {
    if (entry.condition) {
      // Also a guard that did not hold led here: the default of `${a.success}` runs because `a` failed.
      chain = led(entry.condition, chain, scope);
      const holds = await decide(entry.condition, `${step.key}.${route}`, scope, step.slot, false, (said) => said);
      if (holds === undefined) return true;
      if (!holds) continue;
    }
    if (entry.target.kind === 'prompt') {
      try {
        scope.prompt = String(entry.target.prompt(scope.begin(scope.keyPrefix + step.key, 'prompt')));
      } catch (thrown) {
        noteFailure(thrown, scope, step.slot);
        return true;
      }
      return give({ route, target: scope.prompt, output: null });
    }
    const member = entry.target.step;
    const ran = await (member.readsState
      ? afterSnapshot(scope, () => runAgentStep(member, scope, chain, step.slot))
      : runAgentStep(member, scope, chain, step.slot));
    if (!ran) return false;
    const result = scope.results[member.slot.slot] ?? SKIPPED;
    give({ route, target: member.name, output: result.output });
    if (result.error) scope.put(step.slot.slot, { ...result, output: { route, target: member.name, output: null } }, 0);
    return true;
  }
  return give({ route: null, target: null, output: null });
}

async function runIf(step: CompiledIfStep, scope: RunScope, guards: GuardChain | undefined): Promise<boolean> {
  const holds = await decide(step.guard, step.key, scope, NO_NAME, false, (said) => said);
  if (holds === undefined) return true;
  const branch = holds ? step.then : step.else;
  scope.lastOutput = null;
  return branch ? runList(branch, scope, led(step.guard, guards, scope, branch)) : true;
}
