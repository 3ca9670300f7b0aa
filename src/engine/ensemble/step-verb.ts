/** The verb of a step: the key that says what it does. Each form of a step has one. */

import type { StepDefinition } from './ensemble.ts';

export const VERBS = [
  'agent',
  'if',
  'switch',
  'foreach',
  'while',
  'parallel',
  'try',
  'sleep',
  'wait',
  'ensemble',
] as const;

export type StepVerb = (typeof VERBS)[number];

/** The steps with a verb. */
export type StepOf<V extends StepVerb> = V extends StepVerb
  ? Extract<StepDefinition, Readonly<Record<V, unknown>>>
  : never;

/** The form of a step that is missing above, as a type error. */
type Known<S extends StepOf<StepVerb>> = S;

/** @returns undefined for a step that this version does not know */
export function verbOf(step: Known<StepDefinition>): StepVerb | undefined {
  return VERBS.find((verb) => Object.hasOwn(step, verb));
}
