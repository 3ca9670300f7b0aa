/** The attacks on the expression language, by their rows: what a hostile definition or hostile data tries. */

import { describe, expect, it } from 'vitest';
import { isOrchestratorError } from '../../src/engine/errors.ts';
import { compileExpression } from '../../src/engine/expression/compile-expression.ts';
import { compileGuard } from '../../src/engine/expression/compile-guard.ts';
import { compileTemplate } from '../../src/engine/expression/compile-template.ts';
import { compileText } from '../../src/engine/expression/compile-text.ts';
import { compileValue } from '../../src/engine/expression/compile-value.ts';
import { ExpressionSyntaxError } from '../../src/engine/expression/expression-syntax-error.ts';
import { isTruthy } from '../../src/engine/expression/is-truthy.ts';
import { MAX_BUILT_LENGTH } from '../../src/engine/expression/limits.ts';
import { copyJson, type Json } from '../../src/engine/json.ts';
import { createEvaluation, data, options, optionsOf } from './expression-fixtures.ts';

const evaluate = (source: string, values: Readonly<Record<string, Json>> = data): Json =>
  compileExpression(source, optionsOf(values)).evaluate(createEvaluation());

const refusal = (source: string): ExpressionSyntaxError => {
  try {
    compileExpression(source, options);
  } catch (error) {
    if (error instanceof ExpressionSyntaxError) return error;
    throw error;
  }
  throw new Error(`compiled: ${source}`);
};

const failure = (source: string, values?: Readonly<Record<string, Json>>): string => {
  try {
    evaluate(source, values);
  } catch (error) {
    if (isOrchestratorError(error, 'EXPRESSION_ERROR')) return error.message;
    throw error;
  }
  throw new Error(`evaluated: ${source}`);
};

describe('calls and names', () => {
  it('A1: a constructor reached through a value can not be called, and the place is named', () => {
    const error = refusal("input.constructor.constructor('return process')()");
    expect(error.message).toContain('only listed functions can be called');
    expect(error.index).toBe(29);
  });

  it('A1: functions are looked up among the own properties of the table', () => {
    for (const name of ['toString', 'constructor', 'hasOwnProperty', '__proto__', 'valueOf', 'eval', 'Function']) {
      expect(refusal(`${name}('x')`).message).toContain(`there is no function ${name}()`);
    }
  });

  it('A2: a computed key is checked after it is computed', () => {
    expect(evaluate("input['con' + 'structor']")).toBeNull();
    expect(evaluate("input['__proto__']['x']")).toBeNull();
    expect(evaluate("input[join(['__', 'proto', '__'], '')]")).toBeNull();
    expect(evaluate("input[lower('CONSTRUCTOR')][parseJson('\"name\"')]")).toBeNull();
  });

  it('A3: a key that would have to be turned into text is refused', () => {
    expect(refusal("input[['__proto__']]").index).toBe(6);
    expect(failure('input[input.words]')).toContain('found an array');
    expect(failure('input[parseJson(\'{"toString":"x"}\')]')).toContain('found an object');
    expect(failure('input[1 == 1]')).toContain('found a boolean');
  });

  it('A4: nothing of JavaScript beyond the language is read', () => {
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

  it('A10: names are ASCII, and an escape in a name is no name', () => {
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
  it('A5: a value with behaviour is plain data or refused before an expression sees it', () => {
    const input = copyJson({
      run: () => 1,
      get now() {
        return 5;
      },
    });
    expect(evaluate('[input.run, input.now]', { input })).toStrictEqual([null, 5]);
    for (const value of [new Map(), Promise.resolve(1), new (class Thing {})()]) {
      expect(() => copyJson({ value })).toThrow('value is');
    }
  });

  it('A6: no expression can write, so a shared prototype stays as it was', () => {
    for (const source of [
      'merge({}, parseJson(\'{"constructor":{"prototype":{"polluted":1}}}\')).constructor.prototype.polluted',
      '{constructor: {prototype: {polluted: 1}}}.constructor.prototype.polluted',
    ]) {
      expect(evaluate(source)).toBe(1);
    }
    expect(refusal('input.__proto__.polluted = 1').message).toContain('can not assign');
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  it('A7: a __proto__ key is refused by parseJson and merges nothing in', () => {
    expect(failure('merge({}, parseJson(\'{"__proto__":{"admin":true}}\')).admin')).toContain('never allowed');
    const body = JSON.parse('{"__proto__":{"admin":true}}');
    expect(failure('merge({}, input).admin', { input: body })).toContain('never allowed');
    expect(evaluate('input.admin', { input: body })).toBeNull();
  });

  it('A8: famous names are data where they are own, and nothing where they are not', () => {
    expect(evaluate("[evil.constructor, evil['toString'], input.constructor]")).toStrictEqual(['c', 't', null]);
    expect(refusal('{__proto__: 1}').message).toContain('never allowed');
    expect(Object.hasOwn(evaluate('{constructor: 1, toString: 2}') as object, 'constructor')).toBe(true);
  });

  it('A32: sorting by a property of a prototype sorts by nothing', () => {
    expect(evaluate("sort([{a: 2}, {a: 1}], 'constructor')")).toStrictEqual([{ a: 2 }, { a: 1 }]);
    const render = compileTemplate('{{ input.text.constructor }}{{ input.deep.__proto__ }}', {
      ...options,
      html: false,
    });
    expect(render.evaluate(createEvaluation())).toBe('');
  });
});

describe('size and depth', () => {
  const nested: readonly (readonly [string, (n: number) => string])[] = [
    ['(', (n) => `${'('.repeat(n)}1${')'.repeat(n)}`],
    ['!', (n) => `${'!'.repeat(n)}1`],
    ['-', (n) => `${'-'.repeat(n)}1`],
    ['?:', (n) => `${'1?'.repeat(n)}1${':1'.repeat(n)}`],
    ['?: to the right', (n) => `${'0?1:'.repeat(n)}1`],
    ['member chain', (n) => `input${'.a'.repeat(n)}`],
    ['parenthesised member chain', (n) => `${'('.repeat(n)}input${'.a)'.repeat(n)}`],
    ['index', (n) => `${'input['.repeat(n)}0${']'.repeat(n)}`],
    ['array', (n) => `${'['.repeat(n)}${']'.repeat(n)}`],
    ['object', (n) => `${'{a:'.repeat(n)}1${'}'.repeat(n)}`],
    ['call', (n) => `${'abs('.repeat(n)}1${')'.repeat(n)}`],
  ];

  it.each(nested)('A11: %s goes 64 deep and no deeper', (_name, make) => {
    expect(() => evaluate(make(64))).not.toThrow();
    expect(refusal(make(65)).message).toMatch(/nested deeper than 64|more than 64 accesses/);
    expect(refusal(make(700)).message).toMatch(/nested deeper than 64|more than 64 accesses/);
    expect(refusal(make(200_000)).message).toContain('longer than 8192 characters');
  });

  it('A11: chains of operators are flat, however long', () => {
    for (const operator of ['+', '*', '&&', '||', '??', '==']) {
      expect(() => evaluate(Array(1_500).fill('1').join(` ${operator} `))).not.toThrow();
    }
    expect(evaluate(Array(2_000).fill('1').join('+'))).toBe(2_000);
  });

  it('A12: an expression holds 8 KiB and not a character more', () => {
    expect(evaluate(`'${'x'.repeat(8_190)}'`)).toHaveLength(8_190);
    expect(refusal(`'${'x'.repeat(8_191)}'`).message).toContain('longer than 8192 characters');
    expect(refusal(`1${' '.repeat(1_000_000)}`).message).toContain('longer than 8192');
    expect(refusal('x'.repeat(1_000_000)).message).toContain('longer than 8192');
    expect(refusal('1'.repeat(1_000_000)).message).toMatch(/longer than 8192|too large/);
    expect(() => compileText(`\${${'1+'.repeat(500_000)}1}`, options)).toThrow('longer than 8192');
    expect(() => compileText(`\${'${'x'.repeat(1_000_000)}`, options)).toThrow('longer than 8192');
  });

  it('A12: a text holds 256 expressions', () => {
    expect(compileText('${1}'.repeat(256), options).evaluate(createEvaluation())).toBe('1'.repeat(256));
    expect(() => compileText('${1}'.repeat(10_000), options)).toThrow('more than 256 expressions');
    expect(compileTemplate('{{1}}'.repeat(256), { ...options, html: true }).evaluate(createEvaluation())).toHaveLength(
      256,
    );
    expect(() => compileTemplate('{{1}}'.repeat(10_000), { ...options, html: true })).toThrow(
      'more than 256 expressions',
    );
  });

  it('A13: a text doubled forty times stops at the size cap', () => {
    let input: Json = 'x';
    let doublings = 0;
    const { evaluate: double } = compileExpression('input + input', {
      names: { hyphenated: [], resolve: () => ({ read: () => input, consumed: 0 }) },
    });
    expect(() => {
      for (; doublings < 40; doublings++) input = double(createEvaluation());
    }).toThrow(`the most is ${MAX_BUILT_LENGTH}`);
    expect(doublings).toBe(22);
  });

  it('A13: no function and no joined text builds past the cap', () => {
    const input = 'x'.repeat(3_000_000);
    const list = Array(2_100_000).fill(0);
    const values = { input, list, wide: 'é'.repeat(2_000_000) };
    const sources = [
      'json([input, input])',
      "join([input, input], '')",
      "replace(input, 'x', 'yy')",
      'base64(wide)',
      "'' + [input, input]",
      'flatten([list, list])',
      `json({${Array.from({ length: 600 }, (_, i) => `k${i}: input`).join(',')}})`,
    ];
    for (const source of sources) expect(failure(source, values), source.slice(0, 40)).toMatch(/the most is 4194304/);
    const text = compileText('${input} ${input}', optionsOf(values));
    expect(() => text.evaluate(createEvaluation())).toThrow('the most is 4194304');
  });

  it('A143: work is bounded by the budget, whatever the data', () => {
    const list = Array.from({ length: 1_000_000 }, (_, i) => (i * 7919) % 1_000_003);
    const texts = list.slice(0, 100_000).map((n) => `${'same start '.repeat(5)}${n}`);
    const values = { list, texts };
    expect(evaluate('sum(list) > 0', values)).toBe(true);
    for (const source of [
      Array(12).fill('sum(list)').join('+'),
      'sort(list)',
      '[sort(texts), sort(texts), sort(texts), sort(texts), sort(texts)]',
      Array(12).fill('contains(list, -1)').join('||'),
      Array(12).fill('list == list2').join('&&'),
    ]) {
      expect(failure(source, { ...values, list2: [...list] }), source.slice(0, 40)).toContain('budget of operations');
    }
  });

  it('A143: an expression charges its nodes at once, and fails before it begins', () => {
    const { evaluate: run } = compileExpression('1 + 2 * 3', options);
    const evaluation = createEvaluation(10);
    run(evaluation);
    expect(evaluation.budget).toBe(5);
    run(evaluation);
    expect(() => run(evaluation)).toThrow('budget of operations is used up');
  });

  it('A19: an index far outside gives null at once', () => {
    expect(evaluate("[input.list[1e9], input.list[-1], input.list['0x1'], input.text.length]")).toStrictEqual([
      null,
      null,
      null,
      5,
    ]);
  });
});

describe('values', () => {
  it('A14: data that looks like an expression stays text in every channel', () => {
    const values = { input: { x: '${input.secret}', y: '{{ input.secret }}', secret: 'leaked' } };
    const own = optionsOf(values);
    const evaluation = createEvaluation();
    const config = { url: 'https://host/?q=${input.x}', '${input.x}': ['${input.x}', '${input.y}'] };
    expect(compileValue(config, own, () => {}).evaluate(evaluation)).toStrictEqual({
      url: 'https://host/?q=${input.secret}',
      '${input.x}': ['${input.secret}', '{{ input.secret }}'],
    });
    expect(compileTemplate('{{ input.y }}', { ...own, html: false }).evaluate(evaluation)).toBe('{{ input.secret }}');
    expect(compileText('${input.x + input.y}', own).evaluate(evaluation)).not.toContain('leaked');
  });

  it('A31: nothing in the language turns data into an expression', () => {
    for (const name of ['eval', 'template', 'render', 'expression', 'compile', 'interpolate']) {
      expect(refusal(`${name}(input.dollar)`).message).toContain('there is no function');
    }
    expect(evaluate('replace(input.half + "{input.n}", "$", "$")')).toBe('${input.n}');
  });

  it('A20: arithmetic gives JSON or null, and null is a false condition', () => {
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

  it('A22: a text that makes backtracking patterns explode costs one pass', () => {
    const evilTexts = ['a'.repeat(26), '1'.repeat(100_000), `${' '.repeat(100_000)}x`, '9'.repeat(50_000) + 'e'];
    for (const input of evilTexts) {
      const values = { input };
      const evaluation = createEvaluation(2_000_000);
      const source =
        "[number(input), contains(input, '^(a+)+$'), replace(input, '(a+)+', ''), trim(input), split(input, '+')]";
      expect(compileExpression(source, optionsOf(values)).evaluate(evaluation)).toHaveLength(5);
      expect(failure('date(input)', values)).toContain('not an instant');
    }
  });

  it('A36: values are escaped in HTML bodies, in text and in attributes', () => {
    const body = '<a title="{{ input.html }}">{{ input.html }}</a>';
    const escaped = '&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;&lt;/b&gt;';
    expect(compileTemplate(body, { ...options, html: true }).evaluate(createEvaluation())).toBe(
      `<a title="${escaped}">${escaped}</a>`,
    );
  });

  it('D: a failure names the source and its place, and no value', () => {
    const message = failure('1 + number(input) * (input - 1)', { input: 'my-secret-token' });
    expect(message).not.toContain('my-secret');
    expect(message).toContain('column 28');
    expect(failure('parseJson(input)', { input: '{my-secret-token' })).not.toContain('my-secret');
  });
});
