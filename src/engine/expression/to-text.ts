/** Values to text, within the bounds of what an expression may build. */

import { canonicalJson, type Json, type JsonObject } from '../json.ts';
import type { Evaluation } from './evaluation.ts';
import { charge, EvaluationProblem } from './evaluation-problem.ts';
import { MAX_BUILT_LENGTH } from './limits.ts';

/**
 * How a value stands in text: null is '', arrays and objects are JSON.
 * @throws EvaluationProblem when it is too long
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

/** Equal values give equal text, whatever the order of their keys. */
export function toCanonicalText(value: Json, evaluation: Evaluation): string {
  measure(value, evaluation, 0);
  return canonicalJson(value);
}

/** Joins two texts. The left one is charged less: usually it was charged when it was built. */
export function joinTexts(left: string, right: string, evaluation: Evaluation): string {
  const length = left.length + right.length;
  if (length > MAX_BUILT_LENGTH) throw tooLong(length);
  charge(evaluation, (left.length >> 4) + right.length);
  return left + right;
}

export function checkLength(text: string): string {
  if (text.length > MAX_BUILT_LENGTH) throw tooLong(text.length);
  return text;
}

export function tooLong(length: number): EvaluationProblem {
  return new EvaluationProblem(
    `the result would have a length of ${length} or more, the most is ${MAX_BUILT_LENGTH}; store it and pass a key`,
  );
}

// Before the text is made: the same big value may stand in one array a thousand times. It counts no more than will be
// written, so that nothing which fits is refused.
function measure(value: Json, evaluation: Evaluation, indent: number): void {
  let length = 0;
  const add = (characters: number): void => {
    length += characters;
    if (length > MAX_BUILT_LENGTH) throw tooLong(length);
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
