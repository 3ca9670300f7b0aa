/** Converts values to text within the limits of the language. */

import { canonicalJson, type Json, type JsonObject } from '../base/json/json.ts';
import type { Evaluation } from './evaluation.ts';
import { charge, EvaluationProblem } from './evaluation-problem.ts';
import { MAX_BUILT_LENGTH } from './syntax/limits.ts';

/**
 * The text of a value: null is '', arrays and objects are JSON.
 * @throws EvaluationProblem when the text is too long
 */
export function toText(value: Json, evaluation: Evaluation): string {
  if (typeof value === 'string') return value;
  if (value === null) return '';
  return typeof value === 'object' ? toJsonText(value, evaluation) : String(value);
}

/** @param indent - spaces for each level, 0 for one line */
export function toJsonText(value: Json, evaluation: Evaluation, indent = 0): string {
  measure(value, evaluation, indent);
  return checkLength(JSON.stringify(value, null, indent));
}

/** JSON text that is equal for equal values, whatever the order of their keys. */
export function toCanonicalText(value: Json, evaluation: Evaluation): string {
  measure(value, evaluation, 0);
  return canonicalJson(value);
}

/** Joins two texts. The left text costs less, because its construction was usually charged already. */
export function joinTexts(left: string, right: string, evaluation: Evaluation): string {
  const length = left.length + right.length;
  if (length > MAX_BUILT_LENGTH) throw tooLongText(length);
  charge(evaluation, (left.length >> 4) + right.length);
  return left + right;
}

export function checkLength(text: string): string {
  if (text.length > MAX_BUILT_LENGTH) throw tooLongText(text.length);
  return text;
}

export function tooLongText(length: number): EvaluationProblem {
  return new EvaluationProblem(
    `the result would have a length of ${length} or more, the maximum is ${MAX_BUILT_LENGTH}; store it and pass a key`,
  );
}

// Measures the text before it is built: one array may contain the same large value a thousand times. It counts at most the
// length that is written, so that no text within the limit is refused.
function measure(value: Json, evaluation: Evaluation, indent: number): void {
  let length = 0;
  const add = (characters: number): void => {
    length += characters;
    if (length > MAX_BUILT_LENGTH) throw tooLongText(length);
    charge(evaluation, characters);
  };
  const walk = (part: Json, depth: number): void => {
    add(1 + indent * depth + (typeof part === 'string' ? part.length : 1));
    if (typeof part !== 'object' || part === null) return;
    if (Array.isArray(part)) for (const item of part) walk(item, depth + 1);
    else {
      for (const key of Object.keys(part)) {
        add(key.length + 2);
        walk((part as JsonObject)[key] as Json, depth + 1);
      }
    }
  };
  walk(value, 0);
}
