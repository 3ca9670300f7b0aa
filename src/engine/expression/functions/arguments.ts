/** Reads the arguments of functions by type, with the same message for every argument of a wrong type. */

import type { Json, JsonObject } from '../../base/json/json.ts';
import { describeType, EvaluationProblem } from '../evaluation-problem.ts';

/** @throws EvaluationProblem */
export function wrongArgument(args: readonly Json[], position: number, expected: string): EvaluationProblem {
  const found = describeType(args[position] as Json);
  return new EvaluationProblem(`argument ${position + 1} must be ${expected}, found ${found}`);
}

/** Whether an optional argument is left out. Null counts as left out. */
export function isAbsent(args: readonly Json[], position: number): boolean {
  return position >= args.length || args[position] === null;
}

export function textAt(args: readonly Json[], position: number): string {
  const value = args[position];
  if (typeof value === 'string') return value;
  throw wrongArgument(args, position, 'text');
}

export function numberAt(args: readonly Json[], position: number): number {
  const value = args[position];
  if (typeof value === 'number') return value;
  throw wrongArgument(args, position, 'a number');
}

export function integerAt(args: readonly Json[], position: number, min: number, max: number): number {
  const value = numberAt(args, position);
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new EvaluationProblem(`argument ${position + 1} must be a whole number from ${min} to ${max}`);
}

export function listAt(args: readonly Json[], position: number): readonly Json[] {
  const value = args[position] as Json;
  if (Array.isArray(value)) return value as readonly Json[];
  throw wrongArgument(args, position, 'an array');
}

export function objectAt(args: readonly Json[], position: number): JsonObject {
  const value = args[position] as Json;
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw wrongArgument(args, position, 'an object');
}
