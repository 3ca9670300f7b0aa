/** Random texts, random expressions and random data for the expression language. */

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { isOrchestratorError } from '../../src/engine/base/errors.ts';
import { copyJson, type Json } from '../../src/engine/base/json/json.ts';
import { compileExpression } from '../../src/engine/expression/compile/compile-expression.ts';
import { compileGuard } from '../../src/engine/expression/compile/compile-guard.ts';
import { compileText } from '../../src/engine/expression/compile/compile-text.ts';
import type { Evaluate } from '../../src/engine/expression/evaluation.ts';
import { builtinFunctions } from '../../src/engine/expression/functions/builtin-functions.ts';
import { ExpressionSyntaxError } from '../../src/engine/expression/syntax/expression-syntax-error.ts';
import { createEvaluation, optionsOf } from './expression-fixtures.ts';

const RUNS = Number(process.env.FUZZ_RUNS ?? 20_000);
const BUDGET = 200_000;

const HOSTILE_KEYS = [
  'constructor',
  'prototype',
  'toString',
  'valueOf',
  'length',
  '0',
  '-1',
  '',
  'a',
  'then',
  'toJSON',
];
const hostileKey = fc.oneof(fc.constantFrom(...HOSTILE_KEYS), fc.string({ maxLength: 3 }));
const hostileLeaf = fc.oneof(
  fc.constantFrom<Json>(null, true, false, 0, 1, -1, 1.5, 1e308, 9007199254740991, '', '0', 'false', '__proto__'),
  fc.constantFrom<Json>('\ud800', '😀', '${input}', '{{ input }}', '2024-02-29T10:00:00Z', '{"a":[1]}', '[[', 'a,b'),
  fc.string({ unit: 'binary', maxLength: 6 }),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => n + 0),
);
const { value: hostileValue } = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    hostileLeaf,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(
      hostileKey.filter((key) => key !== '__proto__'),
      tie('value'),
      { maxKeys: 4 },
    ),
  ),
}));

const literal = fc.oneof(
  fc.constantFrom('null', 'true', 'false', '0', '1', '2.5', '1e300', '9007199254740991', "''", "'a'", '"__proto__"'),
  fc.constantFrom(
    "'constructor'",
    "'\\ud800'",
    "'length'",
    "'YYYY-MM-DD'",
    "'day'",
    "'desc'",
    '\'{"a":1}\'',
    '[]',
    '{}',
  ),
);
const names = Object.keys(builtinFunctions);
// Built by the grammar, so that most expressions compile. An expression that doesn't compile is a case too.
const { expression } = fc.letrec<{ expression: string }>((tie) => ({
  expression: fc.oneof(
    { depthSize: 'medium' },
    fc.oneof(
      literal,
      fc.constantFrom('input', 'x', 'my-agent.output', 'input.a', 'x[0]', 'random()', 'now()', 'uuid()'),
    ),
    fc
      .tuple(
        tie('expression'),
        fc.constantFrom('+', '-', '*', '/', '%', '<', '>=', '==', '!=', '&&', '||', '??'),
        tie('expression'),
      )
      .map(([left, operator, right]) => `(${left}) ${operator} (${right})`),
    fc.tuple(fc.constantFrom('!', '-', '+'), tie('expression')).map(([operator, value]) => `${operator}(${value})`),
    fc.tuple(tie('expression'), tie('expression'), tie('expression')).map(([a, b, c]) => `((${a}) ? ${b} : ${c})`),
    fc.tuple(tie('expression'), tie('expression')).map(([value, key]) => `(${value})[${key}]`),
    fc
      .tuple(tie('expression'), fc.constantFrom(...HOSTILE_KEYS.slice(0, 5), '__proto__'))
      .map(([value, key]) => `(${value}).${key}`),
    fc
      .tuple(fc.constantFrom(...names), fc.array(tie('expression'), { maxLength: 3 }))
      .map(([name, args]) => `${name}(${args.join(', ')})`),
    fc.array(tie('expression'), { maxLength: 3 }).map((items) => `[${items.join(', ')}]`),
    fc.dictionary(fc.constantFrom(...HOSTILE_KEYS.slice(0, 5)), tie('expression'), { maxKeys: 3 }).map(
      (entries) =>
        `{${Object.entries(entries)
          .map(([key, value]) => `${key}: ${value}`)
          .join(', ')}}`,
    ),
  ),
}));

const soup = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '${',
        '}',
        '{{',
        '}}',
        '$${',
        '(',
        ')',
        '[',
        ']',
        '{',
        '.',
        ',',
        ':',
        '?',
        '??',
        '||',
        '&&',
        '=',
        '==',
      ),
      fc.constantFrom(
        '+',
        '-',
        '*',
        '/',
        '%',
        '<',
        '!',
        "'",
        '"',
        '\\',
        '\\u00',
        ' ',
        '\n',
        '1',
        '1e',
        '0x',
        'input',
        'x',
        'my-agent',
      ),
      fc.constantFrom(
        'my-',
        'true',
        'null',
        'upper',
        'upper(',
        '__proto__',
        '.constructor',
        '?.',
        '...',
        '=>',
        '`',
        '\u200b',
        '😀',
      ),
      fc.string({ unit: 'binary', maxLength: 3 }),
    ),
    { maxLength: 24 },
  )
  .map((pieces) => pieces.join(''));

function snapshotPrototypes(): string {
  const prototypes = [Object, Array, String, Number, Boolean, Function, Date, RegExp, Map, Set, Promise, Error];
  return JSON.stringify(
    prototypes.map(({ prototype }) =>
      Reflect.ownKeys(prototype).map((key) => {
        const descriptor = Object.getOwnPropertyDescriptor(prototype, key);
        return [String(key), typeof descriptor?.value, descriptor?.writable, descriptor?.enumerable];
      }),
    ),
  );
}

// The value, or undefined when the expression is refused or fails. Any other error fails the test.
function attempt(compile: () => { evaluate: Evaluate }): Json | undefined {
  const evaluation = createEvaluation(BUDGET);
  try {
    return compile().evaluate(evaluation);
  } catch (error) {
    if (error instanceof ExpressionSyntaxError || isOrchestratorError(error, 'EXPRESSION_ERROR')) return undefined;
    // Only `required()` fails with the text of the author.
    if (isOrchestratorError(error, 'INVALID_INPUT') && error.stack?.includes('requiredValue')) return undefined;
    throw error;
  }
}

const optionsFor = (value: Json) => optionsOf({ input: value, x: [value, 1, 'b'], 'my-agent': { output: value } });

it('any text compiles or is refused with a place, as an expression, a text and a guard', () => {
  const before = snapshotPrototypes();
  const options = optionsFor({ a: 1 });
  fc.assert(
    fc.property(fc.oneof(soup, fc.string({ unit: 'binary', maxLength: 40 })), (text) => {
      for (const compile of [
        () => compileExpression(text, options),
        () => compileText(text, options),
        () => compileGuard(text, options),
      ]) {
        attempt(compile);
        try {
          compile();
        } catch (error) {
          const { index, length } = error as ExpressionSyntaxError;
          if (!(index >= 0 && length >= 0 && index + length <= text.length))
            throw new Error(`${index}+${length} is outside`);
        }
      }
    }),
    { numRuns: RUNS },
  );
  expect(snapshotPrototypes()).toBe(before);
});

it('any expression over any data gives JSON, EXPRESSION_ERROR or the error of required(), and changes no prototype and no data', () => {
  const before = snapshotPrototypes();
  let evaluated = 0;
  fc.assert(
    fc.property(expression, hostileValue, (source, value) => {
      const data = JSON.stringify(value);
      const result = attempt(() => compileExpression(source, optionsFor(value)));
      if (JSON.stringify(value) !== data) throw new Error('the data was changed');
      if (result === undefined) return;
      evaluated++;
      // `copyJson` throws for values that are not JSON, and an undefined that becomes null changes the text.
      if (JSON.stringify(copyJson(result)) !== JSON.stringify(result)) throw new Error('the result is not JSON');
    }),
    { numRuns: RUNS },
  );
  expect(evaluated).toBeGreaterThan(RUNS / 10);
  expect(snapshotPrototypes()).toBe(before);
});

it('the same expression over the same data gives the same result', () => {
  fc.assert(
    fc.property(expression, hostileValue, (source, value) => {
      const first = attempt(() => compileText(`\${${source}}`, optionsFor(value)));
      const second = attempt(() => compileGuard(source, optionsFor(value)));
      if (JSON.stringify(first) !== JSON.stringify(second)) throw new Error('two evaluations differ');
    }),
    { numRuns: RUNS / 10 },
  );
});
