/** Random flows for the property tests: shapes, then names and guards that are valid where they are. */

import * as fc from 'fast-check';
import { declared, type Guard, listsOf, type Step, type StepOf } from './flow-model.ts';
import { type GuardShape, type Shape, type ShapeOptions, shapes } from './random-shapes.ts';

const ANY = ['all', 'any', 'first'] as const;
const one = fc.constant(1);
const several = fc.integer({ min: 1, max: 4 });

/** Flows whose blocks run one part at a time: the order of effects is fixed. */
export const sequentialFlow = flowOf({
  concurrency: one,
  scripts: ['ok', 'ok', 'boom', 'flaky'],
  waitFor: ANY,
  sees: true,
});
/** Flows with concurrent blocks, in which no agent fails for good. */
export const concurrentFlow = flowOf({ concurrency: several, scripts: ['ok', 'flaky'], waitFor: ['all'], sees: true });
/** Flows with concurrent blocks, in which anything may fail. */
export const unrulyFlow = flowOf({
  concurrency: several,
  scripts: ['ok', 'boom', 'flaky'],
  waitFor: ANY,
  sees: true,
});

function flowOf(options: ShapeOptions): fc.Arbitrary<readonly Step[]> {
  return shapes(options).map((list) => {
    let next = 0;
    const bare = nameAll(list, () => `s${next++}`);
    return guardAll(bare, list, [...declared(bare)]);
  });
}

const ALWAYS: Guard = { kind: 'fixed', holds: true };

// Names first, guards second: a guard may read the name of a later step.
function nameAll(list: readonly Shape[], fresh: () => string): readonly Step[] {
  return list.map((shape) => nameOne(shape, fresh));
}

function nameOne(shape: Shape, fresh: () => string): Step {
  const lists = (list: readonly Shape[] | undefined) => list && nameAll(list, fresh);
  switch (shape.kind) {
    case 'agent':
      return { ...shape, name: fresh(), condition: undefined, sees: [] };
    case 'if':
      return { kind: 'if', guard: ALWAYS, then: nameAll(shape.then, fresh), else: lists(shape.else) };
    case 'switch': {
      // At least one case has steps.
      const yes = shape.yes ?? (shape.no || shape.other ? undefined : []);
      return { kind: 'switch', on: ALWAYS, yes: lists(yes), no: lists(shape.no), other: lists(shape.other) };
    }
    case 'foreach': {
      const { named, body, ...rest } = shape;
      return { ...rest, name: named ? fresh() : undefined, condition: undefined, body: nameAll(body, fresh) };
    }
    case 'while': {
      const { rounds, most, body } = shape;
      return { kind: 'while', tick: fresh(), rounds, most, guard: ALWAYS, body: nameAll(body, fresh) };
    }
    case 'parallel': {
      const { named, branches, ...rest } = shape;
      return { ...rest, name: named ? fresh() : undefined, condition: undefined, branches: nameAll(branches, fresh) };
    }
    case 'try': {
      const caught = shape.catch && { caught: fresh(), steps: nameAll(shape.catch, fresh) };
      // A `try` without `catch` and `finally` is refused.
      const cleanup = shape.finally ?? (caught ? undefined : []);
      return { kind: 'try', body: nameAll(shape.body, fresh), catch: caught, finally: lists(cleanup) };
    }
    case 'sleep':
      return { kind: 'sleep', name: shape.named ? fresh() : undefined, ms: shape.ms, condition: undefined };
    case 'wait':
      return { kind: 'wait', name: shape.named ? fresh() : undefined, never: shape.never, condition: undefined };
    case 'route': {
      const name = fresh();
      return { kind: 'route', name, entries: shape.entries.map(({ script }) => ({ script, member: fresh() })) };
    }
  }
}

/** @param visible - the names that can be read where the list is */
function guardAll(steps: readonly Step[], list: readonly Shape[], visible: readonly string[]): readonly Step[] {
  return steps.map((step, i) => guardOne(step, list[i] as Shape, visible));
}

function guardOne(step: Step, shape: Shape, visible: readonly string[]): Step {
  const guard = (given: GuardShape) => toGuard(given, visible);
  const condition = 'condition' in shape && shape.condition ? guard(shape.condition) : undefined;
  const inside = (steps: readonly Step[], list: unknown, names = visible) =>
    guardAll(steps, (list ?? []) as readonly Shape[], names);
  const maybe = (steps: readonly Step[] | undefined, list: unknown) => steps && inside(steps, list);
  const as = <K extends Shape['kind']>(_kind: K) => shape as Extract<Shape, { kind: K }>;
  switch (step.kind) {
    case 'agent': {
      const sees = as('agent').sees.flatMap((pick) => visible[pick % visible.length] ?? []);
      return { ...step, condition, sees: [...new Set(sees)] };
    }
    case 'if': {
      const given = as('if');
      return {
        ...step,
        guard: guard(given.guard),
        then: inside(step.then, given.then),
        else: maybe(step.else, given.else),
      };
    }
    case 'switch': {
      const { yes, no, other, guard: on } = as('switch');
      return {
        kind: 'switch',
        on: guard(on),
        yes: maybe(step.yes, yes),
        no: maybe(step.no, no),
        other: maybe(step.other, other),
      };
    }
    case 'foreach':
      return { ...step, condition, body: inside(step.body, as('foreach').body, [...declared(step.body), ...visible]) };
    case 'while':
      return { ...step, guard: guard(as('while').guard), body: inside(step.body, as('while').body) };
    case 'parallel':
      return { ...step, condition, branches: besides(step, as('parallel').branches, visible) };
    case 'try': {
      const given = as('try');
      const caught = step.catch && { ...step.catch, steps: inside(step.catch.steps, given.catch) };
      const cleanup = maybe(step.finally, given.finally);
      return { ...step, body: inside(step.body, given.body), catch: caught, finally: cleanup };
    }
    case 'sleep':
    case 'wait':
      return { ...step, condition };
    case 'route': {
      const { entries, last } = as('route');
      const isDefault = (i: number) => last === 'default' && i === entries.length - 1;
      const guarded = step.entries.map((entry, i) => {
        const given = entries[i]?.guard as GuardShape;
        return { ...entry, guard: isDefault(i) ? undefined : guard(given) };
      });
      return { ...step, condition, entries: guarded };
    }
  }
}

/** A branch reads no name of the concurrent branches. */
function besides(step: StepOf<'parallel'>, list: readonly Shape[], visible: readonly string[]): readonly Step[] {
  const own = step.branches.map((branch) => declared([branch]));
  return step.branches.map((branch, i) => {
    const hidden = new Set(own.flatMap((names, j) => (j === i ? [] : [...names])));
    const readable = visible.filter((name) => !hidden.has(name));
    return guardOne(branch, list[i] as Shape, readable);
  });
}

function toGuard({ kind, pick, other }: GuardShape, names: readonly string[]): Guard {
  const name = names[pick % Math.max(1, names.length)];
  if (kind === 'state') return { kind, atLeast: pick % 4 };
  if (name === undefined || kind === 'fixed') return { kind: 'fixed', holds: pick % 2 === 0 };
  if (kind === 'both') return { kind, failed: name, succeeded: names[other % names.length] as string };
  return { kind, name };
}

/** How many steps a flow has, steps inside blocks included. */
export function sizeOf(steps: readonly Step[]): number {
  return steps.reduce((sum, step) => sum + 1 + listsOf(step).reduce((inner, list) => inner + sizeOf(list), 0), 0);
}
