/** Runs a `while`, round after round, and a `switch`: what is decided by a value that the flow gave. */

import type { CompiledList, CompiledSwitchStep, CompiledWhileStep } from '../definition/compiled-ensemble.ts';
import { OrchestratorError } from '../errors.ts';
import type { Json } from '../json.ts';
import type { MaybePromise } from '../ports/operation.ts';
import { afterSnapshot, decide, type GuardChain, led, NO_NAME, noteFailure, noteOnce, stopsRecall } from './level.ts';
import type { RunScope } from './run-scope.ts';

/** Walks a list of steps; handed in, because a list holds blocks that hold lists. */
export type RunBody = (list: CompiledList, scope: RunScope, guards: GuardChain | undefined) => MaybePromise<boolean>;

export async function runWhile(
  step: CompiledWhileStep,
  scope: RunScope,
  guards: GuardChain | undefined,
  runBody: RunBody,
): Promise<boolean> {
  scope.lastOutput = null;
  for (let round = 0; ; round++) {
    scope.run.count();
    if (scope.halt.reason !== undefined) return false;
    const key = `${step.key}.while[${round}]`;
    const check = () => decide(step.guard, key, scope, NO_NAME, false, (said) => said);
    const holds = await (step.guard.readsState ? afterSnapshot(scope, check) : check());
    if (!holds) return true;
    if (round >= step.maxIterations) {
      const message = `\`while\` at ${scope.keyPrefix}${step.key} still holds after ${round} ${round === 1 ? 'round' : 'rounds'} (\`maxIterations\`)`;
      noteFailure(new OrchestratorError('ITERATION_LIMIT', message), scope, NO_NAME);
      return true;
    }
    const chain = led(step.guard, guards, scope, step.body);
    const body = scope.stretch(scope.halt, `${scope.keyPrefix}${key}.`);
    body.isApart = true;
    const goesOn = await runBody(step.body, body, chain);
    scope.absorb(body);
    if (!goesOn) return false;
  }
}

export async function runSwitch(
  step: CompiledSwitchStep,
  scope: RunScope,
  guards: GuardChain | undefined,
  runBody: RunBody,
): Promise<boolean> {
  const chosen = await choose(step, scope);
  scope.lastOutput = null;
  if (chosen === undefined) return true;
  const list = (chosen === null ? undefined : step.cases.get(chosen)) ?? step.default;
  return list ? runBody(list, scope, led(step.value, guards, scope, list)) : true;
}

/** @returns the case's name; null for a value that names none, undefined when it can't be read (the failure is noted) */
function choose(step: CompiledSwitchStep, scope: RunScope): MaybePromise<string | null | undefined> {
  const key = scope.keyPrefix + step.key;
  const read = () => textOf(step.value.evaluate(scope.begin(key, 'switch')));
  if (!step.value.readsState) {
    try {
      return read();
    } catch (thrown) {
      noteFailure(thrown, scope, NO_NAME);
      return undefined;
    }
  }
  // The state may be another one when the run is taken up again; its way must not be.
  if (stopsRecall(`${key}.switch`, scope)) return undefined;
  const noted = noteOnce(`${key}.switch`, () => ({ chosen: read() }), scope, NO_NAME);
  return noted instanceof Promise ? noted.then((note) => note?.chosen) : noted?.chosen;
}

// Cases are texts: a number or a truth value chooses by how it is written.
function textOf(value: Json): string | null {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : null;
}
