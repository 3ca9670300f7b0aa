/** Functions over numbers. As in arithmetic, null gives null, and a result that is not a number is null. */

import type { Json } from '../../base/json/json.ts';
import type { Evaluation } from '../evaluation.ts';
import { charge, describeType, EvaluationProblem } from '../evaluation-problem.ts';
import { toJsonNumber } from '../operators.ts';
import { integerAt, isAbsent, numberAt, wrongArgument } from './arguments.ts';
import { type ExpressionFunction, type FunctionTable, takes, takesValue } from './function-table.ts';

export const numberFunctions = {
  number: takesValue(1, 1, toNumber),
  round: roundingFunction(Math.round),
  floor: roundingFunction(Math.floor),
  ceil: roundingFunction(Math.ceil),
  abs: takesValue(1, 1, (args) => Math.abs(numberAt(args, 0))),
  min: foldingFunction(null, Math.min),
  max: foldingFunction(null, Math.max),
  sum: foldingFunction(0, (a, b) => a + b),
} satisfies FunctionTable;

// A text is a number only when the whole text is a decimal number. Every other text gives null instead of NaN.
function toNumber(args: readonly Json[], evaluation: Evaluation): Json {
  const [value = null] = args;
  if (typeof value === 'number') return value;
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value !== 'string') throw wrongArgument(args, 0, 'text, a number or a boolean');
  charge(evaluation, value.length);
  const text = value.trim();
  return /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(text) ? toJsonNumber(Number(text)) : null;
}

// Moves the decimal point in the text of the number, because 1.005 times a power of ten is not exact.
function roundingFunction(round: (value: number) => number): ExpressionFunction {
  return takesValue(1, 2, (args) => {
    const value = numberAt(args, 0);
    const digits = isAbsent(args, 1) ? 0 : integerAt(args, 1, 0, 15);
    if (digits === 0) return toJsonNumber(round(value));
    return toJsonNumber(movePoint(round(movePoint(value, digits)), -digits));
  });
}

function movePoint(value: number, places: number): number {
  const [mantissa, exponent = '0'] = String(value).split('e');
  return Number(`${mantissa}e${Number(exponent) + places}`);
}

// Folds one array, or the arguments.
function foldingFunction(empty: number | null, combine: (left: number, right: number) => number): ExpressionFunction {
  return takes(1, Number.POSITIVE_INFINITY, (args, evaluation) => {
    const [only = null] = args;
    const values = args.length === 1 && Array.isArray(only) ? (only as readonly Json[]) : args;
    charge(evaluation, values.length);
    let result = empty;
    let sawNull = false;
    for (const value of values) {
      if (value === null) sawNull = true;
      else if (typeof value === 'number') result = result === null ? value : combine(result, value);
      else throw new EvaluationProblem(`every value must be a number, found ${describeType(value)}`);
    }
    return sawNull || result === null ? null : toJsonNumber(result);
  });
}
