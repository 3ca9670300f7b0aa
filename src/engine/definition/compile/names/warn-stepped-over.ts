/** Warns of steps that run although an earlier step has failed, because a condition after them reads that failure. */

import { formatPath } from '../../../base/json/json.ts';
import { oneOf, quoted } from '../../../base/wording.ts';
import type { CompiledStep, StepEntry } from '../../../compiled/compiled-ensemble.ts';
import type { StepDefinition } from '../../../ensemble/ensemble.ts';
import type { Report } from '../../forms/check-shape.ts';
import type { Path } from '../../source/problem.ts';

/** A step of a list, as it was written and compiled. */
export interface WrittenStep {
  readonly step: StepDefinition;
  readonly compiled: CompiledStep;
  readonly path: Path;
}

/**
 * @param list - the steps of one list, in order
 * @param at - the step that may fail
 * @param reader - the first step after it that has a condition which reads its failure
 */
export function warnOfSteppedOver(list: readonly WrittenStep[], at: number, reader: number, report: Report): void {
  const { slot, continueOnError }: StepEntry = (list[at] as WrittenStep).compiled;
  const first = list[at + 1] as WrittenStep;
  if (!slot || continueOnError || reader === at + 1) return;
  const { step, path } = list[reader] as WrittenStep;
  const read = `${slot.name}.${JSON.stringify(step).includes(`${slot.name}.failed`) ? 'failed' : 'success'}`;
  const between = list.slice(at + 1, Math.min(reader, at + 1 + MAX_NAMES)).map((one) => nameOf(one.step, one.path));
  const others = reader - at - 1 - between.length;
  const names = others > 0 ? `${oneOf(between, 'and')}, and ${others} more steps,` : oneOf(between, 'and');
  const verb = between.length === 1 ? 'runs' : 'run';
  const message = `${names} ${verb} even when ${quoted(slot.name)} has failed, because the condition of ${quoted(nameOf(step, path))} reads \`${read}\`; to stop there, put the steps into a \`try\` with a \`catch\``;
  report({ path: first.path, message, warning: true });
}

const MAX_NAMES = 5;

function nameOf(step: StepDefinition, path: Path): string {
  const { name, agent, ensemble } = step as { name?: string; agent?: string; ensemble?: string };
  return name ?? agent ?? ensemble ?? formatPath(path);
}
