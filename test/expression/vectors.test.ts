/** Every vector of `test/vectors/expressions*.json`: expressions with their values or errors. */

import { describe, expect, it } from 'vitest';
import { OrchestratorError } from '../../src/engine/base/errors.ts';
import type { Json } from '../../src/engine/base/json/json.ts';
import { compileExpression } from '../../src/engine/expression/compile/compile-expression.ts';
import { compileGuard } from '../../src/engine/expression/compile/compile-guard.ts';
import { compileText } from '../../src/engine/expression/compile/compile-text.ts';
import { ExpressionSyntaxError } from '../../src/engine/expression/syntax/expression-syntax-error.ts';
import language from '../vectors/expressions.json' with { type: 'json' };
import functions from '../vectors/expressions-functions.json' with { type: 'json' };
import texts from '../vectors/expressions-text.json' with { type: 'json' };
import { createEvaluation, options } from './expression-fixtures.ts';

interface Vector {
  readonly source: string;
  /** Default `expression`. */
  readonly form?: 'expression' | 'text' | 'guard';
  readonly value?: Json;
  /** `at` is an index in the source for an error at load, and in the expression for an error at run time. */
  readonly error?: { readonly when: 'load' | 'run'; readonly at: number; readonly says: string };
  readonly why: string;
}

function compile({ source, form }: Vector) {
  switch (form) {
    case 'text':
      return compileText(source, options);
    case 'guard':
      return compileGuard(source, options);
    default:
      return compileExpression(source, options);
  }
}

function thrownBy(action: () => unknown): unknown {
  try {
    action();
  } catch (error) {
    return error;
  }
  return undefined;
}

function check(vector: Vector): void {
  const { error } = vector;
  if (!error) {
    expect(compile(vector).evaluate(createEvaluation())).toStrictEqual(vector.value);
    return;
  }
  if (error.when === 'load') {
    const thrown = thrownBy(() => compile(vector));
    expect(thrown).toBeInstanceOf(ExpressionSyntaxError);
    const { message, index, length } = thrown as ExpressionSyntaxError;
    expect(message).toContain(error.says);
    expect(index).toBe(error.at);
    expect(index + length).toBeLessThanOrEqual(vector.source.length);
    return;
  }
  const { evaluate } = compile(vector);
  const thrown = thrownBy(() => evaluate(createEvaluation()));
  expect(thrown).toBeInstanceOf(OrchestratorError);
  const { code, message, details, retryable } = thrown as OrchestratorError;
  expect(code).toBe('EXPRESSION_ERROR');
  expect(message).toContain(error.says);
  expect(details.index).toBe(error.at);
  expect(message).toContain(`column ${error.at + 1})`);
  expect(retryable).toBe(false);
}

describe.each([
  ['the language', language],
  ['the functions', functions],
  ['texts, guards and bodies', texts],
] as const)('%s', (_title, vectors) => {
  it.each((vectors as readonly Vector[]).map((vector) => [JSON.stringify(vector.source), vector.why, vector] as const))(
    '%s (%s)',
    (_source, _why, vector) => check(vector),
  );
});
