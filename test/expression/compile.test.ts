/** What the compiler returns besides a closure: names, references, constants and whole values. */

import { describe, expect, it } from 'vitest';
import type { Json } from '../../src/engine/base/json/json.ts';
import {
  compileExpression,
  type NameResolver,
  type PathSegment,
} from '../../src/engine/expression/compile/compile-expression.ts';
import { compileGuard } from '../../src/engine/expression/compile/compile-guard.ts';
import { compileText } from '../../src/engine/expression/compile/compile-text.ts';
import { compileValue } from '../../src/engine/expression/compile/compile-value.ts';
import type { Evaluation } from '../../src/engine/expression/evaluation.ts';
import { builtinFunctions, isImpure } from '../../src/engine/expression/functions/builtin-functions.ts';
import type { ExpressionSyntaxError } from '../../src/engine/expression/syntax/expression-syntax-error.ts';
import { createEvaluation, options } from './expression-fixtures.ts';

describe('names', () => {
  const calls: (readonly [string, readonly PathSegment[]])[] = [];
  const recorder: NameResolver<Evaluation> = {
    hyphenated: ['my-agent'],
    resolve(name, path) {
      calls.push([name, path]);
      return { read: () => null, consumed: 0 };
    },
  };
  const pathsOf = (source: string) => {
    calls.length = 0;
    compileExpression(source, { names: recorder });
    return [...calls];
  };

  it('a resolver gets the static path, which ends before the first computed key', () => {
    expect(pathsOf("a.output.x['y'][0]")).toStrictEqual([['a', ['output', 'x', 'y', 0]]]);
    expect(pathsOf('a.b[c.d].e')).toStrictEqual([
      ['a', ['b']],
      ['c', ['d']],
    ]);
    expect(pathsOf('a[1 + 1].b')).toStrictEqual([['a', []]]);
    expect(pathsOf('my-agent.output - a')).toStrictEqual([
      ['my-agent', ['output']],
      ['a', []],
    ]);
    expect(pathsOf('upper(a).b')).toStrictEqual([['a', []]]);
  });

  it('path segments that a resolver consumes are not read again', () => {
    const names: NameResolver<Evaluation> = {
      hyphenated: [],
      resolve: (_name, path) => ({ read: () => ({ c: path.slice(0, 2).join('/') }), consumed: 2 }),
    };
    expect(compileExpression('x.a.b.c', { names }).evaluate(createEvaluation())).toBe('a/b');
    expect(compileExpression('x.a', { names }).evaluate(createEvaluation())).toStrictEqual({ c: 'a' });
    // `consumed` is larger than the static path here, but the computed key is still read.
    expect(compileExpression("x['' + 'c']", { names }).evaluate(createEvaluation())).toBe('');
  });

  it.each([[['get-user', 'get-user-name']], [['get-user-name', 'get-user']]])(
    'the longest of the declared names %j wins',
    (hyphenated) => {
      const read = (name: string) => ({ read: () => name, consumed: 0 });
      const names: NameResolver<Evaluation> = { hyphenated, resolve: read };
      expect(compileExpression('get-user-name + get-user', { names }).evaluate(createEvaluation())).toBe(
        'get-user-nameget-user',
      );
    },
  );

  it("a resolver's problem and suggestion reach the caller with the place of the whole reference", () => {
    const names: NameResolver<Evaluation> = {
      hyphenated: [],
      resolve: () => ({ problem: 'there is no agent scor', suggestion: 'score' }),
    };
    expect(() => compileText('ok? ${1 + scor.output.x}', { names })).toThrow(
      expect.objectContaining({ message: 'there is no agent scor', index: 10, length: 13, suggestion: 'score' }),
    );
  });

  it('an agent may have the name of a function: only a call means the function', () => {
    const names: NameResolver<Evaluation> = { hyphenated: [], resolve: () => ({ read: () => 'agent', consumed: 0 }) };
    expect(compileExpression('[date, date(0)]', { names }).evaluate(createEvaluation())).toStrictEqual([
      'agent',
      '1970-01-01T00:00:00.000Z',
    ]);
  });

  it('a closure passes the evaluation object to the resolver, so it serves many runs', () => {
    interface Run extends Evaluation {
      readonly values: Readonly<Record<string, Json>>;
    }
    const names: NameResolver<Run> = {
      hyphenated: [],
      resolve: (name) => ({ read: ({ values }) => values[name] ?? null, consumed: 0 }),
    };
    const { evaluate } = compileExpression('x * 2', { names });
    expect(evaluate({ ...createEvaluation(), values: { x: 2 } })).toBe(4);
    expect(evaluate({ ...createEvaluation(), values: { x: 5 } })).toBe(10);
  });
});

describe('references and constants', () => {
  it('references are in source order, with their places in the text', () => {
    const { references } = compileText('Hi ${a.output.x} and ${input.list[0] + fetch-user.output.id}', options);
    expect(references).toStrictEqual([
      { name: 'a', path: ['output', 'x'], index: 5, length: 10 },
      { name: 'input', path: ['list', 0], index: 23, length: 13 },
      { name: 'fetch-user', path: ['output', 'id'], index: 39, length: 20 },
    ]);
    expect(compileGuard(' ${a.failed}', options).references).toStrictEqual([
      { name: 'a', path: ['failed'], index: 3, length: 8 },
    ]);
    expect(
      compileExpression('a.failed ? a.output : input', options).references.map(({ index }) => index),
    ).toStrictEqual([0, 11, 22]);
  });

  it.each([
    ['1 + 2', true],
    ["upper('x')", true],
    ['[1, {a: 2}]', true],
    ['input.n', false],
    ['1 + random()', false],
    ['[now()]', false],
    ["true ? 1 : uuid() + ''", false],
    ['date(0)', true],
  ])('%s is constant: %s', (source, constant) => {
    expect(compileExpression(source, options).constant).toBe(constant);
    expect(compileText(`x \${${source}}`, options).constant).toBe(constant);
  });

  it('`hasExpressions` is true for a text with an expression', () => {
    expect(compileText('$${x} $5', options)).toMatchObject({ hasExpressions: false, constant: true });
    expect(compileText('${1}', options)).toMatchObject({ hasExpressions: true, constant: true });
  });

  it('random, now, uuid and signalUrl are the impure functions', () => {
    expect(Object.keys(builtinFunctions).filter(isImpure).sort()).toStrictEqual(['now', 'random', 'signalUrl', 'uuid']);
    expect(isImpure('toString')).toBe(false);
  });

  it('these are all the built-in functions', () => {
    const listed =
      'random now uuid length lower upper trim contains startsWith endsWith replace split join keys values first last slice ' +
      'json parseJson number string boolean round floor ceil min max abs sum sort unique flatten compact merge default date addTime ' +
      'base64 sha256 hmac urlEncode signalUrl required map filter find some every count sumBy sortBy groupBy indexBy ' +
      'reverse append chunk range entries fromEntries pick omit';
    expect(Object.keys(builtinFunctions).sort()).toStrictEqual(listed.split(' ').sort());
  });
});

describe('whole values', () => {
  const compile = (value: Json) => {
    const problems: (readonly [readonly PathSegment[], string, number])[] = [];
    const report = (path: readonly PathSegment[], error: ExpressionSyntaxError) =>
      problems.push([path, error.message, error.index]);
    return { ...compileValue(value, options, report), problems };
  };

  it('every text inside is compiled, keys and other values stay unchanged', () => {
    const { evaluate, constant, references } = compile({
      url: 'https://host/${input.text}',
      n: '${input.n}',
      '${key}': [1, null, true, { deep: ['${a.output}', '$${x}'] }],
    });
    expect(evaluate(createEvaluation())).toStrictEqual({
      url: 'https://host/hello',
      n: 5,
      '${key}': [1, null, true, { deep: [{ x: 1, y: { z: 'q' } }, '${x}'] }],
    });
    expect(constant).toBe(false);
    expect(references.map(({ at, name }) => [at, name])).toStrictEqual([
      [['url'], 'input'],
      [['n'], 'input'],
      [['${key}', 3, 'deep', 0], 'a'],
    ]);
  });

  it('all problems are reported at once, each with its place', () => {
    const { problems } = compile({ a: '${nobody}', b: ['ok', 'x ${1 +}'], c: { d: '${upper()}' }, e: '${input.n}' });
    expect(problems).toStrictEqual([
      [['a'], 'unknown name nobody', 2],
      [['b', 1], expect.stringContaining('expected a value'), 7],
      [['c', 'd'], expect.stringContaining('takes 1 argument'), 2],
    ]);
  });

  it('a constant value is built anew for each receiver, so the receiver may change it', () => {
    const source = { list: [1, { a: 1 }] };
    const { evaluate, constant } = compile(source);
    const first = evaluate(createEvaluation()) as { list: unknown[] };
    first.list.push('changed');
    (first.list[1] as Record<string, unknown>).a = 'changed';
    expect(evaluate(createEvaluation())).toStrictEqual({ list: [1, { a: 1 }] });
    expect(source).toStrictEqual({ list: [1, { a: 1 }] });
    expect(constant).toBe(true);
  });

  it('a key __proto__ and nesting past 64 levels are problems', () => {
    expect(compile(JSON.parse('{"a":{"__proto__":{"x":1}}}')).problems).toStrictEqual([
      [['a'], 'the key __proto__ is never allowed', 0],
    ]);
    let deep: Json = 1;
    for (let i = 0; i < 65; i++) deep = [deep];
    expect(compile(deep).problems[0]?.[1]).toContain('nested deeper than 64');
    expect(compile((deep as Json[])[0] as Json).problems).toStrictEqual([]);
  });

  it('an unexpected error of a resolver is thrown', () => {
    const names: NameResolver<Evaluation> = {
      hyphenated: [],
      resolve: () => {
        throw new RangeError('broken resolver');
      },
    };
    expect(() => compileValue('${x}', { names }, () => {})).toThrow(RangeError);
  });
});
