/** Fixtures of the expression tests: the data that the vectors read, and an evaluation with fixed random numbers and time. */

import { isOrchestratorError } from '../../src/engine/base/errors.ts';
import type { Json } from '../../src/engine/base/json/json.ts';
import {
  type CompileOptions,
  compileExpression,
  type NameResolver,
} from '../../src/engine/expression/compile/compile-expression.ts';
import type { Evaluation } from '../../src/engine/expression/evaluation.ts';
import { ExpressionSyntaxError } from '../../src/engine/expression/syntax/expression-syntax-error.ts';
import { DEFAULT_BUDGET } from '../../src/engine/expression/syntax/limits.ts';
import data from '../vectors/expressions-data.json' with { type: 'json' };

export { data };

/** A resolver that reads names from plain data. */
export function resolverOf(values: Readonly<Record<string, Json>>): NameResolver<Evaluation> {
  return {
    hyphenated: Object.keys(values).filter((name) => name.includes('-')),
    resolve(name) {
      if (!Object.hasOwn(values, name)) return { problem: `unknown name ${name}` };
      return { read: () => values[name] as Json, consumed: 0 };
    },
  };
}

export function optionsOf(values: Readonly<Record<string, Json>>): CompileOptions<Evaluation> {
  return { names: resolverOf(values) };
}

export const options = optionsOf(data);

export function createEvaluation(budget = DEFAULT_BUDGET): Evaluation {
  return {
    budget,
    random: () => 0.5,
    now: () => 1_700_000_000_000,
    uuid: () => '00000000-0000-4000-8000-000000000000',
  };
}

/** The value of a bare expression. */
export const evaluate = (source: string, values: Readonly<Record<string, Json>> = data): Json =>
  compileExpression(source, optionsOf(values)).evaluate(createEvaluation());

/** Why an expression can't be compiled. */
export const refusal = (source: string): ExpressionSyntaxError => {
  try {
    compileExpression(source, options);
  } catch (error) {
    if (error instanceof ExpressionSyntaxError) return error;
    throw error;
  }
  throw new Error(`compiled: ${source}`);
};

/** Why an evaluation failed. */
export const failure = (source: string, values?: Readonly<Record<string, Json>>): string => {
  try {
    evaluate(source, values);
  } catch (error) {
    if (isOrchestratorError(error, 'EXPRESSION_ERROR')) return error.message;
    throw error;
  }
  throw new Error(`evaluated: ${source}`);
};
