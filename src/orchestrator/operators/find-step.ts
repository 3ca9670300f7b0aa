/** Finds the step that a caller names, and says which steps come before it. */

import { invalid } from '../../engine/base/errors.ts';
import { suggestName } from '../../engine/base/suggest-name.ts';
import { quoted } from '../../engine/base/wording.ts';
import type { EnsembleDefinition, StepDefinition } from '../../engine/ensemble/ensemble.ts';
import { placeOf, stepsByPlace } from '../../engine/ensemble/flow-places.ts';

export interface FoundStep {
  /** Such as `flow[3]` or `flow[2].foreach[7].steps[0]`. */
  readonly key: string;
  readonly step: StepDefinition;
}

/**
 * @param named - the key of a step, or the name of its result if only one step has it
 * @throws INVALID_REQUEST if no step is meant, or several are
 */
export function findStep({ flow }: EnsembleDefinition, named: unknown, option: string): FoundStep {
  if (typeof named !== 'string' || named === '')
    throw invalid(`\`${option}\` must be the key of a step, such as \`flow[2]\`, or its name`);
  const steps = stepsByPlace(flow);
  const step = steps.get(placeOf(named));
  if (step && isRun(named)) return { key: named, step };
  const known = [...steps].filter(([, one]) => nameOf(one) === named);
  const [first, second] = known;
  if (first && second)
    throw invalid(
      `\`${option}\`: several steps have the name ${quoted(named)}; give the key of one: ${known.map(([place]) => place).join(', ')}`,
    );
  const [place, found] = first ?? (step ? [placeOf(named), step] : []);
  if (place === undefined || !found) {
    const near = suggestName(
      named,
      [...steps].flatMap(([at, one]) => [at, nameOf(one) ?? at]),
    );
    throw invalid(
      `\`${option}\`: there is no step ${quoted(named)}${near === undefined ? '' : `; did you mean \`${near}\`?`}`,
    );
  }
  if (isRun(place)) return { key: place, step: found };
  const example = place.replace(/\.(foreach|while)(?=\.)/g, '.$1[0]');
  throw invalid(
    `\`${option}\`: step ${quoted(named)} runs more than once; give the key of one run, such as \`${example}\``,
  );
}

/** Whether a place has the numbers of the items and rounds around it. */
function isRun(key: string): boolean {
  return !/\.(?:foreach|while)\./.test(key);
}

/** The name of its result. */
function nameOf(step: StepDefinition): string | undefined {
  if ('name' in step && step.name !== undefined) return step.name;
  if ('agent' in step) return step.agent;
  if ('wait' in step) return step.wait;
  return 'ensemble' in step ? step.ensemble : undefined;
}

/** What runs one after the other in a `try`. */
const SECTIONS = ['.try', '.catch', '.finally'];

/**
 * Whether what is recorded under a key stays when the flow runs again from a step: what comes before it, and what does not depend on it:
 * other branches of a `parallel` and other items of a `foreach` around it.
 */
export function staysBefore(key: string, from: string): boolean {
  const [record, start] = [key, from].map((one) => one.split(/\[(\d+)\]/)) as [string[], string[]];
  for (let at = 0; at < start.length - 1; at++) {
    const [own, other] = [record[at], start[at]];
    if (own === other) continue;
    if (own === undefined || other === undefined) return false;
    if (at % 2 === 0) {
      const [mine, its] = [SECTIONS.indexOf(own), SECTIONS.indexOf(other)];
      return mine >= 0 && mine < its;
    }
    const list = record[at - 1] as string;
    return list.endsWith('.foreach') || list.endsWith('.parallel') || Number(own) < Number(other);
  }
  return false;
}
