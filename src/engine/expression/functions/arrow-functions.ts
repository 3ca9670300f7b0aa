/** Functions that apply an arrow to each element of a list, in its order. */

import type { Json } from '../../base/json/json.ts';
import type { Evaluation } from '../evaluation.ts';
import { charge, describeType, EvaluationProblem } from '../evaluation-problem.ts';
import { isTruthy } from '../is-truthy.ts';
import { KEY_COST } from '../syntax/limits.ts';
import { isAbsent, listAt, textAt } from './arguments.ts';
import type { Apply, BuiltInFunction } from './function-table.ts';
import { sortRows } from './list-functions.ts';
import { numberFunctions } from './number-functions.ts';

type OverList = (list: readonly Json[], apply: Apply, evaluation: Evaluation, args: readonly Json[]) => Json;

/** A function that returns null if its list is null. */
function overList(call: OverList, maxArgs = 2): BuiltInFunction {
  return {
    minArgs: 2,
    maxArgs,
    takesArrow: true,
    call: (args, evaluation, apply) =>
      args[0] === null ? null : call(listAt(args, 0), apply as Apply, evaluation, args.slice(1)),
  };
}

export const arrowFunctions = {
  map: overList((list, apply) => list.map(apply)),
  filter: overList((list, apply) => list.filter((item, i) => isTruthy(apply(item, i)))),
  find: overList((list, apply) => list.find((item, i) => isTruthy(apply(item, i))) ?? null),
  some: overList((list, apply) => list.some((item, i) => isTruthy(apply(item, i)))),
  every: overList((list, apply) => list.every((item, i) => isTruthy(apply(item, i)))),
  count: overList((list, apply) => list.reduce<number>((sum, item, i) => sum + (isTruthy(apply(item, i)) ? 1 : 0), 0)),
  sumBy: overList((list, apply, evaluation) => numberFunctions.sum.call([list.map(apply)], evaluation)),
  sortBy: overList((list, apply, evaluation, args) => {
    const rows = list.map((item, i) => ({ item, value: apply(item, i) }));
    return sortRows(rows, isAbsent(args, 0) ? 'asc' : textAt(args, 0), 'every result of the arrow', evaluation);
  }, 3),
  groupBy: overList((list, apply, evaluation) => {
    const groups: Record<string, Json[]> = {};
    list.forEach((item, i) => {
      const key = keyOf(apply(item, i), evaluation);
      if (Object.hasOwn(groups, key)) groups[key]?.push(item);
      else groups[key] = [item];
    });
    return groups;
  }),
  indexBy: overList((list, apply, evaluation) => {
    const index: Record<string, Json> = {};
    list.forEach((item, i) => {
      index[keyOf(apply(item, i), evaluation)] = item;
    });
    return index;
  }),
} satisfies Readonly<Record<string, BuiltInFunction>>;

function keyOf(value: Json, evaluation: Evaluation): string {
  charge(evaluation, KEY_COST);
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean')
    throw new EvaluationProblem(
      `the key of each element must be text, a number or a boolean, found ${describeType(value)}`,
    );
  const key = String(value);
  if (key === '__proto__') throw new EvaluationProblem('the key __proto__ is never allowed');
  return key;
}
