/** The titles and the places of the steps of a flow, for everything that shows a flow. */

import type { StepDefinition } from './ensemble.ts';
import { innerLists } from './inner-lists.ts';
import { verbOf as knownVerb, type StepOf, type StepVerb } from './step-verb.ts';

/** A list of steps inside a step. */
export interface PlacedList {
  /** The name of the list: `then`, `catch`, a case; empty for a step with only one list. */
  readonly label: string;
  /** The key of the step that contains the list: `then`, `cases`, `steps`. */
  readonly part: string;
  /** The place of its first step is `${place}[0]`. */
  readonly place: string;
  readonly steps: readonly StepDefinition[];
}

/** Keys of a step other than its verb. */
const OTHER_KEYS: ReadonlySet<string> = new Set([
  'name',
  'condition',
  'continueOnError',
  'input',
  'timeout',
  'concurrency',
  'detached',
  'retry',
  'description',
]);

/** The key that says what a step does. For a step that this version does not know, the first key that may be a verb. */
export function verbOf(step: StepDefinition): string {
  return knownVerb(step) ?? Object.keys(step).find((key) => !OTHER_KEYS.has(key)) ?? 'step';
}

/** The lists inside a step, with their places. */
export function placedLists(step: StepDefinition, place: string): PlacedList[] {
  const verb = verbOf(step);
  return innerLists(step).map(({ path, steps }) => {
    const [part = ''] = path;
    const isLoop = verb === 'foreach' || verb === 'while';
    const inner = placeOf([place, ...(isLoop ? [verb] : []), ...path].join('.'));
    const label = isLoop || verb === 'parallel' ? '' : (path[1] ?? part);
    return { label, part, place: inner, steps };
  });
}

/** All steps of a flow, in their order, by their places. */
export function stepsByPlace(flow: readonly StepDefinition[]): ReadonlyMap<string, StepDefinition> {
  const found = new Map<string, StepDefinition>();
  const walk = (steps: readonly StepDefinition[], prefix: string): void => {
    for (const [i, step] of steps.entries()) {
      const place = `${prefix}[${i}]`;
      found.set(place, step);
      for (const list of placedLists(step, place)) walk(list.steps, list.place);
    }
  };
  walk(flow, 'flow');
  return found;
}

/** A step's place in the flow: the key of one of its runs without the numbers of items and rounds, such as `flow[2].foreach.steps[0]`. */
export function placeOf(key: string): string {
  return key.replace(/\.(foreach|while)\[\d+\](?=\.)/g, '.$1');
}

/** A step's path in its definition, from the key of one of its runs, such as `flow[2].steps[0]`. */
export function definitionPathOf(key: string): string {
  return key.replace(/\.(?:foreach|while)\[\d+\]/g, '');
}

/** The blocks around a run that have numbered parts, from its key: each with its key, such as `flow[2].foreach`, and the index of the part. */
export function blocksAround(key: string): readonly { readonly block: string; readonly index: number }[] {
  return [...key.matchAll(/\.(?:foreach|while|parallel)(?=\[(\d+)\])/g)].map(({ index: at, 0: verb, 1: number }) => ({
    block: key.slice(0, at + verb.length),
    index: Number(number),
  }));
}

/** The items and rounds of a run, from its key, such as `item 8, round 1`. */
export function passOf(key: string): string | undefined {
  const passes = [...key.matchAll(/\.(foreach|while)\[(\d+)\](?=\.)/g)];
  if (passes.length === 0) return undefined;
  const words = passes.map(
    ([, verb, number]) => `${verb === 'while' ? 'round' : 'item'} ${(Number(number) + 1).toLocaleString('en-US')}`,
  );
  return words.join(', ');
}

/** A step in a few words; for an agent, its name. */
export function titleOf(step: StepDefinition): string {
  const verb = knownVerb(step);
  if (verb !== undefined) return TITLES[verb](step as never);
  const other = verbOf(step);
  return `${other} ${expressionText((step as never)[other])}`;
}

const TITLES: { readonly [V in StepVerb]: (step: StepOf<V>) => string } = {
  agent: ({ agent, name }) => name ?? agent,
  if: (step) => `if ${expressionText(step.if)}`,
  switch: (step) => `switch ${expressionText(step.switch)}`,
  foreach: ({ foreach, as, concurrency = 1 }) =>
    `foreach ${expressionText(foreach)}${as === undefined ? '' : ` as ${as}`}${atOnce(concurrency)}`,
  while: (step) => `while ${expressionText(step.while)}`,
  parallel: ({ waitFor = 'all', concurrency = 1 }) =>
    `parallel${waitFor === 'all' ? '' : `, ${waitFor === 'any' ? 'until one succeeds' : 'until one ends'}`}${atOnce(concurrency)}`,
  try: () => 'try',
  sleep: ({ sleep }) =>
    typeof sleep === 'object' ? `sleep until ${expressionText(sleep.until)}` : `sleep ${durationText(sleep)}`,
  ensemble: ({ ensemble, detached }) => `ensemble ${ensemble}${detached ? ', detached' : ''}`,
  wait: ({ wait, timeout }) => `wait for ${wait}${timeout === undefined ? '' : `, at most ${durationText(timeout)}`}`,
};

function durationText(duration: number | string): string {
  return typeof duration === 'number' ? `${duration}ms` : expressionText(duration);
}

function atOnce(concurrency: number): string {
  return concurrency > 1 ? `, ${concurrency} at once` : '';
}

/** A value with expressions as text for people: `${x > 1}` becomes `x > 1`. */
export function expressionText(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value) ?? '';
  const whole = /^\s*\$\{((?:(?!\$\{)[\s\S])*)\}\s*$/.exec(value)?.[1];
  return (whole ?? value).trim();
}
