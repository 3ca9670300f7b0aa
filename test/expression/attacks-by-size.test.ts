/** Attacks with expressions that are too long, too deep, too large or too slow. */

import { describe, expect, it } from 'vitest';
import type { Json } from '../../src/engine/base/json/json.ts';
import { compileExpression } from '../../src/engine/expression/compile/compile-expression.ts';
import { compileText } from '../../src/engine/expression/compile/compile-text.ts';
import { MAX_BUILT_LENGTH } from '../../src/engine/expression/syntax/limits.ts';
import { scaled } from '../slowdown.ts';
import { createEvaluation, evaluate, failure, options, optionsOf, refusal } from './expression-fixtures.ts';

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

  it.each(nested)('%s nests at most 64 levels deep', (_name, make) => {
    expect(() => evaluate(make(64))).not.toThrow();
    expect(refusal(make(65)).message).toMatch(/nested deeper than 64|more than 64 accesses/);
    expect(refusal(make(700)).message).toMatch(/nested deeper than 64|more than 64 accesses/);
    expect(refusal(make(200_000)).message).toContain('longer than 8192 characters');
  });

  it('accesses inside parentheses count together with the accesses that follow', () => {
    expect(refusal(`(input${'.a'.repeat(40)})${'.a'.repeat(40)}`).message).toContain('more than 64 accesses');
  });

  it('JSON that is nested deeper than 64 levels is refused before it is parsed', () => {
    expect(evaluate('parseJson(input)', { input: `${'['.repeat(64)}${']'.repeat(64)}` })).toHaveLength(1);
    for (const depth of [65, 200_000]) {
      const input = `${'['.repeat(depth)}${']'.repeat(depth)}`;
      expect(failure('parseJson(input)', { input })).toContain('the JSON is nested deeper than 64 levels');
    }
  });

  it('long chains of operators are flat', () => {
    for (const operator of ['+', '*', '&&', '||', '??', '==']) {
      expect(() => evaluate(Array(1_500).fill('1').join(` ${operator} `))).not.toThrow();
    }
    expect(evaluate(Array(2_000).fill('1').join('+'))).toBe(2_000);
  });

  it('an expression has at most 8 KiB', () => {
    expect(evaluate(`'${'x'.repeat(8_190)}'`)).toHaveLength(8_190);
    expect(refusal(`'${'x'.repeat(8_191)}'`).message).toContain('longer than 8192 characters');
    expect(refusal(`1${' '.repeat(1_000_000)}`).message).toContain('longer than 8192');
    expect(refusal('x'.repeat(1_000_000)).message).toContain('longer than 8192');
    expect(refusal('1'.repeat(1_000_000)).message).toMatch(/longer than 8192|too large/);
    expect(() => compileText(`\${${'1+'.repeat(500_000)}1}`, options)).toThrow('longer than 8192');
    expect(() => compileText(`\${'${'x'.repeat(1_000_000)}`, options)).toThrow('longer than 8192');
  });

  it('a text has at most 256 expressions', () => {
    expect(compileText('${1}'.repeat(256), options).evaluate(createEvaluation())).toBe('1'.repeat(256));
    expect(() => compileText('${1}'.repeat(10_000), options)).toThrow('more than 256 expressions');
  });

  it('doubling a text again and again ends at the size limit', () => {
    let input: Json = 'x';
    let doublings = 0;
    const { evaluate: double } = compileExpression('input + input', {
      names: { hyphenated: [], resolve: () => ({ read: () => input, consumed: 0 }) },
    });
    expect(() => {
      for (; doublings < 40; doublings++) input = double(createEvaluation());
    }).toThrow(`the maximum is ${MAX_BUILT_LENGTH}`);
    expect(doublings).toBe(22);
  });

  it('no function and no joined text builds more than the size limit', () => {
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
    for (const source of sources)
      expect(failure(source, values), source.slice(0, 40)).toMatch(/the maximum is 4194304/);
    // Results of exactly the maximum size are accepted.
    expect(evaluate('json(list).length', { list: list.slice(0, 2_000_000) })).toBe(4_000_001);
    expect(evaluate('json(input).length', { input: 'x'.repeat(MAX_BUILT_LENGTH - 2) })).toBe(MAX_BUILT_LENGTH);
    const text = compileText('${input} ${input}', optionsOf(values));
    expect(() => text.evaluate(createEvaluation())).toThrow('the maximum is 4194304');
  });

  it('the budget limits the work, whatever the data is', () => {
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

  it('comparisons of long texts, objects with many keys, dates and parsed JSON are charged for their work', () => {
    const text = 'x'.repeat(2_000_000);
    const keyed = Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`${(i + 1) * 7919}`, i]));
    const values = { text, same: `${text}y`, keyed, other: { ...keyed }, spaces: `${' '.repeat(3_900_000)}2026-01-31` };
    const began = performance.now();
    for (const source of [
      Array(300).fill('startsWith(same, text)').join('&&'),
      Array(300).fill('endsWith(text, text)').join('&&'),
      `merge(${Array(90).fill('keyed').join(',')})`,
      Array(60).fill('keyed == other').join('&&'),
      Array(80).fill('length(keyed)').join('+'),
      `[${Array(50).fill('keys(keyed)').join(',')}]`,
      `[${Array(50).fill('values(keyed)').join(',')}]`,
      "parseJson('[' + text2 + '{}]')",
    ]) {
      const text2 = '{},'.repeat(500_000);
      expect(failure(source, { ...values, text2 }), source.slice(0, 40)).toContain('budget of operations');
    }
    for (const source of ['date(spaces)', "addTime(spaces, 1, 'day')"])
      expect(failure(source, values)).toContain('is not an instant');
    expect(performance.now() - began).toBeLessThan(scaled(10_000));
    // A single call of each is within the budget.
    for (const source of [
      'startsWith(same, text)',
      'length(keyed) > 0',
      'keyed == other',
      'length(merge(keyed, other)) > 0',
    ])
      expect(evaluate(source, values), source).toBe(true);
  });

  it('an expression charges all its nodes at once, and fails before it begins', () => {
    const { evaluate: run } = compileExpression('1 + 2 * 3', options);
    const evaluation = createEvaluation(10);
    run(evaluation);
    expect(evaluation.budget).toBe(5);
    run(evaluation);
    expect(() => run(evaluation)).toThrow('budget of operations is used up');
  });

  it('an index outside an array gives null', () => {
    expect(evaluate("[input.list[1e9], input.list[-1], input.list['0x1'], input.text.length]")).toStrictEqual([
      null,
      null,
      null,
      5,
    ]);
  });
});
