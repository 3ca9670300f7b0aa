/** Random expressions over inputs of known types. More and others with SOUND_RUNS and SOUND_SEED in the environment. */

import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { SchemaTypes } from '../../src/engine/definition/types/from-json-schema.ts';
import { infer } from '../../src/engine/definition/types/infer/infer.ts';
import { Place } from '../../src/engine/definition/types/place.ts';
import { ANY, nameOfType } from '../../src/engine/definition/types/type.ts';
import { compileExpression } from '../../src/engine/expression/compile/compile-expression.ts';
import { ParsedExpressions } from '../../src/engine/expression/syntax/parsed-expressions.ts';
import { isOrchestratorError } from '../../src/index.ts';
import { fits } from './fits.ts';

const RUNS = Number(process.env.SOUND_RUNS ?? 20_000);
const SEED = Number(process.env.SOUND_SEED ?? 20260101);

const record = {
  type: 'object',
  properties: { a: { type: 'number' }, b: { type: 'string' } },
  required: ['a'],
  additionalProperties: false,
};
const schema = {
  type: 'object',
  properties: {
    n: { type: 'number' },
    m: { type: ['number', 'null'] },
    s: { type: 'string' },
    o: { type: 'string' },
    t: { type: 'boolean' },
    e: { enum: ['x', 'y', 'z'] },
    f: { enum: ['x', 1, true, null] },
    l: { type: 'array', items: { type: 'number' } },
    ls: { type: 'array', items: { type: ['string', 'null'] } },
    r: record,
    q: { anyOf: [record, { type: 'null' }] },
    p: {
      type: 'object',
      properties: { results: { type: 'array', items: record }, count: { type: 'integer', 'x-countOf': 'results' } },
      required: ['results', 'count'],
      additionalProperties: false,
    },
    any: {},
    d: { type: 'object', additionalProperties: { type: 'number' } },
  },
  required: ['n', 'm', 's', 't', 'e', 'f', 'l', 'ls', 'r', 'q', 'p', 'any', 'd'],
  additionalProperties: false,
};
const type = new SchemaTypes().of(schema as never);

const num = fc.constantFrom(0, 1, -2, 2.5, 10);
const str = fc.constantFrom('', 'x', 'y', 'abc', '12');
const rec = fc.record({ a: num, b: str }, { requiredKeys: ['a'] });
const input = fc.record(
  {
    n: num,
    m: fc.option(num),
    s: str,
    o: str,
    t: fc.boolean(),
    e: fc.constantFrom('x', 'y', 'z'),
    f: fc.constantFrom('x', 1, true, null),
    l: fc.array(num, { maxLength: 2 }),
    ls: fc.array(fc.option(str), { maxLength: 2 }),
    r: rec,
    q: fc.option(rec),
    p: fc.array(rec, { maxLength: 2 }).map((results) => ({ results, count: results.length })),
    any: fc.oneof(num, str, fc.constant(null), rec, fc.array(num, { maxLength: 1 })),
    d: fc.dictionary(fc.constantFrom('a', 'k'), num),
  },
  { requiredKeys: ['n', 'm', 's', 't', 'e', 'f', 'l', 'ls', 'r', 'q', 'p', 'any', 'd'] },
);

const path = fc
  .constantFrom(
    'n',
    'm',
    's',
    'o',
    't',
    'e',
    'f',
    'l',
    'l[0]',
    'l.length',
    'ls',
    'ls[0]',
    'ls[1]',
    'r',
    'r.a',
    'r.b',
    'q',
    'q.a',
    'q.b',
    'p',
    'p.results',
    'p.count',
    'p.results[0]',
    'p.results[0].a',
    'p.results[0].b',
    'p.results[1]',
    'any',
    'any.a',
    'any[0]',
    'd',
    'd.a',
    "d['k']",
    's[0]',
  )
  .map((p) => `input.${p}`);
const literalText = fc.constantFrom(
  'null',
  'true',
  'false',
  '0',
  '1',
  '2',
  "''",
  "'x'",
  "'y'",
  '[]',
  '[1, input.n]',
  '{ a: 1 }',
  '{ a: input.m, b: null }',
);
const one = [
  'length',
  'lower',
  'trim',
  'keys',
  'values',
  'first',
  'last',
  'compact',
  'sort',
  'unique',
  'flatten',
  'json',
  'number',
  'string',
  'boolean',
  'round',
  'abs',
  'min',
  'max',
  'sum',
  'urlEncode',
  'base64',
  'merge',
];
const rest = ['reverse', 'entries', 'fromEntries', 'range'];
const overLists = ['map', 'filter', 'find', 'some', 'every', 'count', 'sumBy', 'sortBy', 'groupBy', 'indexBy'];
const list = fc.constantFrom('input.l', 'input.ls', 'input.p.results', 'entries(input.d)', 'filter(input.ls, y => y)');
const arrowBody = fc.constantFrom(
  ...['x', 'i', 'x.a', 'x.b', 'x.key', 'x.value', 'x != null', 'x == null', "x == 'x'", 'x > 1', 'x.a != null', 'x.b'],
  ...['x.a ?? 1', 'x ? x : 0', 'OTHER', 'x == OTHER', 'x && OTHER', 'x || OTHER', 'x != null ? x : OTHER'],
  ...['map([x, OTHER], x => x)', 'find([x], y => y != null)', '{ key: string(x), value: OTHER }', 'x.a > 0 && x.b'],
);
const two = [
  'append',
  'chunk',
  'pick',
  'omit',
  'range',
  'required',
  'contains',
  'startsWith',
  'split',
  'join',
  'slice',
  'default',
  'min',
  'sum',
  'merge',
];
const { expression } = fc.letrec<{ expression: string }>((tie) => ({
  expression: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    { weight: 5, arbitrary: path },
    { weight: 2, arbitrary: literalText },
    {
      weight: 3,
      arbitrary: fc
        .tuple(
          tie('expression'),
          fc.constantFrom('==', '!=', '<', '>', '>=', '+', '-', '*', '/', '%'),
          tie('expression'),
        )
        .map(([a, o, b]) => `(${a} ${o} ${b})`),
    },
    {
      weight: 3,
      arbitrary: fc
        .tuple(tie('expression'), fc.constantFrom('&&', '||', '??'), tie('expression'))
        .map(([a, o, b]) => `(${a} ${o} ${b})`),
    },
    {
      weight: 3,
      arbitrary: fc
        .tuple(tie('expression'), tie('expression'), tie('expression'))
        .map(([a, b, c]) => `(${a} ? ${b} : ${c})`),
    },
    { weight: 2, arbitrary: tie('expression').map((a) => `!${a}`) },
    { weight: 2, arbitrary: fc.tuple(fc.constantFrom(...one), tie('expression')).map(([f, a]) => `${f}(${a})`) },
    {
      weight: 1,
      arbitrary: fc
        .tuple(fc.constantFrom(...two), tie('expression'), tie('expression'))
        .map(([f, a, b]) => `${f}(${a}, ${b})`),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(tie('expression'), fc.constantFrom('a', 'b', 'length')).map(([a, k]) => `(${a}).${k}`),
    },
    { weight: 1, arbitrary: fc.tuple(path, tie('expression')).map(([a, k]) => `${a}[${k}]`) },
    {
      weight: 4,
      arbitrary: fc
        .tuple(fc.constantFrom(...overLists), fc.oneof(list, tie('expression')), arrowBody, tie('expression'))
        .map(([f, of, body, other]) => `${f}(${of}, (x, i) => ${body.replace('OTHER', () => `(${other})`)})`),
    },
    {
      weight: 1,
      arbitrary: fc
        .tuple(fc.constantFrom('map', 'filter', 'sortBy'), arrowBody, fc.constantFrom('null', '1'))
        .map(([f, body, other]) => `first(${f}([input.n, input.r], x => ${body.replace('OTHER', other)}))`),
    },
    { weight: 1, arbitrary: fc.tuple(fc.constantFrom(...rest), tie('expression')).map(([f, a]) => `${f}(${a})`) },
    // What narrows, around what is narrowed.
    {
      weight: 3,
      arbitrary: fc
        .tuple(
          path,
          fc.constantFrom('!= null', "== 'x'", "!= 'x'", '> 0', '== 0', '!= 0', '== null', '>= 2', '== 1', '== true'),
          path,
          path,
        )
        .map(([g, c, a, b]) => `(${g} ${c} ? ${a} : ${b})`),
    },
    {
      weight: 2,
      arbitrary: fc
        .tuple(path, fc.constantFrom('&&', '||'), path, path, path)
        .map(([g, o, h, a, b]) => `((${g} ${o} ${h} != null) ? ${a} : ${b})`),
    },
  ),
}));

/** @returns the expression and its type; undefined if it is refused when it is compiled */
function typed(source: string) {
  const parsed = new ParsedExpressions();
  const names = {
    hyphenated: [],
    parsed,
    resolve: () => ({ read: ((scope: { input: unknown }) => scope.input) as never, consumed: 0 }),
  };
  let evaluate: (scope: never) => unknown;
  try {
    ({ evaluate } = compileExpression<never>(source, { names }));
  } catch {
    return;
  }
  const root = parsed.find(source, 0)?.root;
  if (!root) return;
  const level = { id: 0, parent: undefined, item: undefined, results: new Map(), caught: false };
  const context = { level, place: new Place(), outermost: { input: type }, fuel: { left: 5_000 }, text: source };
  return {
    evaluate,
    inferred: infer(root, {
      ...context,
      infer,
      returnOf: () => ANY,
      payloadOf: () => undefined,
      report: () => undefined,
    }),
  };
}

it('the value of an expression has the type that is inferred for it, whatever the input of its type is', () => {
  let [values, precise] = [0, 0];
  fc.assert(
    fc.property(expression, fc.array(input, { minLength: 4, maxLength: 4 }), (source, inputs) => {
      const found = typed(source);
      for (const given of found ? inputs : []) {
        const { evaluate, inferred } = found as NonNullable<typeof found>;
        let value: unknown;
        try {
          value = evaluate({ input: given, budget: 1e6 } as never);
        } catch (error) {
          if (!isOrchestratorError(error)) throw error;
          continue;
        }
        values += 1;
        if (inferred.kind !== 'any') precise += 1;
        if (!fits(value, inferred))
          throw new Error(
            `${source} of ${JSON.stringify(given)} is ${JSON.stringify(value)}, not ${nameOfType(inferred)}`,
          );
      }
    }),
    { numRuns: RUNS, seed: SEED },
  );
  // A test in which everything is `any` would find nothing.
  expect(precise / values).toBeGreaterThan(0.5);
}, 240_000);
