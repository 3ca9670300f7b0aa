/** One level of the flow while it is walked: its guards, its snapshot of the state, and what becomes of its names. */

import type { CompiledGuard } from '../definition/compiled-ensemble.ts';
import type { NameSlot } from '../definition/names.ts';
import type { NameResult } from '../definition/scope.ts';
import { isTruthy } from '../expression/is-truthy.ts';
import type { JsonObject } from '../json.ts';
import type { MaybePromise } from '../ports/operation.ts';
import { toFailure } from './failure.ts';
import type { RunScope } from './run.ts';

/** The result of a name whose step was not run. */
export const SKIPPED: NameResult = Object.freeze({ status: 'skipped', output: null });

/** The slot of failures that no name stands for: nothing can guard them. */
export const NO_NAME: NameSlot = { name: '', slot: -1 };

/** Guards that led to where the walk is: when a step runs, the failures that they look at are handled. */
export interface GuardChain {
  readonly guard: CompiledGuard;
  readonly outer: GuardChain | undefined;
}

/** Takes the one snapshot of the state that a step reads, then goes on. */
export function afterSnapshot<T>(scope: RunScope, then: () => MaybePromise<T>): MaybePromise<T> {
  const stored = scope.run.journal.readState();
  const use = (state: JsonObject | undefined) => {
    scope.state = state ?? scope.run.compiled.initialState ?? scope.state;
    return then();
  };
  return stored instanceof Promise ? stored.then(use) : use(stored);
}

/** Marks what the guards look at as handled: they led to a step that runs now. */
export function markHandled(guards: GuardChain | undefined, scope: RunScope): void {
  for (let chain = guards; chain; chain = chain.outer) {
    for (const slot of chain.guard.reads)
      for (let level: RunScope | undefined = scope; level; level = level.parent) level.handle(slot);
  }
}

/**
 * Reads a guard. @returns undefined when it can't be read; the failure is noted under `slot`
 *
 * @param handled - the step has `continueOnError`
 */
export function readGuard(
  guard: CompiledGuard,
  key: string,
  scope: RunScope,
  slot: NameSlot,
  handled = false,
): boolean | undefined {
  try {
    return isTruthy(guard.evaluate(scope.begin(scope.keyPrefix + key, 'condition')));
  } catch (thrown) {
    noteFailure(thrown, scope, slot, handled);
    return undefined;
  }
}

/** Gives a name a failed result for something thrown outside an operation, and notes the failure. */
export function noteFailure(thrown: unknown, scope: RunScope, slot: NameSlot, handled = false): void {
  const { code, message } = toFailure(thrown, scope.run.ports.mask);
  const error = slot === NO_NAME ? { code, message } : { code, message, agent: slot.name };
  if (slot !== NO_NAME) scope.results[slot.slot] = { status: 'failed', output: null, error };
  scope.lastOutput = null;
  if (!handled) scope.fail({ slot, router: undefined, error });
}

export function skip(slot: NameSlot | undefined, key: string, scope: RunScope): true {
  scope.lastOutput = null;
  if (slot) {
    scope.results[slot.slot] = SKIPPED;
    scope.run.ports.emit?.('agent.skipped', {
      executionId: scope.run.accepted.id,
      agent: slot.name,
      key: scope.keyPrefix + key,
    });
  }
  return true;
}
