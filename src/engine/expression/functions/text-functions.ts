/** Functions over text. */

import type { Json } from '../../base/json/json.ts';
import type { Evaluation } from '../evaluation.ts';
import { charge, EvaluationProblem } from '../evaluation-problem.ts';
import { areEqual } from '../operators.ts';
import { MAX_BUILT_LENGTH } from '../syntax/limits.ts';
import { checkLength, tooLongText, toText } from '../to-text.ts';
import { isAbsent, listAt, textAt, wrongArgument } from './arguments.ts';
import { type ExpressionFunction, type FunctionTable, takes, takesValue } from './function-table.ts';

export const textFunctions = {
  lower: textFunction((text) => text.toLowerCase()),
  upper: textFunction((text) => text.toUpperCase()),
  trim: textFunction((text) => text.trim()),
  urlEncode: takesValue(1, 1, ([value = null], evaluation) => {
    if (typeof value === 'object') throw wrongArgument([value], 0, 'text, a number or a boolean');
    // A lone surrogate has no UTF-8 form. It becomes U+FFFD, as in every text that is sent.
    const encode = (text: string) => encodeURIComponent(text.replace(/\p{Surrogate}/gu, '\ufffd'));
    return mapText(toText(value, evaluation), evaluation, encode);
  }),
  contains: takes(2, 2, contains),
  startsWith: affixFunction((text, part) => text.startsWith(part)),
  endsWith: affixFunction((text, part) => text.endsWith(part)),
  replace: takesValue(3, 3, replace),
  split: takesValue(2, 2, (args, evaluation) => {
    const text = textAt(args, 0);
    const separator = textAt(args, 1);
    charge(evaluation, searchCost(text, separator) + 1);
    // `Array.from` splits by characters and keeps surrogate pairs whole.
    return separator === '' ? Array.from(text) : text.split(separator);
  }),
  join: takesValue(1, 2, join),
} satisfies FunctionTable;

function textFunction(map: (text: string) => string): ExpressionFunction {
  return takesValue(1, 1, (args, evaluation) => mapText(textAt(args, 0), evaluation, map));
}

function mapText(text: string, evaluation: Evaluation, map: (text: string) => string): Json {
  charge(evaluation, text.length);
  return checkLength(map(text));
}

function affixFunction(test: (text: string, part: string) => boolean): ExpressionFunction {
  return takes(2, 2, (args, evaluation) => {
    if (args[0] === null) return false;
    const text = textAt(args, 0);
    const part = textAt(args, 1);
    charge(evaluation, 1 + (Math.min(text.length, part.length) >> 4));
    return test(text, part);
  });
}

function contains(args: readonly Json[], evaluation: Evaluation): Json {
  const [whole = null, part = null] = args;
  if (whole === null) return false;
  if (Array.isArray(whole)) {
    charge(evaluation, whole.length);
    return whole.some((item) => areEqual(item, part, evaluation));
  }
  if (typeof whole !== 'string') throw wrongArgument(args, 0, 'text or an array');
  const searched = textAt(args, 1);
  charge(evaluation, searchCost(whole, searched));
  return whole.includes(searched);
}

// Replaces every occurrence literally. Neither the searched text nor the replacement is a pattern.
function replace(args: readonly Json[], evaluation: Evaluation): Json {
  const text = textAt(args, 0);
  const searched = textAt(args, 1);
  const replacement = args[2] === null ? '' : textAt(args, 2);
  if (searched === '') throw new EvaluationProblem('argument 2, the text to replace, must not be empty');
  charge(evaluation, searchCost(text, searched));
  const pieces = text.split(searched);
  const length = text.length + (pieces.length - 1) * (replacement.length - searched.length);
  if (length > MAX_BUILT_LENGTH) throw tooLongText(length);
  charge(evaluation, length);
  return pieces.join(replacement);
}

function join(args: readonly Json[], evaluation: Evaluation): Json {
  const separator = isAbsent(args, 1) ? ',' : textAt(args, 1);
  const pieces: string[] = [];
  let length = 0;
  for (const item of listAt(args, 0)) {
    const piece = toText(item, evaluation);
    length += piece.length + (pieces.length > 0 ? separator.length : 0);
    if (length > MAX_BUILT_LENGTH) throw tooLongText(length);
    charge(evaluation, 1 + piece.length + separator.length);
    pieces.push(piece);
  }
  return pieces.join(separator);
}

// A search may start again at each character. For a long searched text the worst case is the product of both lengths.
function searchCost(text: string, searched: string): number {
  const places = Math.max(0, text.length - searched.length + 1);
  return text.length + Math.floor((places * searched.length) / 64);
}
