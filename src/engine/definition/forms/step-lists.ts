/** The lists of steps inside a step. Everything that visits the steps of a flow uses this file. */

import type { StepDefinition } from '../../model/ensemble.ts';

/** A list of steps inside a step. */
export interface InnerList {
  /** Its path in the step, such as `['then']` or `['cases', 'refund']`. */
  readonly path: readonly string[];
  readonly steps: readonly StepDefinition[];
}

const LIST_KEYS = ['then', 'else', 'steps', 'parallel', 'try', 'catch', 'finally', 'default'] as const;

/** The lists of steps in a step, in a fixed order. In an unchecked step, values that are not lists are left out. */
export function innerLists(step: object): InnerList[] {
  const fields = step as Readonly<Record<string, unknown>>;
  const lists: InnerList[] = [];
  const add = (path: readonly string[], steps: unknown) => {
    if (Array.isArray(steps)) lists.push({ path, steps });
  };
  const { cases } = fields;
  if (typeof cases === 'object' && cases !== null) {
    for (const [name, steps] of Object.entries(cases)) add(['cases', name], steps);
  }
  for (const key of LIST_KEYS) if (Object.hasOwn(fields, key)) add([key], fields[key]);
  return lists;
}

/** Whether at most one of the step's lists runs, so that several of them may use the same name. */
export function hasExclusiveLists(step: StepDefinition): boolean {
  return 'if' in step || 'switch' in step;
}
