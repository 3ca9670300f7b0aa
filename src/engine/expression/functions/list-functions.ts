/** Functions over arrays. `first`, `last` and `slice` also accept text. */

import { type Json, MAX_DEPTH } from '../../base/json/json.ts';
import type { Evaluation } from '../evaluation.ts';
import { charge, describeType, EvaluationProblem } from '../evaluation-problem.ts';
import { isOrdered } from '../operators.ts';
import { MAX_BUILT_LENGTH } from '../syntax/limits.ts';
import { readKey } from '../syntax/read-member.ts';
import { toCanonicalText, tooLongText } from '../to-text.ts';
import { integerAt, isAbsent, listAt, textAt, wrongArgument } from './arguments.ts';
import { type FunctionTable, takes, takesValue } from './function-table.ts';

export const listFunctions = {
  first: takesValue(1, 1, (args) => {
    const sequence = sequenceAt(args);
    if (typeof sequence !== 'string') return sequence[0] ?? null;
    return sequence === '' ? null : sequence.slice(0, splitsPair(sequence, 1) ? 2 : 1);
  }),
  last: takesValue(1, 1, (args) => {
    const sequence = sequenceAt(args);
    if (typeof sequence !== 'string') return sequence.at(-1) ?? null;
    return sequence === '' ? null : sliceText(sequence, -1, undefined);
  }),
  slice: takesValue(2, 3, slice),
  compact: takesValue(1, 1, compact),
  sort: takesValue(1, 3, sort),
  reverse: takesValue(1, 1, (args, evaluation) => {
    const list = listAt(args, 0);
    charge(evaluation, list.length);
    return [...list].reverse();
  }),
  append: takesValue(2, Number.POSITIVE_INFINITY, (args, evaluation) => {
    const list = listAt(args, 0);
    charge(evaluation, list.length + args.length);
    return [...list, ...args.slice(1)];
  }),
  chunk: takesValue(2, 2, (args, evaluation) => {
    const list = listAt(args, 0);
    const size = integerAt(args, 1, 1, MAX_BUILT_LENGTH);
    charge(evaluation, list.length);
    return Array.from({ length: Math.ceil(list.length / size) }, (_, i) => list.slice(i * size, (i + 1) * size));
  }),
  range: takes(1, 3, range),
  unique: takesValue(1, 1, unique),
  flatten: takesValue(1, 2, flatten),
} satisfies FunctionTable;

function sequenceAt(args: readonly Json[]): string | readonly Json[] {
  const value = args[0] as Json;
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return value as readonly Json[];
  throw wrongArgument(args, 0, 'an array or text');
}

// From `start` to `end`, without the element at `end`. Negative positions count from the end.
function slice(args: readonly Json[], evaluation: Evaluation): Json {
  const sequence = sequenceAt(args);
  const { MIN_SAFE_INTEGER: min, MAX_SAFE_INTEGER: max } = Number;
  const start = isAbsent(args, 1) ? 0 : integerAt(args, 1, min, max);
  const end = isAbsent(args, 2) ? undefined : integerAt(args, 2, min, max);
  const part = typeof sequence === 'string' ? sliceText(sequence, start, end) : sequence.slice(start, end);
  charge(evaluation, part.length);
  return part;
}

// A cut inside a surrogate pair moves to the start of the pair.
function sliceText(text: string, start: number, end: number | undefined): string {
  const cut = (position: number) => {
    const at = position < 0 ? Math.max(0, text.length + position) : position;
    return splitsPair(text, at) ? at - 1 : at;
  };
  return text.slice(cut(start), end === undefined ? undefined : cut(end));
}

function splitsPair(text: string, position: number): boolean {
  return isSurrogate(text, position - 1, 0xd800) && isSurrogate(text, position, 0xdc00);
}

// High surrogates begin at 0xd800, low surrogates at 0xdc00. At position -1 `charCodeAt` gives NaN.
function isSurrogate(text: string, position: number, first: number): boolean {
  const unit = text.charCodeAt(position);
  return unit >= first && unit < first + 0x400;
}

function compact(args: readonly Json[], evaluation: Evaluation): Json {
  const list = listAt(args, 0);
  charge(evaluation, list.length);
  return list.filter((item) => item !== null);
}

// From `start` to `end`, without `end`. One argument is the end.
function range(args: readonly Json[], evaluation: Evaluation): Json {
  const { MIN_SAFE_INTEGER: min, MAX_SAFE_INTEGER: max } = Number;
  const last = args.length === 1 ? 0 : 1;
  const start = args.length === 1 ? 0 : integerAt(args, 0, min, max);
  const end = integerAt(args, last, min, max);
  const step = isAbsent(args, 2) ? 1 : integerAt(args, 2, min, max);
  if (step === 0) throw new EvaluationProblem('argument 3 must not be 0');
  const length = Math.max(0, Math.ceil((end - start) / step));
  charge(evaluation, length);
  if (length > MAX_BUILT_LENGTH) throw tooLongText(length);
  return Array.from({ length }, (_, i) => start + i * step);
}

// Sorts by the elements, or by the own property `key` of each element. The sort is stable. Null is last in both directions.
function sort(args: readonly Json[], evaluation: Evaluation): Json {
  const list = listAt(args, 0);
  const key = isAbsent(args, 1) ? null : textAt(args, 1);
  const direction = isAbsent(args, 2) ? 'asc' : textAt(args, 2);
  const rows = list.map((item) => ({ item, value: key === null ? item : readKey(item, key) }));
  return sortRows(rows, direction, key === null ? 'every element' : `"${key}" of every element`, evaluation);
}

/** Sorts elements by their values. @param what - what has the values, for messages */
export function sortRows(
  rows: { readonly item: Json; readonly value: Json }[],
  direction: string,
  what: string,
  evaluation: Evaluation,
): Json {
  if (direction !== 'asc' && direction !== 'desc') throw new EvaluationProblem("argument 3 must be 'asc' or 'desc'");
  const sign = direction === 'asc' ? 1 : -1;
  let cost = rows.length;
  let type: string | null = null;
  for (const { value } of rows) {
    if (value === null) continue;
    if ((typeof value !== 'number' && typeof value !== 'string') || (type ?? typeof value) !== typeof value) {
      throw new EvaluationProblem(
        `${what} must be a number, or all of them must be text, found ${describeType(value)}`,
      );
    }
    type = typeof value;
    if (typeof value === 'string') cost += value.length >> 4;
  }
  charge(evaluation, cost * Math.ceil(Math.log2(rows.length + 2)));
  rows.sort(({ value: a }, { value: b }) => {
    if (a === b) return 0;
    if (a === null || b === null) return a === null ? 1 : -1;
    return isOrdered('<', a, b) ? -sign : sign;
  });
  return rows.map(({ item }) => item);
}

// Keeps the first of each set of equal values, in the original order.
function unique(args: readonly Json[], evaluation: Evaluation): Json {
  const plain = new Set<Json>();
  const structured = new Set<string>();
  return listAt(args, 0).filter((item) => {
    charge(evaluation, typeof item === 'string' ? 1 + (item.length >> 4) : 1);
    const isPlain = typeof item !== 'object' || item === null;
    const seen: Set<unknown> = isPlain ? plain : structured;
    const key = isPlain ? item : toCanonicalText(item, evaluation);
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

function flatten(args: readonly Json[], evaluation: Evaluation): Json {
  const depth = isAbsent(args, 1) ? 1 : integerAt(args, 1, 1, MAX_DEPTH);
  const out: Json[] = [];
  const add = (list: readonly Json[], left: number): void => {
    charge(evaluation, list.length + 1);
    for (const item of list) {
      if (left > 0 && Array.isArray(item)) add(item as readonly Json[], left - 1);
      else out.push(item);
    }
    if (out.length > MAX_BUILT_LENGTH) throw tooLongText(out.length);
  };
  add(listAt(args, 0), depth);
  return out;
}
