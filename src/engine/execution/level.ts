/** One level of the flow while it is walked: its guards, its snapshot of the state, and what becomes of its names. */

import type { CompiledGuard, CompiledList } from '../definition/compiled-ensemble.ts';
import type { NameSlot } from '../definition/names.ts';
import type { NameResult } from '../definition/scope.ts';
import { OrchestratorError } from '../errors.ts';
import { isTruthy } from '../expression/is-truthy.ts';
import { type Json, type JsonObject, sizeOfJson } from '../json.ts';
import type { MaybePromise } from '../ports/operation.ts';
import { toFailure } from './failure.ts';
import { MOST_BYTES } from './halt.ts';
import type { RunScope } from './run-scope.ts';

/** The result of a name whose step was not run. */
export const SKIPPED: NameResult = Object.freeze({ status: 'skipped', output: null });

/** The slot of failures that no name stands for: nothing can guard them. */
export const NO_NAME: NameSlot = { name: '', slot: -1 };

/** Guards that led to where the walk is: when a step runs, the failures that they look at are handled. */
export interface GuardChain {
  readonly guard: CompiledGuard;
  readonly outer: GuardChain | undefined;
  /** How many failures there had been when it was read: those that came later it did not look at. */
  readonly since: number;
  /** The branch that it led to; undefined where that is a single step. */
  readonly list: CompiledList | undefined;
}

/** A guard was read, and led on. @param list - the branch that it led to */
export function led(
  guard: CompiledGuard,
  outer: GuardChain | undefined,
  scope: RunScope,
  list?: CompiledList,
): GuardChain {
  return { guard, outer, since: scope.run.failed, list };
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
    for (const slot of chain.guard.reads) scope.handle(slot, chain.since);
  }
}

/** Marks what led to a step that runs now, its own condition too. It was let in by now. */
export function markLed(
  { condition }: { readonly condition: CompiledGuard | undefined },
  guards: GuardChain | undefined,
  scope: RunScope,
): void {
  if (scope.run.unhandled === 0) return;
  markHandled(condition ? led(condition, guards, scope) : guards, scope);
}

/**
 * Reads a guard, and stores what it said where that can't be worked out again: the state may be another one when the run is
 * taken up after a crash, and what follows from the guard may have had its effect by then.
 *
 * @param then - is handed what the guard said; undefined when it can't be read (the failure is noted under `slot`)
 */
export function decide<T>(
  guard: CompiledGuard,
  key: string,
  scope: RunScope,
  slot: NameSlot,
  handled: boolean,
  then: (holds: boolean | undefined) => MaybePromise<T>,
): MaybePromise<T> {
  if (!guard.readsState) return then(readGuard(guard, key, scope, slot, handled));
  const noteKey = `${scope.keyPrefix}${key}?`;
  if (stopsRecall(noteKey, scope)) return then(undefined);
  const read = () => ({ holds: isTruthy(guard.evaluate(scope.begin(scope.keyPrefix + key, 'condition'))) });
  const noted = noteOnce(noteKey, read, scope, slot, handled, false);
  return noted instanceof Promise ? noted.then((note) => then(note?.holds)) : then(noted?.holds);
}

/**
 * Reads the condition of a step, if it has one: a step whose condition does not hold is skipped, and one whose condition can't be
 * read has failed.
 *
 * @param handled - the step has `continueOnError`
 * @returns whether the step runs
 */
export async function isLetIn(
  { key, slot, condition }: { key: string; slot: NameSlot | undefined; condition: CompiledGuard | undefined },
  scope: RunScope,
  handled = false,
): Promise<boolean> {
  if (!condition) return true;
  const holds = await decide(condition, key, scope, slot ?? NO_NAME, handled, (said) => said);
  if (holds === false) skip(slot, key, scope);
  return holds === true;
}

/**
 * Stores what `work` gives, or why it can't be worked out: what follows from it must stay as it is when the run is taken up again.
 *
 * @param executed - whether what failed had begun by then
 * @returns undefined when it can't be worked out; the failure is noted under `slot`
 */
export function noteOnce<T extends JsonObject>(
  key: string,
  work: () => T,
  scope: RunScope,
  slot: NameSlot,
  handled = false,
  executed = true,
): MaybePromise<T | undefined> {
  const noted = scope.run.journal.note(key, (): JsonObject => {
    try {
      return boundNote(work(), 'what it notes');
    } catch (thrown) {
      const { code, message } = toFailure(thrown, scope.run.ports.mask);
      return { code, message };
    }
  });
  const use = (note: Json): T | undefined => {
    const { code, message } = note as { readonly code?: string; readonly message?: string };
    if (code === undefined) return note as T;
    noteError({ code, message: message ?? '' }, scope, slot, handled, executed);
    return undefined;
  };
  return noted instanceof Promise ? noted.then(use) : use(noted as Json);
}

/** @throws INVALID_OUTPUT for what is too large to be stored as a note, or for a state */
export function boundNote<T extends Json>(value: T, what: string): T {
  if (sizeOfJson(value) <= MOST_BYTES) return value;
  throw new OrchestratorError(
    'INVALID_OUTPUT',
    `${what} is larger than 32 MiB; store large values and pass their keys`,
  );
}

/** Of a part that is over and walked again: whether it ends here, because what comes next is not stored. */
export function stopsRecall(key: string, scope: RunScope): boolean {
  const { recall } = scope.halt;
  if (recall === undefined || scope.run.journal.recalled(key)) return false;
  recall.root.stop('abandoned');
  return true;
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
    const { code, message } = toFailure(thrown, scope.run.ports.mask);
    noteError({ code, message }, scope, slot, handled, false);
    return undefined;
  }
}

/** Gives a name a failed result for something thrown outside an operation, and notes the failure. */
export function noteFailure(thrown: unknown, scope: RunScope, slot: NameSlot, handled = false): void {
  const { code, message } = toFailure(thrown, scope.run.ports.mask);
  noteError({ code, message }, scope, slot, handled, true);
}

function noteError(
  { code, message }: { readonly code: string; readonly message: string },
  scope: RunScope,
  slot: NameSlot,
  handled: boolean,
  executed: boolean,
): void {
  const error = slot === NO_NAME ? { code, message } : { code, message, agent: slot.name };
  if (slot !== NO_NAME) {
    const result: NameResult = { status: 'failed', output: null, error };
    scope.put(slot.slot, executed ? result : { ...result, executed: false }, 0);
  }
  scope.lastOutput = null;
  if (!handled) scope.fail({ slots: [slot], error });
}

export function skip(slot: NameSlot | undefined, key: string, scope: RunScope): true {
  scope.lastOutput = null;
  if (slot) {
    scope.put(slot.slot, SKIPPED, 0);
    scope.run.ports.emit?.('agent.skipped', {
      executionId: scope.run.accepted.id,
      agent: slot.name,
      key: scope.keyPrefix + key,
    });
  }
  return true;
}
