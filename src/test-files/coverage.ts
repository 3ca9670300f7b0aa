/** Which steps of the tested ensembles no test ran. */

import type { EnsembleDefinition, StepDefinition } from '../engine/ensemble/ensemble.ts';
import { innerLists } from '../engine/ensemble/inner-lists.ts';
import type { RanStep } from './run-test.ts';

export interface Coverage {
  readonly ensemble: string;
  /** The steps that do something: blocks around them are not counted. */
  readonly steps: number;
  readonly ran: number;
  /** Steps, and branches of which no step ran, in the order of the flow. */
  readonly missing: readonly MissingPart[];
}

export interface MissingPart {
  /** Its position, such as `flow[2]` for a step and `flow[2].then` for a branch. */
  readonly key: string;
  /** What it has, such as the name of its agent. */
  readonly what: string;
}

export function coverageOf({ name, flow }: EnsembleDefinition, all: readonly RanStep[]): Coverage {
  const keys = all.filter(({ ensemble }) => ensemble === name).map(({ key }) => key);
  const hasRun = (key: string) =>
    keys.some((ran) => ran === key || ran.startsWith(`${key}.`) || ran.startsWith(`${key}[`));
  const missing: MissingPart[] = [];
  let steps = 0;
  let ran = 0;
  /** @param isKnown - a part around it is missing already */
  const visit = (list: readonly StepDefinition[], at: string, isKnown: boolean): void => {
    for (const [i, step] of list.entries()) {
      const key = `${at}[${i}]`;
      const lists = innerLists(step);
      const found = hasRun(key);
      if (lists.length === 0) {
        steps += 1;
        if (found) ran += 1;
        else if (!isKnown) missing.push({ key, what: labelOf(step) });
      }
      for (const inner of lists) {
        const branch = `${key}.${inner.path.join('.')}`;
        const isMissing = !isKnown && inner.steps.length > 0 && !hasRun(branch);
        if (isMissing) missing.push({ key: branch, what: inner.steps.map(labelOf).join(', ') });
        visit(inner.steps, branch, isKnown || isMissing);
      }
    }
  };
  visit(flow, 'flow', false);
  return { ensemble: name, steps, ran, missing };
}

function labelOf(step: StepDefinition): string {
  if ('name' in step && step.name !== undefined) return step.name;
  if ('agent' in step) return step.agent;
  const [verb = 'step', value] = Object.entries(step)[0] ?? [];
  return typeof value === 'string' ? `${verb} ${value}` : verb;
}
