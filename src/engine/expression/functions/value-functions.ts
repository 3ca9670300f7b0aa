/** Functions over values of any type, and over objects. */

import { copyJson, type Json, JsonError, type JsonObject, MAX_DEPTH } from '../../json.ts';
import type { Evaluation } from '../evaluation.ts';
import { charge, EvaluationProblem } from '../evaluation-problem.ts';
import { isTruthy } from '../is-truthy.ts';
import { toJsonText, toText } from '../to-text.ts';
import { integerAt, isAbsent, objectAt, textAt, wrongArgument } from './arguments.ts';
import type { FunctionTable } from './function-table.ts';

export const valueFunctions = {
  length: { minArgs: 1, maxArgs: 1, call: lengthOf },
  keys: { minArgs: 1, maxArgs: 1, call: (args, evaluation) => (args[0] === null ? null : keysAt(args, 0, evaluation)) },
  values: {
    minArgs: 1,
    maxArgs: 1,
    call: (args, evaluation) => {
      if (args[0] === null) return null;
      const object = objectAt(args, 0);
      return keysAt(args, 0, evaluation).map((key) => object[key] as Json);
    },
  },
  merge: { minArgs: 1, maxArgs: Number.POSITIVE_INFINITY, call: merge },
  default: { minArgs: 2, maxArgs: 2, call: ([value = null, fallback = null]) => value ?? fallback },
  string: { minArgs: 1, maxArgs: 1, call: ([value = null], evaluation) => toText(value, evaluation) },
  boolean: { minArgs: 1, maxArgs: 1, call: ([value = null]) => value !== 'false' && isTruthy(value) },
  json: {
    minArgs: 1,
    maxArgs: 2,
    call: (args, evaluation) => {
      const indent = isAbsent(args, 1) ? 0 : integerAt(args, 1, 0, 8);
      return toJsonText(args[0] as Json, evaluation, indent);
    },
  },
  parseJson: { minArgs: 1, maxArgs: 1, call: parseJson },
} satisfies FunctionTable;

function lengthOf(args: readonly Json[], evaluation: Evaluation): Json {
  const value = args[0] as Json;
  if (value === null) return 0;
  if (typeof value === 'string') return value.length;
  if (Array.isArray(value)) return value.length;
  if (typeof value === 'object') return keysAt(args, 0, evaluation).length;
  throw wrongArgument(args, 0, 'text, an array or an object');
}

function keysAt(args: readonly Json[], position: number, evaluation: Evaluation): string[] {
  const keys = Object.keys(objectAt(args, position));
  charge(evaluation, keys.length);
  return keys;
}

// Of the first level only: a later object's property takes the place of an earlier one's. Null counts as empty.
function merge(args: readonly Json[], evaluation: Evaluation): Json {
  const out: Record<string, Json> = {};
  for (let i = 0; i < args.length; i++) {
    if (args[i] === null) continue;
    const object: JsonObject = objectAt(args, i);
    for (const key of keysAt(args, i, evaluation)) {
      if (key === '__proto__') throw new EvaluationProblem('the key __proto__ is never allowed');
      out[key] = object[key] as Json;
    }
  }
  return out;
}

function parseJson(args: readonly Json[], evaluation: Evaluation): Json {
  if (args[0] === null) return null;
  const text = textAt(args, 0);
  charge(evaluation, text.length);
  // Before the parser sees it: some engines' parsers go as deep as the text does.
  if (isTooDeep(text)) throw new EvaluationProblem(`the JSON is nested deeper than ${MAX_DEPTH} levels`);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    // The engine's own message quotes the text, which may be secret.
    throw new EvaluationProblem('the text is not JSON');
  }
  try {
    return copyJson(parsed);
  } catch (error) {
    if (error instanceof JsonError) throw new EvaluationProblem(`the JSON can't be taken: ${error.problem.message}`);
    throw error;
  }
}

function isTooDeep(text: string): boolean {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (inString) {
      if (code === 92) i++;
      else if (code === 34) inString = false;
    } else if (code === 34) inString = true;
    else if (code === 91 || code === 123) {
      if (++depth > MAX_DEPTH) return true;
    } else if (code === 93 || code === 125) depth--;
  }
  return false;
}
