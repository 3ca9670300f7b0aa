/** Finds the failures that the guards of a step and of its inner steps read. */

import type { CompiledGuard, CompiledList, CompiledStep } from '../../../compiled/compiled-ensemble.ts';
import type { NameSlot } from '../../../compiled/name-slot.ts';

/** The names whose `.failed` or `.success` a guard in a list of steps reads. */
export function guardReads(list: CompiledList | undefined): readonly NameSlot[] {
  return (list?.steps ?? []).flatMap(readsOfStep);
}

/** Like {@link guardReads}, for one step and its inner lists. */
export function readsOfStep(step: CompiledStep): readonly NameSlot[] {
  const of = (guard: CompiledGuard | undefined) => guard?.reads ?? [];
  switch (step.kind) {
    case 'agent':
      return of(step.condition);
    case 'route':
      return [...of(step.condition), ...step.entries.flatMap((entry) => of(entry.condition))];
    case 'if':
      return [...of(step.guard), ...guardReads(step.then), ...guardReads(step.else)];
    case 'switch':
      return [...of(step.value), ...[...step.cases.values()].flatMap(guardReads), ...guardReads(step.default)];
    case 'foreach':
      return [...of(step.condition), ...guardReads(step.body)];
    case 'while':
      return [...of(step.guard), ...guardReads(step.body)];
    case 'parallel':
      return [...of(step.condition), ...step.branches.flatMap(({ list }) => guardReads(list))];
    case 'try':
      // A guard in `finally` handles no failure from outside of it.
      return [...guardReads(step.body), ...guardReads(step.catch)];
    case 'ensemble':
    case 'sleep':
    case 'wait':
      return of(step.condition);
  }
}
