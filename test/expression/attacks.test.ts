/** Attacks on the expression language by hostile definitions and hostile data. */

import { describe, expect, it } from 'vitest';
import { copyJson } from '../../src/engine/base/json/json.ts';
import { compileExpression } from '../../src/engine/expression/compile/compile-expression.ts';
import { compileGuard } from '../../src/engine/expression/compile/compile-guard.ts';
import { compileText } from '../../src/engine/expression/compile/compile-text.ts';
import { compileValue } from '../../src/engine/expression/compile/compile-value.ts';
import { isTruthy } from '../../src/engine/expression/is-truthy.ts';
import { createEvaluation, evaluate, failure, options, optionsOf, refusal } from './expression-fixtures.ts';

describe('calls and names', () => {
  it('a constructor that is reached through a value can not be called, and the error has its place', () => {
    const error = refusal("input.constructor.constructor('return process')()");
    expect(error.message).toContain('only listed functions can be called');
    expect(error.index).toBe(29);
  });

  it('only own properties of the function table can be called', () => {
    for (const name of ['toString', 'constructor', 'hasOwnProperty', '__proto__', 'valueOf', 'eval', 'Function']) {
      expect(refusal(`${name}('x')`).message).toContain(`there is no function ${name}()`);
    }
  });

  it('a computed key reads own properties only', () => {
    expect(evaluate("input['con' + 'structor']")).toBeNull();
    expect(evaluate("input['__proto__']['x']")).toBeNull();
    expect(evaluate("input[join(['__', 'proto', '__'], '')]")).toBeNull();
    expect(evaluate("input[lower('CONSTRUCTOR')][parseJson('\"name\"')]")).toBeNull();
  });

  it('a key that is neither text nor an integer is refused', () => {
    expect(refusal("input[['__proto__']]").index).toBe(6);
    expect(failure('input[input.words]')).toContain('found an array');
    expect(failure('input[parseJson(\'{"toString":"x"}\')]')).toContain('found an object');
    expect(failure('input[1 == 1]')).toContain('found a boolean');
  });

  it('other JavaScript syntax is refused', () => {
    const sources = [
      'with (input) n',
      '() => 1',
      '1, 2',
      '[...input.list]',
      'now?.()',
      'upper`x`',
      "import('fs')",
      'new Date',
      'input.n = 1',
      'input.n++',
      '/a/',
      '`x`',
      'function () {}',
      'input; input',
    ];
    for (const source of sources) expect(refusal(source).index, source).toBeGreaterThanOrEqual(0);
  });

  it('names are ASCII and contain no escapes', () => {
    for (const source of [
      '\\u0063onstructor',
      'ｉnput.n',
      'in\u200bput.n',
      'input.\u0441onstructor',
      'input\u2060.n',
    ]) {
      expect(refusal(source).message, source).toContain('has no meaning');
    }
  });
});

describe('prototypes', () => {
  it('a getter is read once, and values that are not plain data are refused before an expression reads them', () => {
    const input = copyJson({
      get now() {
        return 5;
      },
    });
    expect(evaluate('input.now', { input })).toBe(5);
    for (const value of [() => 1, Symbol('s'), new Map(), Promise.resolve(1), new (class Thing {})()]) {
      expect(() => copyJson({ value })).toThrow('value is');
    }
  });

  it('no expression can write, so prototypes stay unchanged', () => {
    for (const source of [
      'merge({}, parseJson(\'{"constructor":{"prototype":{"polluted":1}}}\')).constructor.prototype.polluted',
      '{constructor: {prototype: {polluted: 1}}}.constructor.prototype.polluted',
    ]) {
      expect(evaluate(source)).toBe(1);
    }
    expect(refusal('input.__proto__.polluted = 1').message).toContain('can not assign');
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  it('parseJson and merge refuse a key __proto__', () => {
    expect(failure('merge({}, parseJson(\'{"__proto__":{"admin":true}}\')).admin')).toContain('never allowed');
    const body = JSON.parse('{"__proto__":{"admin":true}}');
    expect(failure('merge({}, input).admin', { input: body })).toContain('never allowed');
    expect(evaluate('input.admin', { input: body })).toBeNull();
  });

  it('names such as `constructor` read own properties, and null when there is none', () => {
    expect(evaluate("[evil.constructor, evil['toString'], input.constructor]")).toStrictEqual(['c', 't', null]);
    expect(refusal('{__proto__: 1}').message).toContain('never allowed');
    expect(Object.hasOwn(evaluate('{constructor: 1, toString: 2}') as object, 'constructor')).toBe(true);
  });

  it('sorting by a property of the prototype changes nothing', () => {
    expect(evaluate("sort([{a: 2}, {a: 1}], 'constructor')")).toStrictEqual([{ a: 2 }, { a: 1 }]);
  });
});

describe('values', () => {
  it('data that looks like an expression stays text', () => {
    const values = { input: { x: '${input.secret}', y: '{{ input.secret }}', secret: 'leaked' } };
    const own = optionsOf(values);
    const evaluation = createEvaluation();
    const config = { url: 'https://host/?q=${input.x}', '${input.x}': ['${input.x}', '${input.y}'] };
    expect(compileValue(config, own, () => {}).evaluate(evaluation)).toStrictEqual({
      url: 'https://host/?q=${input.secret}',
      '${input.x}': ['${input.secret}', '{{ input.secret }}'],
    });
    expect(compileText('${input.x + input.y}', own).evaluate(evaluation)).not.toContain('leaked');
  });

  it('no function evaluates data as an expression', () => {
    for (const name of ['eval', 'template', 'render', 'expression', 'compile', 'interpolate']) {
      expect(refusal(`${name}(input.dollar)`).message).toContain('there is no function');
    }
    expect(evaluate('replace(input.half + "{input.n}", "$", "$")')).toBe('${input.n}');
  });

  it('arithmetic gives a JSON number or null, and null is false in a condition', () => {
    for (const source of ['1 / 0', '0 / 0', '5 % 0', '1e308 * 10', 'sum([1e308, 1e308])', "number('1e999')"]) {
      const value = compileGuard(source, options).evaluate(createEvaluation());
      expect(value, source).toBeNull();
      expect(isTruthy(value)).toBe(false);
    }
    expect(Object.is(evaluate('-0'), 0)).toBe(true);
    expect(isTruthy(Number.NaN)).toBe(false);
    expect(evaluate("json('\\ud800')")).toBe('"\\ud800"');
    expect(evaluate("urlEncode('\\ud800')")).toBe('%EF%BF%BD');
  });

  it('texts that are slow for backtracking patterns are processed in one pass', () => {
    const evilTexts = ['a'.repeat(26), '1'.repeat(100_000), `${' '.repeat(100_000)}x`, `${'9'.repeat(50_000)}e`];
    for (const input of evilTexts) {
      const values = { input };
      const evaluation = createEvaluation(2_000_000);
      const source =
        "[number(input), contains(input, '^(a+)+$'), replace(input, '(a+)+', ''), trim(input), split(input, '+')]";
      expect(compileExpression(source, optionsOf(values)).evaluate(evaluation)).toHaveLength(5);
      expect(failure('date(input)', values)).toContain('not an instant');
    }
  });

  it('the message of a failure contains the source and the place, but no value', () => {
    const message = failure('1 + number(input) * (input - 1)', { input: 'my-secret-token' });
    expect(message).not.toContain('my-secret');
    expect(message).toContain('column 28');
    expect(failure('parseJson(input)', { input: '{my-secret-token' })).not.toContain('my-secret');
  });
});
