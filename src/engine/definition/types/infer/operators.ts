/** The types of operators: what their operands may be, and the result. */

import { suggestName } from '../../../base/suggest-name.ts';
import type { BinaryOperator, Node } from '../../../expression/syntax/ast.ts';
import {
  BOOLEAN,
  intersects,
  isNever,
  mayBe,
  membersOf,
  NUMBER,
  nameOfType,
  nullBecause,
  STRING,
  type Type,
  union,
  withoutNull,
} from '../type.ts';
import { nullsOf, valuesOf } from '../values-of-type.ts';
import { type InferContext, impossible } from './infer-context.ts';
import { pathKey } from './read-path.ts';

interface Sides {
  readonly index: number;
  readonly left: Node;
  readonly right: Node;
}

export function inferBinary(operator: BinaryOperator, left: Type, right: Type, at: Sides, context: InferContext): Type {
  switch (operator) {
    case '==':
    case '===':
    case '!=':
    case '!==':
      checkEqual(operator, left, right, at, context);
      return BOOLEAN;
    case '<':
    case '<=':
    case '>':
    case '>=': {
      const isPossible = (kind: 'number' | 'string') => mayBe(left, [kind]) && mayBe(right, [kind]);
      const isNull =
        !mayBe(withoutNull(left), ['string', 'number', 'boolean', 'list', 'record']) ||
        !mayBe(withoutNull(right), ['string', 'number', 'boolean', 'list', 'record']);
      if (!isPossible('number') && !isPossible('string') && !isNull) {
        const message = `${operator} compares two numbers or two texts: ${nameOfType(withoutNull(left))} ${operator} ${nameOfType(withoutNull(right))} is always false`;
        impossible(context, { index: at.left.index, end: at.right.end }, message);
      }
      return BOOLEAN;
    }
    case '+':
      return inferAdd(left, right, at, context);
    default: {
      for (const [side, type] of [
        [at.left, left],
        [at.right, right],
      ] as const)
        if (!mayBe(type, ['number', 'null']))
          impossible(
            context,
            side,
            `${operator} needs two numbers, and this is ${nameOfType(type)}; convert with number()`,
          );
      return arithmetic(operator, left, right, at);
    }
  }
}

/** A computation without a result, such as a division by zero, is null. */
function arithmetic(operator: BinaryOperator, left: Type, right: Type, { right: divisor }: Sides): Type {
  const isSure = divisor.kind === 'literal' && divisor.value !== 0;
  const nulls: Type[] = [...nullsOf(left), ...nullsOf(right)];
  if ((operator === '/' || operator === '%') && !isSure) nulls.push(nullBecause('a division by zero is null'));
  return nulls.length === 0 ? NUMBER : union([NUMBER, ...nulls]);
}

function inferAdd(left: Type, right: Type, at: Sides, context: InferContext): Type {
  const text = (type: Type) => type.kind === 'string';
  if (text(left) || text(right)) return STRING;
  const isText = mayBe(left, ['string']) || mayBe(right, ['string']);
  if (!isText) {
    for (const [side, type] of [
      [at.left, left],
      [at.right, right],
    ] as const)
      if (!mayBe(type, ['number', 'null']))
        impossible(context, side, `+ needs two numbers, or text on one side, and this is ${nameOfType(type)}`);
    return arithmetic('+', left, right, at);
  }
  return union([STRING, NUMBER, ...nullsOf(left), ...nullsOf(right)]);
}

function checkEqual(
  operator: BinaryOperator,
  left: Type,
  right: Type,
  { left: a, right: b }: Sides,
  context: InferContext,
): void {
  // A comparison with null guards against it, whatever the type says.
  if (left.kind === 'null' || right.kind === 'null' || isNever(left) || isNever(right)) return;
  const [one, other] = [withoutNull(left), withoutNull(right)];
  if (intersects(one, other) || (mayBe(left, ['null']) && mayBe(right, ['null']))) return;
  // Two values that are written down are compared on purpose.
  if (a.kind === 'literal' && b.kind === 'literal') return;
  // `kind == 'a' ? 1 : kind != 'a' ? 2 : 3` says again what the condition before it has said.
  if (operator.startsWith('!') && [a, b].some((side) => isNarrowed(side, context))) return;
  const [wanted, given, at] = other.kind !== 'union' && b.kind === 'literal' ? [one, other, b] : [other, one, a];
  const result = operator.startsWith('!') ? 'always true' : 'never true';
  const message = `this is ${result}: ${describeSide(one)} is never ${describeSide(other)}`;
  impossible(
    context,
    { index: a.index, end: b.end },
    message,
    at.kind === 'literal' ? nearestValue(given, wanted) : undefined,
  );
}

function isNarrowed(side: Node, context: InferContext): boolean {
  const found = pathKey(side, context);
  return found !== undefined && context.place.fact(found.key) !== undefined;
}

function describeSide(type: Type): string {
  return nameOfType(type);
}

/** The value of `wanted` that was probably meant. */
export function nearestValue(given: Type, wanted: Type): string | undefined {
  const [value] = valuesOf(given) ?? [];
  if (typeof value !== 'string') return undefined;
  const all = membersOf(wanted).flatMap((member) => ('values' in member ? (member.values ?? []) : []));
  return suggestName(
    value,
    all.filter((one): one is string => typeof one === 'string'),
  );
}
