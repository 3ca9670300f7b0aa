/** Compiles binary operators to closures, with a fast path for numbers and literals. `applyBinary` handles all other values. */

import type { Json } from '../../base/json/json.ts';
import type { Evaluate, Evaluation } from '../evaluation.ts';
import { failureAt, type Site } from '../evaluation-problem.ts';
import { applyBinary, toJsonNumber } from '../operators.ts';
import type { BinaryOperator, Node } from '../syntax/ast.ts';

/** One operator with its right operand. */
interface BinaryStep<E extends Evaluation> {
  readonly operator: BinaryOperator;
  readonly index: number;
  readonly operand: Node;
  readonly evaluate: Evaluate<E>;
}

/** Compiles `left op right`. */
export function compileBinary<E extends Evaluation>(left: Evaluate<E>, step: BinaryStep<E>, site: Site): Evaluate<E> {
  const { operand } = step;
  if (operand.kind === 'literal') {
    const fast = compileWithLiteral(left, step, operand.value, site);
    if (fast) return fast;
  }
  return compileGeneral(left, step, site);
}

/** Compiles `first op a op b ...` to one closure, evaluated from left to right. A long chain needs no deep stack. */
export function compileChain<E extends Evaluation>(
  first: Evaluate<E>,
  steps: readonly BinaryStep<E>[],
  site: Site,
): Evaluate<E> {
  return (evaluation) => {
    let value = first(evaluation);
    for (const step of steps) value = apply(step, value, step.evaluate(evaluation), evaluation, site);
    return value;
  };
}

function apply<E extends Evaluation>(step: BinaryStep<E>, left: Json, right: Json, evaluation: E, site: Site): Json {
  try {
    return applyBinary(step.operator, left, right, evaluation);
  } catch (error) {
    throw failureAt(site, step.index, error);
  }
}

function compileWithLiteral<E extends Evaluation>(
  left: Evaluate<E>,
  step: BinaryStep<E>,
  literal: null | boolean | number | string,
  site: Site,
): Evaluate<E> | undefined {
  const { operator } = step;
  if (operator === '==' || operator === '===') return (evaluation) => left(evaluation) === literal;
  if (operator === '!=' || operator === '!==') return (evaluation) => left(evaluation) !== literal;
  if (typeof literal !== 'number') return undefined;
  const general = (value: Json, evaluation: E) => apply(step, value, literal, evaluation, site);
  switch (operator) {
    case '<':
      return (evaluation) => {
        const value = left(evaluation);
        return typeof value === 'number' && value < literal;
      };
    case '<=':
      return (evaluation) => {
        const value = left(evaluation);
        return typeof value === 'number' && value <= literal;
      };
    case '>':
      return (evaluation) => {
        const value = left(evaluation);
        return typeof value === 'number' && value > literal;
      };
    case '>=':
      return (evaluation) => {
        const value = left(evaluation);
        return typeof value === 'number' && value >= literal;
      };
    case '+':
      return (evaluation) => {
        const value = left(evaluation);
        return typeof value === 'number' ? toJsonNumber(value + literal) : general(value, evaluation);
      };
    case '-':
      return (evaluation) => {
        const value = left(evaluation);
        return typeof value === 'number' ? toJsonNumber(value - literal) : general(value, evaluation);
      };
    case '*':
      return (evaluation) => {
        const value = left(evaluation);
        return typeof value === 'number' ? toJsonNumber(value * literal) : general(value, evaluation);
      };
    default:
      return (evaluation) => general(left(evaluation), evaluation);
  }
}

function compileGeneral<E extends Evaluation>(left: Evaluate<E>, step: BinaryStep<E>, site: Site): Evaluate<E> {
  const right = step.evaluate;
  switch (step.operator) {
    case '==':
    case '===':
      return (evaluation) => {
        const a = left(evaluation);
        const b = right(evaluation);
        return typeof a === 'object' || typeof a === 'string' ? apply(step, a, b, evaluation, site) : a === b;
      };
    case '+':
      return (evaluation) => {
        const a = left(evaluation);
        const b = right(evaluation);
        if (typeof a === 'number' && typeof b === 'number') return toJsonNumber(a + b);
        return apply(step, a, b, evaluation, site);
      };
    case '*':
      return (evaluation) => {
        const a = left(evaluation);
        const b = right(evaluation);
        if (typeof a === 'number' && typeof b === 'number') return toJsonNumber(a * b);
        return apply(step, a, b, evaluation, site);
      };
    default:
      return (evaluation) => apply(step, left(evaluation), right(evaluation), evaluation, site);
  }
}
