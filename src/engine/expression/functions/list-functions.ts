/** Functions over arrays; `first`, `last` and `slice` take text too. */

import { type Json, MAX_DEPTH } from '../../json.ts';
import type { Evaluation } from '../evaluation.ts';
import { charge, describeType, EvaluationProblem } from '../evaluation-problem.ts';
import { MAX_BUILT_LENGTH } from '../limits.ts';
import { isOrdered } from '../operators.ts';
import { readKey } from '../read-member.ts';
import { toCanonicalText, tooLong } from '../to-text.ts';
import { integerAt, isAbsent, listAt, textAt, wrongArgument } from './arguments.ts';
import type { FunctionTable } from './function-table.ts';

export const listFunctions = {
  first: { minArgs: 1, maxArgs: 1, call: (args) => sequenceAt(args)?.[0] ?? null },
  last: {
    minArgs: 1,
    maxArgs: 1,
    call: (args) => {
      const sequence = sequenceAt(args);
      return sequence?.[sequence.length - 1] ?? null;
    },
  },
  slice: { minArgs: 2, maxArgs: 3, call: slice },
  sort: { minArgs: 1, maxArgs: 3, call: sort },
  unique: { minArgs: 1, maxArgs: 1, call: unique },
  flatten: { minArgs: 1, maxArgs: 2, call: flatten },
} satisfies FunctionTable;

function sequenceAt(args: readonly Json[]): string | readonly Json[] | null {
  const value = args[0] as Json;
  if (value === null || typeof value === 'string') return value;
  if (Array.isArray(value)) return value as readonly Json[];
  throw wrongArgument(args, 0, 'an array or text');
}

// From `start` up to but not including `end`; negative positions count from the end.
function slice(args: readonly Json[], evaluation: Evaluation): Json {
  const sequence = sequenceAt(args);
  if (sequence === null) return null;
  const { MIN_SAFE_INTEGER: least, MAX_SAFE_INTEGER: most } = Number;
  const start = isAbsent(args, 1) ? 0 : integerAt(args, 1, least, most);
  const part = sequence.slice(start, isAbsent(args, 2) ? undefined : integerAt(args, 2, least, most));
  charge(evaluation, part.length);
  return part;
}

// By the values themselves, or by the own property `key` of each; null comes last in either direction; stable.
function sort(args: readonly Json[], evaluation: Evaluation): Json {
  if (args[0] === null) return null;
  const list = listAt(args, 0);
  const key = isAbsent(args, 1) ? null : textAt(args, 1);
  const direction = isAbsent(args, 2) ? 'asc' : textAt(args, 2);
  if (direction !== 'asc' && direction !== 'desc') throw new EvaluationProblem("argument 3 must be 'asc' or 'desc'");
  const sign = direction === 'asc' ? 1 : -1;
  const rows = list.map((item) => ({ item, value: key === null ? item : readKey(item, key) }));
  let cost = rows.length;
  let type: string | null = null;
  for (const { value } of rows) {
    if (value === null) continue;
    if ((typeof value !== 'number' && typeof value !== 'string') || (type ?? typeof value) !== typeof value) {
      const what = key === null ? 'every element' : `"${key}" of every element`;
      throw new EvaluationProblem(`${what} must be a number, or every one text, found ${describeType(value)}`);
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

// The first of each set of equal values, in their order.
function unique(args: readonly Json[], evaluation: Evaluation): Json {
  if (args[0] === null) return null;
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
  if (args[0] === null) return null;
  const depth = isAbsent(args, 1) ? 1 : integerAt(args, 1, 1, MAX_DEPTH);
  const out: Json[] = [];
  const add = (list: readonly Json[], left: number): void => {
    charge(evaluation, list.length + 1);
    for (const item of list) {
      if (left > 0 && Array.isArray(item)) add(item as readonly Json[], left - 1);
      else out.push(item);
    }
    if (out.length > MAX_BUILT_LENGTH) throw tooLong(out.length);
  };
  add(listAt(args, 0), depth);
  return out;
}
