/** The operators for values of any type. The closures call these functions when their fast path does not apply. */

import type { Json, JsonObject } from '../base/json/json.ts';
import type { Evaluation } from './evaluation.ts';
import { charge, describeType, EvaluationProblem } from './evaluation-problem.ts';
import type { BinaryOperator } from './syntax/ast.ts';
import { KEY_COST } from './syntax/limits.ts';
import { joinTexts, toText } from './to-text.ts';

/** A number that JSON can hold. Infinity and NaN (1/0, 0/0) become null, and negative zero becomes zero. */
export function toJsonNumber(value: number): number | null {
  // Infinity and NaN give NaN here, and adding 0 turns -0 into 0.
  return value - value === 0 ? value + 0 : null;
}

/** `left op right` for any types. Equality and order never fail. Arithmetic fails for values that are not numbers. */
export function applyBinary(operator: BinaryOperator, left: Json, right: Json, evaluation: Evaluation): Json {
  switch (operator) {
    case '==':
    case '===':
      return areEqual(left, right, evaluation);
    case '!=':
    case '!==':
      return !areEqual(left, right, evaluation);
    case '<':
    case '<=':
    case '>':
    case '>=':
      chargeComparison(left, right, evaluation);
      return isOrdered(operator, left, right);
    case '+':
      return add(left, right, evaluation);
    default:
      return calculate(operator, left, right);
  }
}

/** Compares two values deeply. @throws EvaluationProblem when the budget is used up */
export function areEqual(left: Json, right: Json, evaluation: Evaluation): boolean {
  chargeComparison(left, right, evaluation);
  if (left === right) return true;
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false;
  if (Array.isArray(left)) {
    if (!Array.isArray(right) || left.length !== right.length) return false;
    charge(evaluation, left.length);
    for (let i = 0; i < left.length; i++) if (!areEqual(left[i] as Json, right[i] as Json, evaluation)) return false;
    return true;
  }
  if (Array.isArray(right)) return false;
  const keys = Object.keys(left);
  charge(evaluation, keys.length * KEY_COST);
  if (keys.length !== Object.keys(right).length) return false;
  for (const key of keys) {
    if (!Object.hasOwn(right, key)) return false;
    if (!areEqual((left as JsonObject)[key] as Json, (right as JsonObject)[key] as Json, evaluation)) return false;
  }
  return true;
}

/** `-value` or `+value`. Null stays null. */
export function applySign(operator: '-' | '+', value: Json): Json {
  if (typeof value === 'number') return operator === '-' ? 0 - value : value;
  if (value === null) return null;
  throw new EvaluationProblem(`${operator} needs a number, found ${describeType(value)}; convert it with number()`);
}

/** Compares two numbers by size, or two texts by code unit. For all other values every comparison is false. */
export function isOrdered(operator: '<' | '<=' | '>' | '>=', left: Json, right: Json): boolean {
  if (typeof left === 'number' ? typeof right !== 'number' : typeof left !== 'string' || typeof right !== 'string')
    return false;
  // Both are numbers or both are text here, which the types can't express.
  const a = left as number;
  const b = right as number;
  if (operator === '<') return a < b;
  if (operator === '<=') return a <= b;
  return operator === '>' ? a > b : a >= b;
}

// Comparing two long texts with the same start takes time: 16 characters count as one operation. Short texts cost nothing extra.
function chargeComparison(left: Json, right: Json, evaluation: Evaluation): void {
  if (typeof left === 'string' && typeof right === 'string' && left.length > 256 && right.length > 256) {
    charge(evaluation, Math.min(left.length, right.length) >> 4);
  }
}

function add(left: Json, right: Json, evaluation: Evaluation): Json {
  if (typeof left === 'number' && typeof right === 'number') return toJsonNumber(left + right);
  if (typeof left === 'string' || typeof right === 'string') {
    return joinTexts(toText(left, evaluation), toText(right, evaluation), evaluation);
  }
  if (left === null || right === null) return null;
  const found = `${describeType(left)} and ${describeType(right)}`;
  throw new EvaluationProblem(
    `+ needs two numbers, or text on one side, found ${found}; convert with number() or string()`,
  );
}

function calculate(operator: '-' | '*' | '/' | '%', left: Json, right: Json): Json {
  if (typeof left === 'number' && typeof right === 'number') {
    if (operator === '-') return toJsonNumber(left - right);
    if (operator === '*') return toJsonNumber(left * right);
    return toJsonNumber(operator === '/' ? left / right : left % right);
  }
  if (left === null || right === null) return null;
  const found = `${describeType(left)} and ${describeType(right)}`;
  throw new EvaluationProblem(`${operator} needs two numbers, found ${found}; convert with number()`);
}
