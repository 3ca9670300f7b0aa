/** Evaluates conditions, records decisions, and marks names as failed. */

import { OrchestratorError } from '../base/errors.ts';
import type { Json, JsonObject } from '../base/json/json.ts';
import { countedBytes } from '../base/json/measure-json.ts';
import { andThen, type MaybePromise } from '../base/maybe-promise.ts';
import type { CompiledGuard } from '../compiled/compiled-ensemble.ts';
import type { NameResult } from '../compiled/expression-scope.ts';
import type { NameSlot } from '../compiled/name-slot.ts';
import type { ExecutionError } from '../execution/execution.ts';
import { isTruthy } from '../expression/is-truthy.ts';
import { MAX_BYTES } from './cancellation-scope.ts';
import { toFailure } from './failure.ts';
import type { RunScope } from './run-scope.ts';

/** The result of a name whose step did not run. */
export const SKIPPED: NameResult = Object.freeze({ status: 'skipped', output: null });

/** The slot of failures without a name: no guard can check them. */
export const UNNAMED: NameSlot = { name: '', slot: -1 };

/** Takes the snapshot of the state for one step. */
export function takeSnapshot(scope: RunScope): MaybePromise<void> {
  return andThen(scope.run.journal.readState(), (state) => {
    scope.state = state ?? scope.run.compiled.initialState ?? scope.state;
  });
}

/**
 * Evaluates a guard. A guard that reads the state is recorded as a decision: the state may differ when the run is resumed after a
 * crash, and the steps that follow from the guard may already have had effects.
 *
 * @param slot - marked as failed when the guard can't be evaluated
 * @param handled - the step has `continueOnError`
 * @returns undefined when the guard can't be evaluated
 */
export function evaluateGuard(
  guard: CompiledGuard,
  key: string,
  scope: RunScope,
  slot = UNNAMED,
  handled = false,
): MaybePromise<boolean | undefined> {
  const evaluate = () => isTruthy(guard.evaluate(scope.begin(scope.keyPrefix + key, 'condition')));
  if (!guard.readsState) {
    try {
      return evaluate();
    } catch (thrown) {
      markFailed(thrown, scope, slot, handled, false);
      return undefined;
    }
  }
  const decisionKey = `${scope.keyPrefix}${key}?`;
  if (stopsReplay(decisionKey, scope)) return undefined;
  const decision = recordDecision(decisionKey, () => ({ holds: evaluate() }), scope, slot, handled, false);
  return andThen(decision, (stored) => stored?.holds);
}

/**
 * Records what `compute` returns, or why it fails: a replay must repeat the decision.
 *
 * @param handled - the step has `continueOnError`
 * @param executed - whether the step counts as begun when `compute` fails
 * @returns undefined when `compute` fails; then `slot` is marked as failed
 */
export function recordDecision<T extends JsonObject>(
  key: string,
  compute: () => T,
  scope: RunScope,
  slot = UNNAMED,
  handled = false,
  executed = true,
): MaybePromise<T | undefined> {
  const decision = scope.run.journal.decide(key, (): JsonObject => {
    try {
      return checkDecisionSize(compute(), 'the decision');
    } catch (thrown) {
      const { error } = toFailure(thrown, scope.run.ports.mask);
      // The list of steps reads the name of a step that could not begin from its decision.
      return slot === UNNAMED ? { ...error } : { ...error, name: slot.name };
    }
  });
  return andThen(decision, (stored) => {
    const { code, message = '', details } = stored as Partial<ExecutionError>;
    if (code === undefined) return stored as T;
    markFailedWith(details ? { code, message, details } : { code, message }, scope, slot, handled, executed);
    return undefined;
  });
}

/** @throws INVALID_OUTPUT for a decision or a state that is too large to be stored */
export function checkDecisionSize<T extends Json>(value: T, what: string): T {
  if (countedBytes(value) <= MAX_BYTES) return value;
  throw new OrchestratorError(
    'INVALID_OUTPUT',
    `${what} is larger than 32 MiB; store large values and pass their keys`,
  );
}

/**
 * In the replay of a part that was already over: stops it when the record under `key` is not stored.
 *
 * @param attempt - the attempt that the record needs to be of, or of a later one
 * @returns whether it stops here
 */
export function stopsReplay(key: string, scope: RunScope, attempt = 0): boolean {
  const { replay } = scope.cancellation;
  if (replay === undefined || (scope.run.journal.replayed(key)?.attempts ?? -1) >= attempt) return false;
  replay.root.stop('abandoned');
  return true;
}

/**
 * Marks a name as failed, for an error outside an operation.
 *
 * @param handled - the step has `continueOnError`
 * @param executed - whether the step counts as begun
 */
export function markFailed(thrown: unknown, scope: RunScope, slot = UNNAMED, handled = false, executed = true): void {
  markFailedWith(toFailure(thrown, scope.run.ports.mask).error, scope, slot, handled, executed);
}

function markFailedWith(
  failure: ExecutionError,
  scope: RunScope,
  slot: NameSlot,
  handled: boolean,
  executed: boolean,
): void {
  const error = slot === UNNAMED ? failure : { ...failure, agent: slot.name };
  if (slot !== UNNAMED) {
    const result: NameResult = { status: 'failed', output: null, error };
    scope.put(slot.slot, executed ? result : { ...result, executed: false }, 0);
  }
  scope.lastMarked = error;
  scope.lastOutput = null;
  if (!handled) scope.fail({ slots: [slot], error });
}
