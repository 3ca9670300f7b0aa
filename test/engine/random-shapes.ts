/** Shapes of random flows, from fast-check: forms nested in forms, without names. */

import * as fc from 'fast-check';
import type { Guard } from './flow-model.ts';

/** A guard before its names are known: numbers select from the names that can be read where it is. */
export interface GuardShape {
  readonly kind: Guard['kind'];
  readonly pick: number;
  readonly other: number;
}

type List = readonly Shape[];

export type Shape =
  | {
      readonly kind: 'agent';
      readonly script: 'ok' | 'boom' | 'flaky';
      readonly condition?: GuardShape;
      readonly continueOnError: boolean;
      readonly counts: boolean;
      readonly sees: readonly number[];
    }
  | { readonly kind: 'if'; readonly guard: GuardShape; readonly then: List; readonly else?: List }
  | {
      readonly kind: 'switch';
      readonly guard: GuardShape;
      readonly yes?: List;
      readonly no?: List;
      readonly other?: List;
    }
  | {
      readonly kind: 'foreach';
      readonly named: boolean;
      readonly items: number;
      readonly body: List;
      readonly condition?: GuardShape;
      readonly breakAt?: number;
      readonly collect: boolean;
      readonly continueOnError: boolean;
      readonly concurrency: number;
    }
  | {
      readonly kind: 'while';
      readonly rounds: number;
      readonly guard: GuardShape;
      readonly most: number;
      readonly body: List;
    }
  | {
      readonly kind: 'parallel';
      readonly named: boolean;
      readonly branches: List;
      readonly waitFor: 'all' | 'any' | 'first';
      readonly condition?: GuardShape;
      readonly continueOnError: boolean;
      readonly concurrency: number;
    }
  | { readonly kind: 'try'; readonly body: List; readonly catch?: List; readonly finally?: List }
  | { readonly kind: 'wait'; readonly named: boolean; readonly never: boolean; readonly condition?: GuardShape }
  | { readonly kind: 'sleep'; readonly named: boolean; readonly ms: number; readonly condition?: GuardShape }
  | {
      readonly kind: 'route';
      readonly condition?: GuardShape;
      readonly entries: readonly { readonly guard: GuardShape; readonly script: 'ok' | 'boom' }[];
      readonly last: 'guarded' | 'default';
    };

export interface ShapeOptions {
  /** Of blocks. */
  readonly concurrency: fc.Arbitrary<number>;
  readonly scripts: readonly ('ok' | 'boom' | 'flaky')[];
  readonly waitFor: readonly ('all' | 'any' | 'first')[];
  /** Agents read earlier results. */
  readonly sees: boolean;
}

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
const seldom = fc.integer({ min: 0, max: 3 }).map((n) => n === 3);

export function shapes({ concurrency, scripts, waitFor, sees }: ShapeOptions): fc.Arbitrary<List> {
  const { list } = fc.letrec<{ list: List; pair: List; step: Shape; agent: Shape; block: Shape }>((tie) => {
    const of = (kind: Shape['kind'], fields: object): fc.Arbitrary<Shape> =>
      fc.record({ kind: fc.constant(kind), ...fields }) as unknown as fc.Arbitrary<Shape>;
    const condition = optional(guardShape);
    return {
      list: fc.array(tie('step'), { minLength: 1, maxLength: 5, depthIdentifier: 'flow' }),
      pair: fc.array(tie('step'), { minLength: 1, maxLength: 3, depthIdentifier: 'flow' }),
      step: fc.oneof(
        { depthSize: 'small', depthIdentifier: 'flow', withCrossShrink: true, maxDepth: 4 },
        { weight: 7, arbitrary: tie('agent') },
        { weight: 7, arbitrary: tie('block') },
      ),
      agent: of('agent', {
        script: fc.constantFrom(...scripts),
        condition,
        continueOnError: seldom,
        counts: fc.boolean(),
        sees: sees ? fc.array(fc.nat(1000), { maxLength: 3 }) : fc.constant([]),
      }),
      block: fc.oneof(
        { weight: 2, arbitrary: of('if', { guard: guardShape, then: tie('list'), else: optional(tie('list')) }) },
        {
          weight: 1,
          arbitrary: of('switch', {
            guard: guardShape,
            yes: optional(tie('pair')),
            no: optional(tie('pair')),
            other: optional(tie('pair')),
          }),
        },
        {
          weight: 2,
          arbitrary: of('foreach', {
            named: fc.boolean(),
            items: fc.nat(3),
            body: tie('list'),
            condition,
            breakAt: optional(fc.nat(2)),
            collect: fc.boolean(),
            continueOnError: fc.boolean(),
            concurrency,
          }),
        },
        {
          weight: 1,
          arbitrary: of('while', {
            rounds: fc.nat(3),
            guard: guardShape,
            most: fc.integer({ min: 1, max: 4 }),
            body: tie('pair'),
          }),
        },
        {
          weight: 2,
          arbitrary: of('parallel', {
            named: fc.boolean(),
            branches: tie('pair'),
            waitFor: fc.constantFrom(...waitFor),
            condition,
            continueOnError: seldom,
            concurrency,
          }),
        },
        {
          weight: 2,
          arbitrary: of('try', {
            body: tie('pair'),
            catch: optional(tie('pair')),
            finally: optional(tie('pair')),
          }),
        },
        { weight: 1, arbitrary: of('wait', { named: fc.boolean(), never: seldom, condition }) },
        { weight: 1, arbitrary: of('sleep', { named: fc.boolean(), ms: fc.constantFrom(0, 7, 400, 1500), condition }) },
        {
          weight: 1,
          arbitrary: of('route', {
            condition,
            entries: fc.array(
              fc.record({
                guard: guardShape,
                script: fc.constantFrom('ok', 'boom').filter((s) => scripts.includes(s as 'ok')),
              }),
              { minLength: 1, maxLength: 3 },
            ),
            last: fc.constantFrom('guarded', 'default'),
          }),
        },
      ),
    };
  });
  return list;
}
