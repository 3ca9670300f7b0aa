/** Runs a `while`, round after round, and a `switch`. */

import { OrchestratorError } from '../../base/errors.ts';
import type { Json } from '../../base/json/json.ts';
import { andThen, type MaybePromise } from '../../base/maybe-promise.ts';
import type { CompiledSwitchStep, CompiledWhileStep } from '../../compiled/compiled-ensemble.ts';
import { addGuard, type GuardChain, type RunBody } from '../enter-step.ts';
import { evaluateGuard, markFailed, recordDecision, stopsReplay, takeSnapshot } from '../guards.ts';
import { lastError, markEnded, markRefused, markStep } from '../marks.ts';
import type { RunScope } from '../run-scope.ts';
import { isClean, restoreWalk, startsClean, walkOf } from './fold-walk.ts';

export async function runWhile(
  step: CompiledWhileStep,
  scope: RunScope,
  guards: GuardChain,
  runBody: RunBody,
): Promise<boolean> {
  const { run } = scope;
  const { journal } = run;
  const blockKey = `${scope.keyPrefix}${step.key}.while`;
  scope.lastOutput = null;
  markStep(step, 'begun', scope);
  const first = journal.fold && startsClean(scope) ? scope.results.slice() : undefined;
  const folded = journal.folded?.(blockKey);
  if (folded) restoreWalk(folded.left, step.names, scope);
  for (let round = folded?.over[0]?.[1] ?? 0; ; round++) {
    if (first && round > 0 && isClean(scope)) {
      const walk = walkOf(step.names, first, scope);
      journal.fold?.(blockKey, () => ({ over: [[0, round]], left: walk(), steps: run.steps }));
    }
    run.count();
    if (scope.cancellation.reason !== undefined) return false;
    const key = `${step.key}.while[${round}]`;
    if (step.guard.readsState) await takeSnapshot(scope);
    const holds = await evaluateGuard(step.guard, key, scope);
    if (!holds) {
      markStep(step, 'ended', scope, { rounds: round }, holds === undefined ? lastError(scope) : undefined);
      return true;
    }
    const { maxRounds } = run.ports;
    if (maxRounds !== undefined && round >= Math.min(maxRounds, step.maxIterations)) {
      markStep(step, 'ended', scope, { rounds: round, left: true });
      return true;
    }
    if (round >= step.maxIterations) {
      const message = `\`while\` at ${scope.keyPrefix}${step.key} still holds after ${round} ${round === 1 ? 'round' : 'rounds'} (\`maxIterations\`)`;
      markFailed(new OrchestratorError('ITERATION_LIMIT', message), scope);
      markStep(step, 'ended', scope, { rounds: round }, lastError(scope));
      return true;
    }
    const chain = addGuard(step.guard, guards, scope, step.body);
    const body = scope.fork(scope.cancellation, `${scope.keyPrefix}${key}.`);
    body.isApart = true;
    const reachedEnd = await runBody(step.body, body, chain);
    scope.absorb(body);
    if (!reachedEnd) {
      markEnded(step, scope, { rounds: round + 1 });
      return false;
    }
  }
}

export async function runSwitch(
  step: CompiledSwitchStep,
  scope: RunScope,
  guards: GuardChain,
  runBody: RunBody,
): Promise<boolean> {
  const chosen = await chooseCase(step, scope);
  scope.lastOutput = null;
  if (chosen === undefined) {
    markRefused(step, scope);
    return true;
  }
  const own = chosen === null ? undefined : step.cases.get(chosen);
  const list = own ?? step.default;
  markStep(step, 'chose', scope, { chose: own ? chosen : list ? 'default' : null });
  return list ? runBody(list, scope, addGuard(step.value, guards, scope, list)) : true;
}

/** @returns the case's name; null for a value that names no case; undefined when it can't be evaluated, and the failure is recorded */
function chooseCase(step: CompiledSwitchStep, scope: RunScope): MaybePromise<string | null | undefined> {
  const key = scope.keyPrefix + step.key;
  const read = () => textOf(step.value.evaluate(scope.begin(key, 'switch')));
  if (!step.value.readsState) {
    try {
      return read();
    } catch (thrown) {
      markFailed(thrown, scope);
      return undefined;
    }
  }
  // The state may differ when the run is resumed; the chosen case must not.
  if (stopsReplay(`${key}.switch`, scope)) return undefined;
  const decision = recordDecision(`${key}.switch`, () => ({ chosen: read() }), scope);
  return andThen(decision, (stored) => stored?.chosen);
}

// Cases are strings: a number or a boolean matches the case that is spelled like it.
function textOf(value: Json): string | null {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : null;
}
