/** The lists of steps inside a step, by its form. */

import type { StepDefinition, WaitStep } from './ensemble.ts';
import { type StepVerb, verbOf } from './step-verb.ts';

export interface StepLists {
  /** The keys that hold lists of steps. */
  readonly lists: readonly string[];
  /** The key that holds lists of steps by names. */
  readonly named?: string;
  /** At most one of its lists runs, so that several of them may use the same name. */
  readonly isExclusive?: true;
}

const NO_LISTS: StepLists = { lists: [] };
const STEP_LISTS: Readonly<Record<StepVerb, StepLists>> = {
  ...{ agent: NO_LISTS, sleep: NO_LISTS, wait: NO_LISTS, ensemble: NO_LISTS },
  if: { lists: ['then', 'else'], isExclusive: true },
  foreach: { lists: ['steps'] },
  parallel: { lists: ['parallel'] },
  switch: { lists: ['default'], named: 'cases', isExclusive: true },
  while: { lists: ['steps'] },
  try: { lists: ['try', 'catch', 'finally'] },
};

/** The keys of a form that hold lists. @param verb - also another spelling of a verb, which has no lists */
export function listsOf(verb: string): StepLists {
  return Object.hasOwn(STEP_LISTS, verb) ? STEP_LISTS[verb as StepVerb] : NO_LISTS;
}

/** A list of steps inside a step. */
export interface InnerList {
  /** Its path in the step, such as `['then']` or `['cases', 'refund']`. */
  readonly path: readonly string[];
  readonly steps: readonly StepDefinition[];
}

const ALL_LISTS = Object.values(STEP_LISTS);
const NAMED_LISTS = ALL_LISTS.flatMap(({ named }) => named ?? []);
const LISTS = [...new Set(ALL_LISTS.flatMap(({ lists }) => lists))];

/**
 * The lists of steps in a step, in a fixed order. In an unchecked step, values that are not lists are left out. Everything that visits
 * the steps of a flow calls it.
 */
export function innerLists(step: object): InnerList[] {
  const fields = step as Readonly<Record<string, unknown>>;
  const lists: InnerList[] = [];
  const add = (path: readonly string[], steps: unknown) => {
    if (Array.isArray(steps)) lists.push({ path, steps });
  };
  for (const key of NAMED_LISTS) {
    const named = fields[key];
    if (typeof named !== 'object' || named === null) continue;
    for (const [name, steps] of Object.entries(named)) add([key, name], steps);
  }
  for (const key of LISTS) if (Object.hasOwn(fields, key)) add([key], fields[key]);
  return lists;
}

/** The `wait` steps of a flow, also inside blocks. */
export function waitsIn(steps: readonly StepDefinition[]): WaitStep[] {
  return steps.flatMap((step) => ('wait' in step ? [step] : innerLists(step).flatMap((inner) => waitsIn(inner.steps))));
}

/** Whether at most one of the step's lists runs. */
export function hasExclusiveLists(step: StepDefinition): boolean {
  const verb = verbOf(step);
  return verb !== undefined && STEP_LISTS[verb].isExclusive === true;
}
