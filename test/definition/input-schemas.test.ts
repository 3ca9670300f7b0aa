/** Inputs that a JSON Schema declares: the same verdicts as a complete validator, defaults, problems, and limits on hostile schemas. */

import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../../src/engine/base/json/json.ts';
import type { Problem } from '../../src/engine/definition/source/problem.ts';
import { checkJsonSchema } from '../../src/engine/json-schema/check-json-schema.ts';
import { compileJsonSchema } from '../../src/engine/json-schema/compile-json-schema.ts';

const KEYS = ['a', 'b', 'c', 'ab'];
const value = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom<Json>(null, true, false, 0, 1, 2, 2.5, -3, 10, '', 'a', 'ab', 'abc', '1', '😀'),
    fc.array(tie('value'), { maxLength: 4 }) as fc.Arbitrary<Json>,
    fc.dictionary(fc.constantFrom(...KEYS), tie('value'), { maxKeys: 4, noNullPrototype: true }) as fc.Arbitrary<Json>,
  ),
})).value;

const types = fc.constantFrom('string', 'number', 'integer', 'boolean', 'object', 'array', 'null');
const count = fc.integer({ min: 0, max: 3 });
const number = fc.constantFrom(-1, 0, 1, 2, 2.5);
const key = fc.constantFrom(...KEYS);
const schema = fc.letrec<{ schema: Json }>((tie) => {
  const one = tie('schema');
  const list = fc.array(one, { minLength: 1, maxLength: 3 });
  const map = fc.dictionary(key, one, { maxKeys: 3, noNullPrototype: true });
  const keywords = {
    type: fc.oneof(types, fc.uniqueArray(types, { minLength: 1, maxLength: 3 })),
    enum: fc.uniqueArray(value, {
      minLength: 1,
      maxLength: 3,
      comparator: (a, b) => JSON.stringify(a) === JSON.stringify(b),
    }),
    const: value,
    ...{ minimum: number, maximum: number, exclusiveMinimum: number, exclusiveMaximum: number },
    multipleOf: fc.constantFrom(1, 2, 0.5),
    ...{
      minLength: count,
      maxLength: count,
      minItems: count,
      maxItems: count,
      minProperties: count,
      maxProperties: count,
    },
    pattern: fc.constantFrom('a', '^b', '^a?$'),
    uniqueItems: fc.boolean(),
    ...{ items: one, prefixItems: list, contains: one, minContains: count, maxContains: count },
    ...{ properties: map, additionalProperties: one, propertyNames: one },
    patternProperties: fc.dictionary(fc.constantFrom('a', '^b'), one, { maxKeys: 2, noNullPrototype: true }),
    required: fc.uniqueArray(key, { maxLength: 2 }),
    dependentRequired: fc.dictionary(key, fc.uniqueArray(key, { maxLength: 2 }), { maxKeys: 2, noNullPrototype: true }),
    dependentSchemas: map,
    ...{ allOf: list, anyOf: list, oneOf: list, not: one, if: one, then: one, else: one },
    $ref: fc.constantFrom('#/$defs/x', '#/$defs/y', '#why', 'z.json', 'z.json#/$defs/inner', 'z.json#deep'),
  };
  return {
    schema: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.boolean() as fc.Arbitrary<Json>,
      // Few keywords at a time: with many, nearly every value is refused.
      fc
        .subarray(Object.keys(keywords), { minLength: 1, maxLength: 4 })
        // ajv accepts an empty list for both together, which `contains` refuses.
        .filter((names) => !(names.includes('contains') && names.includes('prefixItems')))
        .chain((names) =>
          fc.record(Object.fromEntries(names.map((name) => [name, keywords[name as keyof typeof keywords]]))),
        ) as fc.Arbitrary<Json>,
    ),
  };
}).schema;

function problemsAtLoad(root: JsonObject): readonly Problem[] {
  const problems: Problem[] = [];
  checkJsonSchema(root, ['inputs'], (problem) => problems.push(problem));
  return problems;
}

/** The checked input, or its problems as `path message`. */
function check(schema: object, input: object): unknown {
  const root = { type: 'object', ...schema } as JsonObject;
  expect(problemsAtLoad(root)).toEqual([]);
  const result = compileJsonSchema(root)(input as JsonObject);
  return 'value' in result ? result.value : result.problems.map(({ path, message }) => `${path} ${message}`);
}

/**
 * The code that ajv generates for some schemas throws on every value, such as for `patternProperties` beside a `oneOf`
 * with `additionalProperties`, and for `prefixItems` in an `anyOf` beside a `oneOf` with `contains`: they are left out.
 */
function unlessItBreaks(validate: () => unknown): unknown {
  try {
    return validate();
  } catch (thrown) {
    fc.pre(!(thrown instanceof TypeError || thrown instanceof ReferenceError));
    throw thrown;
  }
}

describe('a JSON Schema', () => {
  it('accepts and refuses what a complete validator accepts and refuses', () => {
    const definitions = {
      x: { type: ['string', 'object'], maxLength: 2 },
      y: { $anchor: 'why', items: { $ref: '#/$defs/x' } },
      // A part with an address of its own: its references are relative to it.
      z: {
        $id: 'z.json',
        properties: { a: { $ref: '#/$defs/inner' } },
        prefixItems: [{ $ref: '#deep' }],
        $defs: { inner: { type: 'integer' }, other: { $anchor: 'deep', minItems: 1, minLength: 1 } },
      },
    };
    const accepted: boolean[] = [];
    const values = fc.array(value, { minLength: 5, maxLength: 5 });
    fc.assert(
      fc.property(schema, values, (inner, given) => {
        const root = { $id: 'https://x.example/', properties: { in: inner }, $defs: definitions } as JsonObject;
        fc.pre(problemsAtLoad(root).length === 0);
        const isValid = new Ajv2020({ strict: false, unicodeRegExp: false, logger: false }).compile(root);
        const result = given.map((one) => 'value' in compileJsonSchema(root)({ in: one }));
        expect(result).toEqual(given.map((one) => unlessItBreaks(() => isValid({ in: one }))));
        accepted.push(...result);
      }),
      { numRuns: 300 },
    );
    expect(new Set(accepted)).toEqual(new Set([true, false]));
  });

  it('reports every problem at once, with its path, in the words of declared fields', () => {
    const properties = {
      kind: { type: ['string', 'null'] },
      n: { type: 'integer', minimum: 3, multipleOf: 2 },
      text: { type: 'string', minLength: 2, pattern: '^a', format: 'email' },
      color: { enum: ['red', 'green'] },
      list: { type: 'array', uniqueItems: true, items: { type: 'number' }, maxItems: 3 },
      one: { contains: { const: 1 } },
      needs: { dependentRequired: { a: ['b'] } },
      names: { propertyNames: { pattern: '^[a-z]+$' } },
      other: { not: { type: 'string' } },
      never: false,
    };
    const input = {
      ...{ kind: 5, n: 1, text: 'x', color: 'blue', list: [1, '2', 1, 4], one: [2], needs: { a: 1 } },
      ...{ names: { Ab: 1 }, other: 'x', never: 1, nameX: 1, more: 1 },
    };
    expect(check({ properties, required: ['name', 'n'], additionalProperties: false }, input)).toEqual([
      'kind must be a string or null, not 5',
      'n must be at least 3, not 1',
      'n must be a multiple of 2, not 1',
      'text must have at least 2 characters',
      'text must match the pattern `^a`',
      'text must have the format `email`',
      "color must be `red` or `green`, not 'blue'",
      'list must have at most 3 entries',
      'list[2] is equal to the entry 0, but all entries must differ',
      "list[1] must be a number, not '2'",
      'one must fit `contains` with at least 1 of its entries, not with 0',
      'needs.b is required when `a` is given',
      'names.Ab `Ab` is not an allowed key: it must match the pattern `^[a-z]+$`',
      'other is not allowed: it fits the schema of `not`',
      'never is not allowed',
      'nameX `nameX` is not a key of the input',
      'more `more` is not a key of the input',
      'name is required; `nameX` was given',
    ]);
  });

  it('of `anyOf` and `oneOf`, the problems are those of the schema that the value means', () => {
    const shapes = ['circle', 'square'].map((kind) => ({
      type: 'object',
      properties: { kind: { const: kind }, size: { type: 'number' } },
      required: ['kind', 'size'],
    }));
    const schema = {
      properties: {
        shape: { oneOf: [...shapes, { type: 'null' }] },
        value: { anyOf: [{ type: 'string' }, { type: 'null' }] },
        n: { anyOf: [{ minimum: 5 }, { maximum: 1 }] },
        both: { oneOf: [{ minimum: 1 }, { maximum: 9 }] },
      },
    };
    expect(check(schema, { shape: { kind: 'square', size: '1' }, value: 4, n: 3, both: 5 })).toEqual([
      "shape.size must be a number, not '1'",
      'value must be a string or null, not 4',
      'n fits none of the 2 schemas of `anyOf`',
      'both fits 2 schemas of `oneOf`, but must fit only one',
    ]);
  });

  it('the default of a missing property is filled in at every depth, before `required`, and is not checked', () => {
    const line = { type: 'object', properties: { count: { type: 'integer', default: 1 } } };
    const schema = {
      $defs: { line, unit: { type: 'string', default: 'kg' } },
      properties: {
        a: { type: 'string', default: 5 },
        unit: { $ref: '#/$defs/unit' },
        lines: { type: 'array', items: { $ref: '#/$defs/line' } },
        shape: { anyOf: [{ type: 'null' }, { properties: { x: { default: [] } } }] },
        off: { default: false },
        empty: { type: 'object', default: {}, properties: { inner: { default: 1 } } },
      },
      required: ['a'],
    };
    const input = { lines: [{}, { count: 3 }], shape: {}, off: null, extra: 1 };
    expect(check(schema, input as unknown as JsonObject)).toEqual({
      ...{ a: 5, unit: 'kg', lines: [{ count: 1 }, { count: 3 }], shape: { x: [] }, off: null, empty: {}, extra: 1 },
    });
    expect(input).toEqual({ lines: [{}, { count: 3 }], shape: {}, off: null, extra: 1 });
  });

  it('`minProperties` and `const` read the input without defaults, and the condition of `if` fills in nothing', () => {
    const properties = { a: { default: 1 } };
    expect(check({ properties, minProperties: 1 }, {})).toEqual([' must have at least 1 key']);
    expect(check({ properties, const: {} }, {})).toEqual({ a: 1 });
    expect(check({ if: { properties, required: ['b'] }, else: { properties: { c: { default: 2 } } } }, {})).toEqual({
      c: 2,
    });
  });

  it('the forms of draft 4 and 7 are read: `definitions`, lists in `items`, `dependencies`, exclusive limits as `true`', () => {
    const schema = {
      $schema: 'http://json-schema.org/draft-07/schema#',
      definitions: { 'a/b': { type: 'number', minimum: 1, exclusiveMinimum: true } },
      properties: {
        n: { $ref: '#/definitions/a~1b' },
        pair: { items: [{ type: 'string' }, { $ref: '#/properties/n' }], additionalItems: false },
      },
      dependencies: { a: ['b'], c: { required: ['d'] } },
    };
    expect(check(schema, { n: 2, pair: ['x', 3], a: 1, b: 1 })).toEqual({ n: 2, pair: ['x', 3], a: 1, b: 1 });
    expect(check(schema, { n: 1, pair: [1, 1, 1], a: 1, c: 1 })).toEqual([
      'n must be more than 1, not 1',
      'pair[0] must be a string, not 1',
      'pair[1] must be more than 1, not 1',
      'pair[2] is not allowed',
      'b is required when `a` is given',
      'd is required',
    ]);
  });
});
