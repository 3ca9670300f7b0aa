/** Functions over values of any type, and over objects. */

import { OrchestratorError } from '../../base/errors.ts';
import { copyJson, type Json, JsonError, type JsonObject, MAX_DEPTH } from '../../base/json/json.ts';
import { countValues } from '../../base/json/json-text.ts';
import type { Evaluation } from '../evaluation.ts';
import { charge, EvaluationProblem } from '../evaluation-problem.ts';
import { isTruthy } from '../is-truthy.ts';
import { KEY_COST, VALUE_COST } from '../syntax/limits.ts';
import { toJsonText, toText } from '../to-text.ts';
import { integerAt, isAbsent, listAt, objectAt, textAt, wrongArgument } from './arguments.ts';
import { type FunctionTable, takes, takesValue } from './function-table.ts';

export const valueFunctions = {
  length: takes(1, 1, lengthOf),
  keys: takesValue(1, 1, (args, evaluation) => keysAt(args, 0, evaluation)),
  values: takesValue(1, 1, (args, evaluation) => {
    const object = objectAt(args, 0);
    return keysAt(args, 0, evaluation).map((key) => object[key] as Json);
  }),
  entries: takesValue(1, 1, (args, evaluation) => {
    const object = objectAt(args, 0);
    return keysAt(args, 0, evaluation).map((key) => ({ key, value: object[key] as Json }));
  }),
  fromEntries: takesValue(1, 1, fromEntries),
  pick: takesValue(2, Number.POSITIVE_INFINITY, (args, evaluation) => {
    const wanted = namedKeys(args);
    return keepKeys(args, evaluation, (key) => wanted.has(key));
  }),
  omit: takesValue(2, Number.POSITIVE_INFINITY, (args, evaluation) => {
    const unwanted = namedKeys(args);
    return keepKeys(args, evaluation, (key) => !unwanted.has(key));
  }),
  merge: takes(1, Number.POSITIVE_INFINITY, merge),
  default: takes(2, 2, ([value = null, fallback = null]) => value ?? fallback),
  required: takes(2, 2, requiredValue),
  string: takes(1, 1, ([value = null], evaluation) => toText(value, evaluation)),
  boolean: takes(1, 1, ([value = null]) => value !== 'false' && isTruthy(value)),
  json: takes(1, 2, (args, evaluation) => {
    const indent = isAbsent(args, 1) ? 0 : integerAt(args, 1, 0, 8);
    return toJsonText(args[0] as Json, evaluation, indent);
  }),
  parseJson: takesValue(1, 1, parseJson),
} satisfies FunctionTable;

// The text is what the author says to people about the value. It is not about the expression, so it has no place in it.
function requiredValue(args: readonly Json[]): Json {
  const message = textAt(args, 1);
  if (args[0] === null) throw new OrchestratorError('INVALID_INPUT', message);
  return args[0] as Json;
}

function lengthOf(args: readonly Json[], evaluation: Evaluation): Json {
  const value = args[0] as Json;
  if (value === null) return 0;
  if (typeof value === 'string' || Array.isArray(value)) return value.length;
  if (typeof value === 'object') return keysAt(args, 0, evaluation).length;
  throw wrongArgument(args, 0, 'text, an array or an object');
}

// A key costs more than an element, because an object with many keys is a hash table.
function keysAt(args: readonly Json[], position: number, evaluation: Evaluation): string[] {
  const keys = Object.keys(objectAt(args, position));
  charge(evaluation, keys.length * KEY_COST);
  return keys;
}

// Merges the first level only. A property of a later object replaces the same property of an earlier object. Null counts as empty.
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

/** The keys after the first argument: each is text, or a list of texts. */
function namedKeys(args: readonly Json[]): ReadonlySet<string> {
  const keys = args.slice(1).flatMap((given, i) => {
    const list = Array.isArray(given) ? (given as readonly Json[]) : [given];
    if (list.every((key) => typeof key === 'string')) return list as readonly string[];
    throw wrongArgument(args, i + 1, 'text, or an array of texts');
  });
  return new Set(keys);
}

function keepKeys(args: readonly Json[], evaluation: Evaluation, isKept: (key: string) => boolean): Json {
  const object = objectAt(args, 0);
  const keys = keysAt(args, 0, evaluation).filter((key) => isKept(key) && key !== '__proto__');
  return Object.fromEntries(keys.map((key) => [key, object[key] as Json]));
}

// A later entry replaces an earlier one with the same key.
function fromEntries(args: readonly Json[], evaluation: Evaluation): Json {
  const list = listAt(args, 0);
  charge(evaluation, list.length * KEY_COST);
  const out: Record<string, Json> = {};
  for (const entry of list) {
    const { key, value } = (typeof entry === 'object' ? (entry ?? {}) : {}) as { key?: Json; value?: Json };
    if (typeof key !== 'string')
      throw new EvaluationProblem('every element must be an object with `key`, a text, and `value`');
    if (key === '__proto__') throw new EvaluationProblem('the key __proto__ is never allowed');
    out[key] = value ?? null;
  }
  return out;
}

function parseJson(args: readonly Json[], evaluation: Evaluation): Json {
  const text = textAt(args, 0);
  const values = countValues(text);
  if (values === undefined) throw new EvaluationProblem(`the JSON is nested deeper than ${MAX_DEPTH} levels`);
  charge(evaluation, text.length + values * VALUE_COST);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    // The message of `JSON.parse` quotes the text, which may be secret.
    throw new EvaluationProblem('the text is not JSON');
  }
  try {
    return copyJson(parsed);
  } catch (error) {
    if (error instanceof JsonError) throw new EvaluationProblem(`the JSON can't be used: ${error.problem.message}`);
    throw error;
  }
}
