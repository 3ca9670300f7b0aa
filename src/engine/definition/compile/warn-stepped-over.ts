/** Warns of steps that run although an earlier step has failed, because a condition after them reads that failure. */

import { formatPath } from '../../base/json.ts';
import { oneOf, quoted } from '../../base/wording.ts';
import type { CompiledStep, StepEntry } from '../../compiled/compiled-ensemble.ts';
import type { StepDefinition } from '../../model/ensemble.ts';
import type { Report } from '../forms/check-shape.ts';
import type { Path } from '../source/problem.ts';
import { readsOfStep } from './guard-reads.ts';

/** A step of a list, as it was written and compiled. */
export interface WrittenStep {
  readonly step: StepDefinition;
  readonly compiled: CompiledStep;
  readonly path: Path;
}

/** @param list - the steps of one list, in order */
export function warnOfSteppedOver(list: readonly WrittenStep[], report: Report): void {
  list.forEach(({ compiled }, at) => {
    const { slot, continueOnError }: StepEntry = compiled;
    if (!slot || continueOnError) return;
    const reader = list.findIndex((later, i) => i > at && readsOfStep(later.compiled).includes(slot));
    const between = list.slice(at + 1, Math.max(reader, 0));
    const [first] = between;
    if (!first) return;
    const { step, path } = list[reader] as WrittenStep;
    const read = `${slot.name}.${JSON.stringify(step).includes(`${slot.name}.failed`) ? 'failed' : 'success'}`;
    const names = oneOf(between.map((one) => nameOf(one.step, one.path)).slice(0, MAX_NAMES), 'and');
    const verb = between.length === 1 ? 'runs' : 'run';
    const message = `${names} ${verb} even when ${quoted(slot.name)} has failed, because the condition of ${quoted(nameOf(step, path))} reads \`${read}\`; to stop there, put the steps into a \`try\` with a \`catch\``;
    report({ path: first.path, message, warning: true });
  });
}

const MAX_NAMES = 5;

function nameOf(step: StepDefinition, path: Path): string {
  const { name, agent, ensemble } = step as { name?: string; agent?: string; ensemble?: string };
  return name ?? agent ?? ensemble ?? formatPath(path);
}
