/** Functions over numbers. As in arithmetic, null gives null, and so does a result that is no number. */

import type { Json } from '../../json.ts';
import type { Evaluation } from '../evaluation.ts';
import { charge, describeType, EvaluationProblem } from '../evaluation-problem.ts';
import { toJsonNumber } from '../operators.ts';
import { integerAt, isAbsent, numberAt, wrongArgument } from './arguments.ts';
import { type ExpressionFunction, type FunctionTable, takes, takesValue } from './function-table.ts';

export const numberFunctions = {
  number: takesValue(1, 1, toNumber),
  round: rounding(Math.round),
  floor: rounding(Math.floor),
  ceil: rounding(Math.ceil),
  abs: takesValue(1, 1, (args) => Math.abs(numberAt(args, 0))),
  min: folding(null, Math.min),
  max: folding(null, Math.max),
  sum: folding(0, (a, b) => a + b),
} satisfies FunctionTable;

// Text is a number only as a whole, in decimal; every other text is null rather than NaN.
function toNumber(args: readonly Json[], evaluation: Evaluation): Json {
  const [value = null] = args;
  if (typeof value === 'number') return value;
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value !== 'string') throw wrongArgument(args, 0, 'text, a number or a boolean');
  charge(evaluation, value.length);
  const text = value.trim();
  return /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(text) ? toJsonNumber(Number(text)) : null;
}

// The decimal point is moved in the text of the number: multiplying by a power of ten would make 1.005 a little less.
function rounding(round: (value: number) => number): ExpressionFunction {
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

// Over one array, or over the arguments.
function folding(empty: number | null, combine: (left: number, right: number) => number): ExpressionFunction {
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
