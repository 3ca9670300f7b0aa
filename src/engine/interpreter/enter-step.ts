/** Begins a step: what every kind of step does before its own work, and the guards that led to it. */

import { andThen, isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import type { CompiledGuard, CompiledList, CompiledStep, StepEntry } from '../compiled/compiled-ensemble.ts';
import type { NameSlot } from '../compiled/name-slot.ts';
import { evaluateGuard, SKIPPED, takeSnapshot } from './guards.ts';
import { markRefused, markStep } from './marks.ts';
import type { RunScope } from './run-scope.ts';

/** The guards that led to the current step: when it runs, the failures that they check are handled. */
export interface GuardChain {
  /** The names whose failures the guard checks. */
  readonly reads: readonly NameSlot[];
  readonly outer: GuardChain | undefined;
  /** How many failures the run had when the guard was evaluated: it did not check later ones. */
  readonly since: number;
  /** The list that the guard led to; undefined when it led to a single step. */
  readonly list: CompiledList | undefined;
  /** At the beginning of a `finally`: the scope around it, whose failures only the outer guards handle. */
  readonly outside?: RunScope;
}

/** The end of every chain. */
export const NO_GUARDS: GuardChain = { reads: [], outer: undefined, since: 0, list: undefined };

/** Runs a list of steps; passed as a parameter, because lists contain blocks that contain lists. */
export type RunBody = (list: CompiledList, scope: RunScope, guards: GuardChain) => Promise<boolean>;

/** Adds a guard that was just evaluated. @param list - the list that it led to */
export function addGuard(guard: CompiledGuard, outer: GuardChain, scope: RunScope, list?: CompiledList): GuardChain {
  return { reads: guard.reads, outer, since: scope.run.failed, list };
}

/** Whether a step does work of its own; the others choose or contain steps. */
const OWN_WORK: Readonly<Record<CompiledStep['kind'], boolean>> = {
  ...{ agent: true, ensemble: true, sleep: true, wait: true },
  ...{ route: false, if: false, switch: false, foreach: false, while: false, parallel: false, try: false },
};

/**
 * Takes the snapshot of the state that the step reads, and evaluates its condition. A step whose condition does not hold is skipped;
 * one whose condition can't be evaluated has failed. When a step with work of its own runs, the failures that its guards check are
 * handled.
 *
 * @param guards - the guards that led to the step
 * @returns those guards and the step's own condition; undefined when the step does not run
 */
export function enterStep(
  step: CompiledStep,
  scope: RunScope,
  guards: GuardChain,
): MaybePromise<GuardChain | undefined> {
  const { readsState, condition }: StepEntry = step;
  if (readsState) return andThen(takeSnapshot(scope), () => checkCondition(condition, step, scope, guards));
  return checkCondition(condition, step, scope, guards);
}

function checkCondition(
  condition: CompiledGuard | undefined,
  step: CompiledStep,
  scope: RunScope,
  guards: GuardChain,
): MaybePromise<GuardChain | undefined> {
  if (!condition) return markHandled(step, scope, guards);
  const { key, slot, continueOnError }: StepEntry = step;
  const holds = evaluateGuard(condition, key, scope, slot, continueOnError);
  if (isPromise(holds)) return holds.then((stored) => followCondition(stored, condition, step, scope, guards));
  return followCondition(holds, condition, step, scope, guards);
}

function followCondition(
  holds: boolean | undefined,
  condition: CompiledGuard,
  step: CompiledStep,
  scope: RunScope,
  guards: GuardChain,
): GuardChain | undefined {
  if (holds === false) skip(step, scope);
  else if (holds === undefined) markRefused(step, scope);
  const list = step.kind === 'foreach' ? step.body : undefined;
  return holds ? markHandled(step, scope, addGuard(condition, guards, scope, list)) : undefined;
}

/** @returns the guards */
function markHandled({ kind }: CompiledStep, scope: RunScope, guards: GuardChain): GuardChain {
  if (scope.run.unhandled === 0 || !OWN_WORK[kind]) return guards;
  let at = scope;
  for (let chain: GuardChain | undefined = guards; chain; chain = chain.outer) {
    at = chain.outside ?? at;
    for (const slot of chain.reads) at.handle(slot, chain.since);
  }
  return guards;
}

function skip(step: CompiledStep, scope: RunScope): void {
  const { slot }: StepEntry = step;
  scope.lastOutput = null;
  if (slot) scope.put(slot.slot, SKIPPED, 0);
  markStep(step, 'skipped', scope);
}
