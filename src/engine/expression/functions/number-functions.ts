/** Functions over numbers. As in arithmetic, null gives null, and so does a result that is no number. */

import type { Json } from '../../json.ts';
import type { Evaluation } from '../evaluation.ts';
import { charge, describeType, EvaluationProblem } from '../evaluation-problem.ts';
import { toJsonNumber } from '../operators.ts';
import { integerAt, isAbsent, numberAt, wrongArgument } from './arguments.ts';
import type { FunctionTable } from './function-table.ts';

export const numberFunctions = {
  number: { minArgs: 1, maxArgs: 1, call: toNumber },
  round: { minArgs: 1, maxArgs: 2, call: (args) => roundWith(args, Math.round) },
  floor: { minArgs: 1, maxArgs: 2, call: (args) => roundWith(args, Math.floor) },
  ceil: { minArgs: 1, maxArgs: 2, call: (args) => roundWith(args, Math.ceil) },
  abs: { minArgs: 1, maxArgs: 1, call: (args) => (args[0] === null ? null : Math.abs(numberAt(args, 0))) },
  min: {
    minArgs: 1,
    maxArgs: Number.POSITIVE_INFINITY,
    call: (args, evaluation) => fold(args, evaluation, null, (a, b) => Math.min(a, b)),
  },
  max: {
    minArgs: 1,
    maxArgs: Number.POSITIVE_INFINITY,
    call: (args, evaluation) => fold(args, evaluation, null, (a, b) => Math.max(a, b)),
  },
  sum: {
    minArgs: 1,
    maxArgs: Number.POSITIVE_INFINITY,
    call: (args, evaluation) => fold(args, evaluation, 0, (a, b) => a + b),
  },
} satisfies FunctionTable;

// Text is a number only as a whole, in decimal; every other text is null rather than NaN.
function toNumber(args: readonly Json[], evaluation: Evaluation): Json {
  const [value = null] = args;
  if (value === null || typeof value === 'number') return value;
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value !== 'string') throw wrongArgument(args, 0, 'text, a number or a boolean');
  charge(evaluation, value.length);
  const text = value.trim();
  return /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(text) ? toJsonNumber(Number(text)) : null;
}

// The decimal point is moved in the text of the number: multiplying by a power of ten would make 1.005 a little less.
function roundWith(args: readonly Json[], round: (value: number) => number): Json {
  if (args[0] === null) return null;
  const value = numberAt(args, 0);
  const digits = isAbsent(args, 1) ? 0 : integerAt(args, 1, 0, 15);
  if (digits === 0) return toJsonNumber(round(value));
  return toJsonNumber(movePoint(round(movePoint(value, digits)), -digits));
}

function movePoint(value: number, places: number): number {
  const [mantissa, exponent = '0'] = String(value).split('e');
  return Number(`${mantissa}e${Number(exponent) + places}`);
}

// Over one array, or over the arguments.
function fold(
  args: readonly Json[],
  evaluation: Evaluation,
  empty: number | null,
  combine: (left: number, right: number) => number,
): Json {
  const [only = null] = args;
  if (args.length === 1 && only === null) return null;
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
}
