/** Whether a failure that nothing has handled yet may still be handled from where the walk is: the table in `run-list.ts`, decided. */

import type { CompiledList } from '../definition/compiled-ensemble.ts';
import type { GuardChain } from './level.ts';
import type { Failure, RunScope } from './run-scope.ts';

/**
 * A failure stays open while
 * - a guard that reads it is ahead, in this list or in one around it, or
 * - a branch that a guard on it led to has steps ahead.
 *
 * @param index - the step of `list` that was walked last
 * @param guards - those that led to `list`
 * @param last - the outermost list whose guards may handle it
 */
export function isOpen(
  { slots, place = 0 }: Failure,
  list: CompiledList,
  index: number,
  guards: GuardChain | undefined,
  last: CompiledList | undefined,
): boolean {
  let chain = guards;
  let isWalking = false;
  for (let at: CompiledList['parent'] = { list, index }; at; at = at.list.parent) {
    const { steps, guardedAfter } = at.list;
    const ahead = guardedAfter[at.index];
    if (ahead && slots.some((slot) => ahead.has(slot))) return true;
    isWalking ||= at.index + 1 < steps.length;
    // Each guard led to a list around this place, the nearest one first, or to a single step.
    for (; chain && (chain.list === at.list || chain.list === undefined); chain = chain.outer) {
      const { guard, since } = chain;
      if (isWalking && place <= since && slots.some((slot) => guard.reads.includes(slot))) return true;
    }
    if (at.list === last) return false;
  }
  return false;
}

/** Whether the walk ends behind a step: a failure, of this stretch or of one around it, can't be handled any more. */
export function endsWalk(scope: RunScope, list: CompiledList, index: number, guards: GuardChain | undefined): boolean {
  // Handled by steps of an item; the level around it comes to know when the block is done.
  let handled: readonly ReadonlySet<string>[] = [];
  const isHandled = ({ slots }: Failure) => handled.some((names) => slots.some(({ name }) => names.has(name)));
  for (let level: RunScope | undefined = scope; level; level = level.outer) {
    for (const failure of level.failures ?? []) {
      if (!isHandled(failure) && !isOpen(failure, list, index, guards, level.caughtBy)) return true;
    }
    if (level.isApart) return false;
    if (level.handled) handled = [...handled, level.handled];
  }
  return false;
}
