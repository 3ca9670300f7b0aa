/** Decides whether a failure may still be handled by a later step: the table in `run-list.ts` as code. */

import type { CompiledList } from '../compiled/compiled-ensemble.ts';
import type { GuardChain } from './enter-step.ts';
import type { PendingFailure, RunScope } from './run-scope.ts';

/**
 * A failure stays open while
 * - a later guard checks it, in this list or in a list around it, or
 * - a guard that checks it led to a list that has steps left.
 *
 * @param index - the index in `list` of the step that ran last
 * @param guards - the guards that led to `list`
 * @param last - the outermost list whose guards may handle the failure
 */
export function isOpen(
  { slots, place = 0 }: PendingFailure,
  list: CompiledList,
  index: number,
  guards: GuardChain,
  last: CompiledList | undefined,
): boolean {
  let chain: GuardChain | undefined = guards;
  let isWalking = false;
  for (let at: CompiledList['parent'] = { list, index }; at; at = at.list.parent) {
    const { steps, guardedAfter } = at.list;
    const ahead = guardedAfter[at.index];
    if (ahead && slots.some((slot) => ahead.has(slot))) return true;
    isWalking ||= at.index + 1 < steps.length;
    // Each guard led to a list around this step, the nearest list first, or to a single step.
    for (; chain && (chain.list === at.list || chain.list === undefined); chain = chain.outer) {
      const { reads, since } = chain;
      if (isWalking && place <= since && slots.some((slot) => reads.includes(slot))) return true;
    }
    if (at.list === last) return false;
  }
  return false;
}

/** Whether the walk ends after a step: a failure of this scope, or of a scope around it, can no longer be handled. */
export function endsWalk(scope: RunScope, list: CompiledList, index: number, guards: GuardChain): boolean {
  // Names handled by steps of an item or a branch; the level around it gets them when the block is done.
  let handled: readonly ReadonlySet<string>[] = [];
  const isHandled = ({ slots }: PendingFailure) => handled.some((names) => slots.some(({ name }) => names.has(name)));
  for (let level: RunScope | undefined = scope; level; level = level.outer) {
    for (const failure of level.failures ?? []) {
      if (!isHandled(failure) && !isOpen(failure, list, index, guards, level.caughtBy)) return true;
    }
    if (level.isApart) return false;
    if (level.handled) handled = [...handled, level.handled];
  }
  return false;
}
