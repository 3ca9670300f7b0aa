/** Random flows for the property tests: shapes from fast-check, then names and guards that fit where they stand. */

import * as fc from 'fast-check';
import { declared, type Guard, type Step } from './reference-evaluator.ts';

// A guard before its names are known: numbers pick among the names that can be read where it stands.
interface GuardShape {
  readonly kind: Guard['kind'];
  readonly pick: number;
  readonly other: number;
}
type Shape =
  | {
      readonly kind: 'agent';
      readonly script: 'ok' | 'boom' | 'flaky';
      readonly condition?: GuardShape;
      readonly continueOnError: boolean;
      readonly counts: boolean;
    }
  | {
      readonly kind: 'if';
      readonly guard: GuardShape;
      readonly then: readonly Shape[];
      readonly else?: readonly Shape[];
    }
  | {
      readonly kind: 'foreach';
      readonly named: boolean;
      readonly items: number;
      readonly body: readonly Shape[];
      readonly condition?: GuardShape;
      readonly breakAt?: number;
      readonly collect: boolean;
      readonly continueOnError: boolean;
      readonly concurrency: number;
    }
  | {
      readonly kind: 'route';
      readonly condition?: GuardShape;
      readonly entries: readonly { readonly guard: GuardShape; readonly script: 'ok' | 'boom' }[];
      readonly last: 'guarded' | 'default';
    };

const guardShape: fc.Arbitrary<GuardShape> = fc.record({
  kind: fc.oneof(
    { weight: 5, arbitrary: fc.constant<Guard['kind']>('failed') },
    { weight: 2, arbitrary: fc.constantFrom<Guard['kind'][]>('succeeded', 'notFailed', 'both') },
    { weight: 2, arbitrary: fc.constantFrom<Guard['kind'][]>('executed', 'gaveOutput', 'fixed', 'state') },
  ),
  pick: fc.nat(1000),
  other: fc.nat(1000),
});

const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 });

/** @param concurrency - of blocks */
function shapes(
  concurrency: fc.Arbitrary<number>,
  scripts: fc.Arbitrary<'ok' | 'boom' | 'flaky'>,
): fc.Arbitrary<readonly Shape[]> {
  const { list } = fc.letrec<{
    list: readonly Shape[];
    step: Shape;
    agent: Shape;
    if: Shape;
    foreach: Shape;
    route: Shape;
  }>((tie) => ({
    list: fc.array(tie('step'), { minLength: 1, maxLength: 5, depthIdentifier: 'flow' }),
    step: fc.oneof(
      { depthSize: 'small', depthIdentifier: 'flow', withCrossShrink: true, maxDepth: 4 },
      { weight: 6, arbitrary: tie('agent') },
      { weight: 2, arbitrary: tie('if') },
      { weight: 2, arbitrary: tie('foreach') },
      { weight: 1, arbitrary: tie('route') },
    ),
    agent: fc.record({
      kind: fc.constant('agent' as const),
      script: scripts,
      condition: optional(guardShape),
      continueOnError: fc.integer({ min: 0, max: 3 }).map((n) => n === 3),
      counts: fc.boolean(),
    }) as fc.Arbitrary<Shape>,
    if: fc.record({
      kind: fc.constant('if' as const),
      guard: guardShape,
      then: tie('list'),
      else: optional(tie('list')),
    }) as fc.Arbitrary<Shape>,
    foreach: fc.record({
      kind: fc.constant('foreach' as const),
      named: fc.boolean(),
      items: fc.nat(3),
      body: tie('list'),
      condition: optional(guardShape),
      breakAt: optional(fc.nat(2)),
      collect: fc.boolean(),
      continueOnError: fc.boolean(),
      concurrency,
    }) as fc.Arbitrary<Shape>,
    route: fc.record({
      kind: fc.constant('route' as const),
      condition: optional(guardShape),
      entries: fc.array(fc.record({ guard: guardShape, script: fc.constantFrom('ok' as const, 'boom' as const) }), {
        minLength: 1,
        maxLength: 3,
      }),
      last: fc.constantFrom('guarded' as const, 'default' as const),
    }) as fc.Arbitrary<Shape>,
  }));
  return list;
}

/** Flows whose blocks take one item at a time: what they do has one order. */
export const sequentialFlow = flowOf(shapes(fc.constant(1), fc.constantFrom('ok', 'ok', 'boom', 'flaky')));
/** Flows whose blocks take several items at a time, and in which nothing fails for good. */
export const concurrentFlow = flowOf(shapes(fc.integer({ min: 1, max: 4 }), fc.constantFrom('ok', 'flaky')));
/** Flows whose blocks take several items at a time, and in which anything may fail. */
export const unrulyFlow = flowOf(shapes(fc.integer({ min: 1, max: 4 }), fc.constantFrom('ok', 'boom', 'flaky')));

function flowOf(list: fc.Arbitrary<readonly Shape[]>): fc.Arbitrary<readonly Step[]> {
  return list.map((shape) => {
    let next = 0;
    const named = nameAll(shape, () => `s${next++}`);
    return guardAll(named, []);
  });
}

type Named = {
  readonly shape: Shape;
  readonly name: string;
  readonly inner: readonly (readonly Named[])[];
  readonly members: readonly string[];
};

function nameAll(shapes: readonly Shape[], fresh: () => string): readonly Named[] {
  return shapes.map((shape) => {
    const name = fresh();
    const lists =
      shape.kind === 'if'
        ? [shape.then, ...(shape.else ? [shape.else] : [])]
        : shape.kind === 'foreach'
          ? [shape.body]
          : [];
    const members = shape.kind === 'route' ? shape.entries.map(() => fresh()) : [];
    return { shape, name, inner: lists.map((list) => nameAll(list, fresh)), members };
  });
}

// Names first, guards second: a guard may read a name that stands behind it.
function guardAll(steps: readonly Named[], outer: readonly string[]): readonly Step[] {
  const bare = toSteps(steps, () => ({ kind: 'fixed', holds: true }), outer);
  const visible = [...declared(bare), ...outer];
  return toSteps(steps, (shape) => toGuard(shape, visible), visible);
}

type ToGuard = (shape: GuardShape) => Guard;

function toSteps(steps: readonly Named[], guard: ToGuard, visible: readonly string[]): readonly Step[] {
  return steps.map((step) => toStep(step, guard, visible));
}

function toStep({ shape, name, inner, members }: Named, guard: ToGuard, visible: readonly string[]): Step {
  const maybe = (given: GuardShape | undefined) => (given ? guard(given) : undefined);
  switch (shape.kind) {
    case 'agent':
      return { ...shape, name, condition: maybe(shape.condition) };
    case 'if':
      return {
        kind: 'if',
        guard: guard(shape.guard),
        then: toSteps(inner[0] ?? [], guard, visible),
        ...(inner[1] && { else: toSteps(inner[1], guard, visible) }),
      };
    case 'foreach': {
      const { named, body: _body, ...rest } = shape;
      const body = guardAll(inner[0] ?? [], visible);
      return { ...rest, ...(named && { name }), condition: maybe(shape.condition), body };
    }
    case 'route':
      return {
        kind: 'route',
        name,
        condition: maybe(shape.condition),
        entries: shape.entries.map((entry, i) => ({
          member: members[i] as string,
          script: entry.script,
          guard: shape.last === 'default' && i === shape.entries.length - 1 ? undefined : guard(entry.guard),
        })),
      };
  }
}

function toGuard({ kind, pick, other }: GuardShape, names: readonly string[]): Guard {
  const name = names[pick % Math.max(1, names.length)];
  if (kind === 'state') return { kind, atLeast: pick % 4 };
  if (name === undefined || kind === 'fixed') return { kind: 'fixed', holds: pick % 2 === 0 };
  if (kind === 'both') return { kind, failed: name, succeeded: names[other % names.length] as string };
  return { kind, name };
}
