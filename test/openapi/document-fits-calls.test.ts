/** The compiler compares what each call of the API gives with the shapes of the document: `tsc` is the test. */

import { describe, expectTypeOf, it } from 'vitest';
import type { CallKey, ResultOf } from '../../src/http-handlers/api/client-types.ts';
import type { ApiCalls } from '../../src/http-handlers/api/routes.ts';
import type { Named, SHAPES, TypeOf } from '../../src/http-handlers/openapi/shapes.ts';

type Shapes = { readonly [Name in keyof typeof SHAPES]: TypeOf<(typeof SHAPES)[Name]> };

/** Where values of the type `T` don't have the shape `S`, as texts; never where they have. */
type Difference<T, S, Path extends string> = unknown extends S
  ? never
  : T extends unknown
    ? true extends FitsOneOf<T, S, Path>
      ? never
      : FirstOf<T, S, Path>
    : never;
type FitsOneOf<T, S, Path extends string> = S extends unknown
  ? [Compared<T, S, Path>] extends [never]
    ? true
    : false
  : never;
type FirstOf<T, S, Path extends string> = S extends unknown ? Compared<T, S, Path> : never;
type Compared<T, S, Path extends string> =
  S extends Named<infer Name>
    ? Name extends keyof Shapes
      ? Difference<T, Shapes[Name], Name>
      : `there is no shape ${Name}`
    : T extends readonly (infer Item)[]
      ? S extends readonly (infer Of)[]
        ? Difference<Item, Of, `${Path}[]`>
        : `${Path} is a list`
      : T extends object
        ? S extends object
          ? [keyof S] extends [never]
            ? never
            : Fields<T, S, Path>
          : `${Path} is an object`
        : T extends S
          ? never
          : `${Path} has another type`;
type Fields<T, S, Path extends string> =
  | {
      [K in keyof T & string]: K extends keyof S ? Field<T, S, K, Path> : `${Path}.${K} is not in the document`;
    }[keyof T & string]
  | {
      [K in keyof S & string]: K extends keyof T
        ? never
        : Record<never, never> extends Pick<S, K>
          ? never
          : `${Path}.${K} is never there`;
    }[keyof S & string];
type Field<T, S, K extends keyof T & keyof S & string, Path extends string> =
  | (Record<never, never> extends Pick<T, K>
      ? Record<never, never> extends Pick<S, K>
        ? never
        : `${Path}.${K} may be missing`
      : never)
  | Difference<Exclude<T[K], undefined>, Exclude<S[K], undefined>, `${Path}.${K}`>;

type ShapeOf<Key extends CallKey> = ApiCalls[Key]['spec'] extends { readonly replies: infer Replies }
  ? Replies[keyof Replies] extends infer Name
    ? Name extends string
      ? Named<Name>
      : never
    : never
  : never;
type Differences = {
  [Key in CallKey as IsTheSame<Key> extends true ? never : Key]: Difference<ResultOf<Key>, ShapeOf<Key>, Key>;
};
type IsTheSame<Key extends CallKey> = [ShapeOf<Key>] extends [never]
  ? true
  : [Difference<ResultOf<Key>, ShapeOf<Key>, Key>] extends [never]
    ? true
    : false;

describe('the shapes of the document', () => {
  it('have each field that a call gives, and no call leaves one out that is required', () => {
    expectTypeOf<{ [K in keyof Differences]: Differences[K] }>().toEqualTypeOf<Record<never, never>>();
  });
});
