/** Types whose values are known one by one, and a value of a type. */

import type { Json } from '../../base/json/json.ts';
import { literal, mayBe, membersOf, type Scalar, type ScalarType, type Type, UNKNOWN_NULL, union } from './type.ts';

/** The null that a value may be, as a list of at most one. */
export function nullsOf(type: Type): readonly Type[] {
  const found = membersOf(type).find(({ kind }) => kind === 'null');
  if (found) return [found];
  return mayBe(type, []) ? [UNKNOWN_NULL] : [];
}

/** All values that a type has; undefined if they are not known. */
export function valuesOf(type: Type): readonly Scalar[] | undefined {
  const all: Scalar[] = [];
  for (const member of membersOf(type)) {
    if (member.kind === 'null') continue;
    if (!('values' in member) || !member.values) {
      if (member.kind !== 'boolean') return undefined;
      all.push(true, false);
    } else all.push(...member.values);
  }
  return all;
}

export function isFalsy(type: Type): boolean {
  return (
    type.kind === 'null' || ('values' in type && type.values !== undefined && type.values.every((value) => !value))
  );
}

export function falsyPart(type: Type): Type {
  return union(
    membersOf(type).flatMap((member): Type[] => {
      if (member.kind === 'list' || member.kind === 'record') return [];
      if (member.kind === 'any' || member.kind === 'null') return [member];
      if (!('values' in member)) return [member];
      const values = (member.values ?? { string: [''], number: [0], boolean: [false] }[member.kind]).filter(
        (value) => !value,
      );
      return values.length === 0 ? [] : [{ kind: member.kind, values }];
    }),
  );
}

export function narrowTo(type: Type, value: Scalar): Type {
  return union(
    membersOf(type).flatMap((member): Type[] => {
      if (member.kind === 'any') return [literal(value)];
      if (member.kind !== typeof value) return [];
      const { values } = member as ScalarType;
      return !values || values.includes(value) ? [literal(value)] : [];
    }),
  );
}

export function withoutValue(type: Type, value: Scalar): Type {
  return union(
    membersOf(type).flatMap((member): Type[] => {
      if (member.kind !== typeof value) return [member];
      const { kind, values = kind === 'boolean' ? [true, false] : undefined } = member as ScalarType;
      if (!values) return [member];
      const left = values.filter((one) => one !== value);
      return left.length === 0 ? [] : [{ kind, values: left }];
    }),
  );
}

/**
 * A value of the type. Text is the name of its field, a number is 1, a list has one item, unless a schema says more. What is not known
 * is null.
 *
 * @param name - the field that holds it
 * @param turn - how often the step has run before. Each turn takes the next of several values, so that a loop that waits for one of them
 *   comes to it
 */
export function sampleOf(type: Type, name: string, turn: number, budget = { left: MAX_SAMPLE }): Json {
  budget.left -= 1;
  const members = membersOf(type);
  const chosen = members.find(({ kind }) => kind !== 'null' && kind !== 'any') ?? members[0];
  if (chosen === undefined || budget.left < 0) return null;
  switch (chosen.kind) {
    case 'string':
    case 'number':
    case 'boolean': {
      const example = chosen.example ?? { string: name, number: 1, boolean: true }[chosen.kind];
      const values = chosen.values ?? (chosen.kind === 'boolean' ? [true, false] : [example]);
      return values[turn % values.length] ?? null;
    }
    case 'list': {
      const items: Json[] = [];
      for (let i = 0; i < Math.max(1, chosen.min) && budget.left > 0; i++)
        items.push(sampleOf(chosen.item, name, turn, budget));
      return items;
    }
    case 'record':
      return Object.fromEntries(
        [...chosen.fields].map(([field, { type: inner }]) => [field, sampleOf(inner, field, turn, budget)]),
      ) as Json;
    default:
      return null;
  }
}

/** How many values a sample has at most, all levels together. */
const MAX_SAMPLE = 2_000;
