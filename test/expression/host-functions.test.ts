/** Functions that a host adds to the expression language. */

import { describe, expect, it } from 'vitest';
import type { Json } from '../../src/engine/base/json/json.ts';
import { compileExpression, type NameResolver } from '../../src/engine/expression/compile/compile-expression.ts';
import type { Evaluation } from '../../src/engine/expression/evaluation.ts';
import { extendFunctions } from '../../src/engine/expression/functions/builtin-functions.ts';
import type { FunctionTable } from '../../src/engine/expression/functions/function-table.ts';
import { createEvaluation, options } from './expression-fixtures.ts';

const run = (source: string, functions: FunctionTable): Json =>
  compileExpression(source, { ...options, functions }).evaluate(createEvaluation());

describe('functions of the host', () => {
  const slug: FunctionTable = {
    slug: { minArgs: 1, maxArgs: 2, call: ([text]) => String(text).toLowerCase().replaceAll(' ', '-') },
  };

  it('can be called like built-in functions, and their number of arguments is checked at load', () => {
    const functions = extendFunctions(slug);
    expect(run("slug(upper('a b'))", functions)).toBe('a-b');
    expect(() => run('slug()', functions)).toThrow('slug() takes 1 to 2 arguments, found 0');
    expect(() => run("slog('x')", functions)).toThrow('did you mean slug()?');
  });

  it('are charged for the copies of their arguments', () => {
    const functions = extendFunctions({ seen: { minArgs: 1, maxArgs: 1, call: () => 1 } });
    const big = Array.from({ length: 80_000 }, () => ({}));
    const names: NameResolver<Evaluation> = { hyphenated: [], resolve: () => ({ read: () => big, consumed: 0 }) };
    const calls = (count: number) =>
      compileExpression(Array(count).fill('seen(x)').join('+'), { names, functions }).evaluate(createEvaluation());
    expect(calls(3)).toBe(3);
    expect(() => calls(300)).toThrow('budget of operations');
  });

  it('can not change stored values, and must return JSON', () => {
    const stored = [3, 1, 2];
    const functions = extendFunctions({
      order: { minArgs: 1, maxArgs: 1, call: ([list]) => (list as number[]).sort() },
      later: { minArgs: 0, maxArgs: 0, call: () => Promise.resolve(1) as unknown as Json },
      nan: { minArgs: 0, maxArgs: 0, call: () => Number.NaN },
      nothing: { minArgs: 0, maxArgs: 0, call: () => undefined as unknown as Json },
    });
    const names: NameResolver<Evaluation> = { hyphenated: [], resolve: () => ({ read: () => stored, consumed: 0 }) };
    expect(compileExpression('order(x)', { names, functions }).evaluate(createEvaluation())).toStrictEqual([1, 2, 3]);
    expect(stored).toStrictEqual([3, 1, 2]);
    expect(() => run('later()', functions)).toThrow('a Promise');
    expect(() => run('nan()', functions)).toThrow("JSON can't hold");
    expect(run('nothing()', functions)).toBeNull();
  });

  it('an error that they throw fails the evaluation with EXPRESSION_ERROR at the place of the call', () => {
    const cause = new Error('no such currency');
    const functions = extendFunctions({
      rate: {
        minArgs: 0,
        maxArgs: 0,
        call: () => {
          throw cause;
        },
      },
    });
    expect(() => run('1 + rate()', functions)).toThrow(
      expect.objectContaining({
        code: 'EXPRESSION_ERROR',
        message: 'rate(): no such currency (in the expression "1 + rate()", column 5)',
        retryable: false,
        cause,
      }),
    );
  });

  it('an expression that calls an impure function is not constant', () => {
    const functions = extendFunctions({ dice: { minArgs: 0, maxArgs: 0, impure: true, call: () => 4 } });
    expect(compileExpression('dice()', { ...options, functions }).constant).toBe(false);
  });

  it.each([
    ['upper', 'built in'],
    ['a-b', "can't be called"],
    ['true', "can't be called"],
    ['__proto__x', "can't be called"],
  ])('%s is not a valid name', (name, message) => {
    expect(() => extendFunctions({ [name]: { minArgs: 0, maxArgs: 0, call: () => null } })).toThrow(message);
  });

  it.each([
    [1, 0],
    [-1, 0],
    [0.5, 1],
    [0, Number.NaN],
  ])('minArgs %s with maxArgs %s is refused', (minArgs, maxArgs) => {
    expect(() => extendFunctions({ f: { minArgs, maxArgs, call: () => null } })).toThrow(TypeError);
  });
});
